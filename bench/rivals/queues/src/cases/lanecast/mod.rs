//! lanecast's own rings and pipes, used as their documentation says: a side without work calls
//! their wait strategy.

mod pipe;
mod ring;
mod strategy;
mod workers;

use super::case::{Built, Case};
use crate::load::{Load, Row};

const PEER: &str = "lanecast";
const PACKAGE: Option<&str> = Some("lanecast-ring");

pub const CASES: &[Case] = &[
    case("lanecast", &[Row::Queue, Row::Batch, Row::Multicast, Row::Diamond], ring::in_slices),
    case("lanecast", &[Row::Pop], pipe::received),
    case("lanecast", &[Row::Mpmc], workers::like_producers),
    case("lanecast", &[Row::Pingpong, Row::PingpongPark], pipe::round_trips),
    case("lanecast", &[Row::Pipe], pipe::flushed),
    // The same row in another way, to stand beside the first.
    case("lanecast-pop", &[Row::Queue], ring::popped),
    case("lanecast-pipe", &[Row::Queue], pipe::flushed),
    case("lanecast-ring", &[Row::Pop], ring::popped),
    case("lanecast-runs", &[Row::Mpmc], workers::in_runs),
    case("lanecast-spin-park", &[Row::Pingpong, Row::PingpongPark], pipe::round_trips_spin_park),
    case("lanecast-ring", &[Row::Pingpong, Row::PingpongPark], ring::round_trips),
];

type Build = fn(&Load) -> anyhow::Result<(Built, &'static str)>;

const fn case(side: &'static str, rows: &'static [Row], build: Build) -> Case {
    Case { peer: PEER, side, package: PACKAGE, rows, build }
}
