//! The clock that all members read.

use nix::time::{ClockId, clock_gettime};

/// The monotonic clock in nanoseconds, the same in all processes, Java's too.
pub fn monotonic() -> u64 {
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("every system has this clock");
    time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64
}
