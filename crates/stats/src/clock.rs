//! Wall-clock time.

use std::time::SystemTime;

/// Nanoseconds since 1970.
pub fn unix_ns() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}
