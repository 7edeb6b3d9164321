//! Wait strategy of the ends, by row.

use lanecast_base::WaitStrategy;

use crate::load::{Load, Row};

/// Wait strategy of both ends.
pub(super) fn strategy(load: &Load) -> WaitStrategy {
    match load.row {
        Row::Multicast | Row::Diamond | Row::Mpmc => WaitStrategy::SpinYield,
        Row::PingpongPark => WaitStrategy::Park,
        _ => WaitStrategy::BusySpin,
    }
}
