//! The time of a turn. The server reads its clocks once per turn and passes the result down.

use lanecast_base::clock::Clock;
use std::time::SystemTime;

/// Nanoseconds of a monotonic clock.
pub type Nanos = u64;

/// The time at which a turn runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Monotonic time: for timeouts.
    pub monotonic_ns: Nanos,
    /// Nanoseconds since 1970: for records and filters.
    pub unix_ns: u64,
}

impl Now {
    /// Reads both clocks.
    pub(crate) fn read(clock: &Clock) -> Self {
        let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let unix_ns = u64::try_from(unix.as_nanos()).unwrap_or(u64::MAX);
        Self { monotonic_ns: clock.ns(clock.ticks()), unix_ns }
    }
}
