//! The clock of the stamps: the processor's time stamp counter where there is one that all CPUs
//! share, else `CLOCK_MONOTONIC`.
//!
//! A stamp taken at arrival must not be taken before the message has really been read. The
//! counter may be read out of order, so [`Clock::after_load`] fences first; without the fence
//! minima of 0 ns were seen.

use std::time::{Duration, Instant};

/// Time of calibrating the counter against `CLOCK_MONOTONIC`.
const CALIBRATION: Duration = Duration::from_millis(50);
/// Reads that are timed to learn what one costs.
const COST_READS: u32 = 20_000;

/// A calibrated clock. Ticks of two processes on one host can be compared.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    ticks_per_ns: f64,
}

impl Clock {
    /// Name of the clock, for the result line.
    pub const NAME: &str = if cfg!(target_arch = "x86_64") { "tsc" } else { "monotonic" };

    /// Learns the speed of the counter; takes 50 ms.
    pub fn calibrated() -> Self {
        let (from_ticks, from) = (now(), Instant::now());
        while from.elapsed() < CALIBRATION {
            std::hint::spin_loop();
        }
        let (to_ticks, elapsed) = (now(), from.elapsed());
        let ticks = to_ticks.saturating_sub(from_ticks) as f64;
        Self { ticks_per_ns: ticks / elapsed.as_nanos() as f64 }
    }

    /// Ticks that pass in so many nanoseconds.
    pub fn ticks(&self, ns: f64) -> f64 {
        ns * self.ticks_per_ns
    }

    /// Nanoseconds that pass in so many ticks.
    pub fn ns(&self, ticks: u64) -> f64 {
        ticks as f64 / self.ticks_per_ns
    }

    /// Cost of one stamp at arrival, in nanoseconds: the mean of many.
    pub fn cost_ns(&self) -> f64 {
        let from = now();
        for _ in 0..COST_READS {
            std::hint::black_box(after_load());
        }
        self.ns(now().saturating_sub(from)) / f64::from(COST_READS)
    }
}

/// The counter, in ticks. Cheap; not ordered against the loads around it.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn now() -> u64 {
    // SAFETY: every x86-64 processor has the time stamp counter, and Linux lets programs read it.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// The counter, read after every earlier load has been done.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn after_load() -> u64 {
    // SAFETY: SSE2, to which the fence belongs, is part of x86-64.
    unsafe { core::arch::x86_64::_mm_lfence() };
    now()
}

/// `CLOCK_MONOTONIC` in nanoseconds.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a live timespec that the call fills.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// `CLOCK_MONOTONIC`, read after every earlier load has been done.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub fn after_load() -> u64 {
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
    now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calibrated_clock_agrees_with_the_monotonic_one() {
        let clock = Clock::calibrated();
        let (ticks, from) = (now(), Instant::now());
        while from.elapsed() < Duration::from_millis(20) {}
        let elapsed = from.elapsed().as_nanos() as f64;
        let measured = clock.ns(now() - ticks);
        assert!((measured / elapsed - 1.0).abs() < 0.05, "{measured} against {elapsed}");
    }
}
