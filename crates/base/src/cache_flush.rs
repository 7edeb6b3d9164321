//! Cache flush: a reader writes the lines that it has read back to memory, if that is faster.
//!
//! A writer that comes round its ring owns each line again before it fills it. Over a slow line
//! between the CPUs (two sockets, or two groups of cores with caches of their own) it is faster to
//! take the line from memory than out of the caches of a reader far away: shared memory carried 45
//! million messages of 25 bytes a second with the flush, 27 million without. Over a fast line the
//! flush costs a fifth of the rate and more. No processor tells which line it has, so
//! [`CacheFlush`] tries both now and then, and keeps the faster one.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Size of a cache line.
const LINE_BYTES: usize = 64;
/// Laps of the ring before the first trial, and the most between two that cost little.
const LAPS_MIN: u32 = 8;
const LAPS_MAX: u32 = 1024;
/// Rest after a trial that was lost, in times of the trial: a reader that looks at little of long
/// messages passes a lap in a fraction of the time in which it is flushed.
const REST_SHARE: u32 = 128;
/// Longest such rest: the line may have changed.
const REST_MAX: Duration = Duration::from_secs(1);
/// Laps that are timed before a change and after it; the fastest counts.
const LAPS_TIMED: u32 = 4;
/// Laps after a change that are not timed: the writer meets the flushed lines a lap later, and what
/// the reader was behind by is read at another speed.
const LAPS_SETTLING: u32 = 4;
/// Fewest bytes of a lap: the clock is read after each.
const LAP_BYTES_MIN: u64 = 128 << 10;
/// A lap with fewer bytes a nanosecond is not bound by the line: its writer has little to send.
const BYTES_PER_NANO_MIN: f64 = 0.5;
/// The flush must save at least this share of a lap: 1 in so many.
const GAIN_MIN: u32 = 10;

/// Decides, for one reader of a ring, whether it flushes the lines that it has read. Used on the
/// reader's thread.
///
/// ```
/// use lanecast_base::CacheFlush;
/// let mut flush = CacheFlush::new(1 << 20);
/// assert!(!flush.is_on());
/// // After each lap, as long as the flush says:
/// flush.end_lap();
/// flush.flush(b"bytes that were read");
/// ```
#[derive(Clone, Debug)]
pub struct CacheFlush {
    lap_bytes: u64,
    lap_start: Option<Instant>,
    is_on: bool,
    /// Laps of this cycle: of rest, then of a trial.
    laps: u32,
    /// Laps of rest in this cycle, and the least time of them.
    rest: u32,
    rest_time: Duration,
    rested: Duration,
    /// Fastest lap of this trial without the flush, and with it.
    fastest: [Duration; 2],
    /// Time of this trial since the change.
    trial: Duration,
}

impl CacheFlush {
    /// The flush of a ring of `ring_bytes`, which is off at first; for good where the processor
    /// has no instruction for it.
    pub fn new(ring_bytes: u64) -> Self {
        let never = u64::MAX / 2;
        Self::with_laps(if is_supported() { ring_bytes.max(LAP_BYTES_MIN) } else { never })
    }

    const fn with_laps(lap_bytes: u64) -> Self {
        Self {
            lap_bytes,
            lap_start: None,
            is_on: false,
            laps: 0,
            rest: LAPS_MIN,
            rest_time: Duration::ZERO,
            rested: Duration::ZERO,
            fastest: [Duration::MAX; 2],
            trial: Duration::ZERO,
        }
    }

    /// Whether the reader flushes.
    pub const fn is_on(&self) -> bool {
        self.is_on
    }

    /// Length of a lap in bytes.
    #[inline(always)]
    pub const fn lap_bytes(&self) -> u64 {
        self.lap_bytes
    }

    /// Flushes what was read, if the flush is on: the cache lines from the one of the first byte of
    /// `read` to the last that ends within it. Of ranges that follow one another, each line is
    /// flushed once, when all of it was read.
    #[inline(always)]
    pub fn flush(&self, read: &[u8]) {
        if self.is_on {
            flush_lines(read);
        }
    }

    /// Notes that the reader has read another [`lap_bytes`](Self::lap_bytes).
    #[cold]
    pub fn end_lap(&mut self) {
        let now = Instant::now();
        if let Some(start) = self.lap_start.replace(now) {
            self.decide(now.duration_since(start));
        }
    }

    /// Takes the time of a lap into account.
    fn decide(&mut self, took: Duration) {
        if (self.lap_bytes as f64) < took.as_nanos() as f64 * BYTES_PER_NANO_MIN {
            if self.is_on {
                self.rest = LAPS_MIN;
            }
            // A trial that it breaks off begins anew, after its rest; a rest goes on.
            if self.is_on || self.laps > self.rest {
                (self.is_on, self.laps, self.rested) = (false, 0, Duration::ZERO);
            }
            // A pause is rest as well: else bursts shorter than the rest would see no trial again.
            self.rested += took;
            // The laps of a trial that it breaks off say nothing about a later one.
            (self.fastest, self.trial) = ([Duration::MAX; 2], Duration::ZERO);
            return;
        }
        if self.laps < self.rest {
            self.rested += took;
        } else if self.rested < self.rest_time {
            self.rested += took;
            return;
        }
        self.laps += 1;
        let trial = self.laps.saturating_sub(self.rest);
        let changed = LAPS_TIMED + LAPS_SETTLING;
        if (1..=LAPS_TIMED).contains(&trial) || trial > changed {
            let fastest = &mut self.fastest[usize::from(self.is_on)];
            *fastest = took.min(*fastest);
        }
        if trial > LAPS_TIMED {
            self.trial += took;
        }
        if trial == LAPS_TIMED {
            self.is_on = !self.is_on;
        } else if trial == changed + LAPS_TIMED {
            self.end_trial();
        }
    }

    fn end_trial(&mut self) {
        let [without, with] = std::mem::replace(&mut self.fastest, [Duration::MAX; 2]);
        let was_on = !self.is_on;
        self.is_on = with + without / GAIN_MIN <= without;
        self.laps = 0;
        let is_lost = self.is_on == was_on;
        self.rest = if is_lost { (self.rest * 4).min(LAPS_MAX) } else { LAPS_MIN * 8 };
        let trial = std::mem::take(&mut self.trial);
        self.rest_time =
            if is_lost { trial.saturating_mul(REST_SHARE).min(REST_MAX) } else { Duration::ZERO };
        self.rested = Duration::ZERO;
    }
}

#[cold]
#[inline(never)]
fn flush_lines(bytes: &[u8]) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        let range = bytes.as_ptr_range();
        let (mut line, end) = (range.start.addr() & !(LINE_BYTES - 1), range.end.addr());
        while line + LINE_BYTES <= end {
            // SAFETY: the line holds a byte of `bytes`, and mappings hold whole lines. The
            // processor has the instruction, or the flush would be off. It changes no byte.
            unsafe {
                core::arch::asm!(
                    "clflushopt [{line}]",
                    line = in(reg) line,
                    options(nostack, preserves_flags),
                );
            }
            line += LINE_BYTES;
        }
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = bytes;
}

/// Whether this processor can flush lines without waiting for each.
fn is_supported() -> bool {
    static SUPPORTED: OnceLock<bool> = OnceLock::new();
    *SUPPORTED.get_or_init(|| {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        #[allow(unused_unsafe, reason = "later compilers take the intrinsics for safe")]
        {
            use core::arch::x86_64::{__cpuid_count, __get_cpuid_max};
            // SAFETY: every processor of this architecture has the instruction.
            let (leaves, _) = unsafe { __get_cpuid_max(0) };
            // SAFETY: as above, and the processor has the leaf.
            leaves >= 7 && unsafe { __cpuid_count(7, 0) }.ebx & (1 << 23) != 0
        }
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        false
    })
}

#[cfg(test)]
mod tests;
