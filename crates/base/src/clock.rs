//! Clock ticks that two processes of one host can compare.
//!
//! Where the processor has an invariant time-stamp counter that the kernel trusts, a tick is a
//! step of that counter (read in about 16 ns on virtual machines); elsewhere a tick is a nanosecond
//! of `CLOCK_MONOTONIC` (60 ns and more there). Both count from the host's start, so a timestamp
//! written by one process means the same in another.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Source of a clock's ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The processor's time-stamp counter.
    Tsc,
    /// The kernel's `CLOCK_MONOTONIC`.
    Monotonic,
    /// A function that a test provides.
    Simulated,
}

/// Scale of a clock whose tick is a nanosecond.
const NANOSECONDS: u64 = 1 << 32;

/// A tick counter and its rate.
///
/// ```
/// let clock = lanecast_base::clock::Clock::host();
/// let start = clock.ticks();
/// assert!(clock.ns(clock.ticks_ordered().wrapping_sub(start)) < 1_000_000_000);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    source: Source,
    /// Nanoseconds per tick, times 2^32.
    scale: u64,
    /// Reads any source other than the time-stamp counter.
    read: fn() -> u64,
}

impl Clock {
    /// The host's clock: chosen and calibrated once per process (about 20 ms at first use).
    pub fn host() -> Self {
        static HOST: OnceLock<Clock> = OnceLock::new();
        *HOST.get_or_init(|| {
            if tsc_is_trusted() {
                Self { source: Source::Tsc, scale: calibrate(), read: monotonic_ns }
            } else {
                Self { source: Source::Monotonic, scale: NANOSECONDS, read: monotonic_ns }
            }
        })
    }

    /// A clock for tests, with the nanoseconds that `read` returns. They must never decrease, and
    /// must advance with each read, or waiting for a time never ends.
    ///
    /// ```
    /// let clock = lanecast_base::clock::Clock::simulated(|| 42);
    /// assert_eq!((clock.ticks_ordered(), clock.ns(7), clock.name()), (42, 7, "simulated"));
    /// ```
    pub const fn simulated(read: fn() -> u64) -> Self {
        Self { source: Source::Simulated, scale: NANOSECONDS, read }
    }

    /// Source of the ticks.
    pub const fn source(&self) -> Source {
        self.source
    }

    /// Name of the source, to print beside measurements.
    pub const fn name(&self) -> &'static str {
        match self.source {
            Source::Tsc => "tsc",
            Source::Monotonic => "monotonic",
            Source::Simulated => "simulated",
        }
    }

    /// Now. The processor may read the counter a few instructions early or late.
    #[inline(always)]
    pub fn ticks(&self) -> u64 {
        match self.source {
            Source::Tsc => counter(),
            Source::Monotonic | Source::Simulated => (self.read)(),
        }
    }

    /// Now, read after every earlier load has its value: the timestamp to take on receipt.
    #[inline(always)]
    pub fn ticks_ordered(&self) -> u64 {
        match self.source {
            Source::Tsc => counter_ordered(),
            Source::Monotonic | Source::Simulated => (self.read)(),
        }
    }

    /// `ticks` as nanoseconds.
    #[inline(always)]
    pub const fn ns(&self, ticks: u64) -> u64 {
        ((ticks as u128 * self.scale as u128) >> 32) as u64
    }

    /// `ns` nanoseconds as ticks.
    pub const fn from_ns(&self, ns: u64) -> u64 {
        (((ns as u128) << 32) / self.scale as u128) as u64
    }

    /// Nanoseconds that one reading takes: the median of 31 rounds.
    pub fn cost_ns(&self) -> f64 {
        const READS: u64 = 1000;
        let mut rounds: Vec<u64> = (0..31)
            .map(|_| {
                let start = self.ticks_ordered();
                for _ in 0..READS {
                    std::hint::black_box(self.ticks());
                }
                self.ticks_ordered().wrapping_sub(start)
            })
            .collect();
        rounds.sort_unstable();
        let median = rounds[rounds.len() / 2];
        (median as f64 * self.scale as f64) / (READS as f64 * (1u64 << 32) as f64)
    }
}

/// The time at which a wait of `timeout` ends. Longer ones than 30 years, such as `Duration::MAX`,
/// end then: `Instant` could not hold their ends.
///
/// ```
/// use std::time::{Duration, Instant};
///
/// assert!(lanecast_base::clock::deadline(Duration::MAX) > Instant::now());
/// ```
pub fn deadline(timeout: Duration) -> Instant {
    const GENERATION: Duration = Duration::from_secs(30 * 365 * 86_400);
    Instant::now() + timeout.min(GENERATION)
}

fn monotonic_ns() -> u64 {
    // `Instant` is CLOCK_MONOTONIC on Linux but hides its origin, and a difference from the first
    // reading would differ between processes: hence the system call.
    let mut now = Timespec { seconds: 0, nanoseconds: 0 };
    // SAFETY: `now` is a valid, writable timespec for the call's duration.
    unsafe { clock_gettime(CLOCK_MONOTONIC, &mut now) };
    now.seconds as u64 * 1_000_000_000 + now.nanoseconds as u64
}

#[repr(C)]
struct Timespec {
    seconds: i64,
    nanoseconds: i64,
}

const CLOCK_MONOTONIC: i32 = 1;

// The prototype of clock_gettime(2) on 64-bit Linux.
unsafe extern "C" {
    fn clock_gettime(clock: i32, now: *mut Timespec) -> i32;
}

/// Whether the counter is invariant and the kernel lists `tsc` as a clock source, which it does
/// only if the counter is steady and synchronised on all CPUs.
fn tsc_is_trusted() -> bool {
    const LIST: &str = "/sys/devices/system/clocksource/clocksource0/available_clocksource";
    counter_is_invariant()
        && std::fs::read_to_string(LIST)
            .is_ok_and(|list| list.split_whitespace().any(|name| name == "tsc"))
}

fn calibrate() -> u64 {
    let (ticks_start, start) = both_clocks();
    while start.elapsed() < Duration::from_millis(20) {
        core::hint::spin_loop();
    }
    let (ticks_end, end) = both_clocks();
    let ticks = u128::from(ticks_end.wrapping_sub(ticks_start)).max(1);
    (((end - start).as_nanos() << 32) / ticks).max(1) as u64
}

/// Counter and kernel clock at the same moment. Of 32 pairs the fastest read counts: a pause
/// between the two readings, common on virtual machines, would distort every measurement.
fn both_clocks() -> (u64, Instant) {
    let read = || {
        let before = counter_ordered();
        let now = Instant::now();
        let took = counter_ordered().wrapping_sub(before);
        (took, before.wrapping_add(took / 2), now)
    };
    let best = (0..31).fold(read(), |best, _| {
        let next = read();
        if next.0 < best.0 { next } else { best }
    });
    (best.1, best.2)
}

#[cfg(target_arch = "x86_64")]
mod arch {
    use core::arch::x86_64::{__cpuid, _mm_lfence, _rdtsc};

    #[inline(always)]
    pub(super) fn counter() -> u64 {
        // SAFETY: every x86-64 processor has the instruction.
        unsafe { _rdtsc() }
    }

    #[inline(always)]
    pub(super) fn counter_ordered() -> u64 {
        // SAFETY: every x86-64 processor has the instruction.
        unsafe { _mm_lfence() };
        counter()
    }

    /// CPUID leaf 0x8000_0007, EDX bit 8: the counter's rate never changes.
    #[allow(unused_unsafe, reason = "safe from Rust 1.94 on, unsafe before")]
    pub(super) fn counter_is_invariant() -> bool {
        // SAFETY: every x86-64 processor has CPUID.
        let highest = unsafe { __cpuid(0x8000_0000) }.eax;
        // SAFETY: as above.
        highest >= 0x8000_0007 && unsafe { __cpuid(0x8000_0007) }.edx & (1 << 8) != 0
    }
}

#[cfg(target_arch = "aarch64")]
mod arch {
    #[inline(always)]
    pub(super) fn counter() -> u64 {
        let ticks: u64;
        // SAFETY: reading the virtual counter is allowed to every Linux process.
        unsafe { core::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack)) };
        ticks
    }

    #[inline(always)]
    pub(super) fn counter_ordered() -> u64 {
        // SAFETY: a barrier without operands.
        unsafe { core::arch::asm!("isb", options(nomem, nostack)) };
        counter()
    }

    /// The architecture's generic timer runs at one rate on all cores.
    pub(super) fn counter_is_invariant() -> bool {
        false // Its clock source is called arch_sys_counter; CLOCK_MONOTONIC is as cheap there.
    }
}

use arch::{counter, counter_is_invariant, counter_ordered};
