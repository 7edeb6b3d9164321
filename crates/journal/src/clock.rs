//! Wall clock and deadlines.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The current time, in nanoseconds since 1970.
pub(crate) fn unix_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// overflow.
pub(crate) fn deadline(timeout: Duration) -> Instant {
    const GENERATION: Duration = Duration::from_secs(30 * 365 * 86_400);
    Instant::now() + timeout.min(GENERATION)
}
