//! Clocks of hosts, by which the incarnations of a member are numbered.

use crate::rng::SimRng;
use lanecast_protocol::{MICROSECOND, Nanos};

/// Most microseconds by which a clock is wrong.
const ERROR_MAX: u64 = 10_000_000;

/// Clock of a host, as programs read it when they start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostClock {
    /// The time.
    Right,
    /// The same at each start, as on a host without a clock.
    Stopped,
    /// Earlier or later, by another amount at each start.
    Wrong,
}

impl HostClock {
    /// Microseconds that the clock shows at `now`.
    pub fn micros(self, now: Nanos, rng: &mut SimRng) -> u64 {
        let right = ERROR_MAX + now / MICROSECOND;
        match self {
            Self::Right => right,
            Self::Stopped => ERROR_MAX,
            Self::Wrong => right - ERROR_MAX + rng.within(0..=2 * ERROR_MAX),
        }
    }
}
