//! Pacing of messages: on a schedule, or flat out.
//!
//! A schedule has evenly spaced bursts of messages that are due together; an even schedule has
//! bursts of one message. A schedule catches up: it sends all messages that are due back to back
//! and then reads the clock again. After an interruption, all delayed messages go at once; the
//! largest such burst is reported. A schedule spins and never sleeps.
//!
//! The clock is an argument, so that tests need not wait.

/// The slot of one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Which message, counted from 0.
    pub index: u64,
    /// Intended time in ticks; none without a schedule.
    pub due: Option<u64>,
}

/// Messages sent back to back, without reading the clock.
pub trait Burst: Iterator<Item = Slot> {
    /// Number of messages of the whole run handed out so far.
    fn sent(&self) -> u64;

    /// Whether all messages of the run are handed out.
    fn run_is_over(&self) -> bool;
}

/// A sequence of bursts.
pub trait Pace {
    /// Messages to be sent now.
    type Burst<'a>: Burst
    where
        Self: 'a;

    /// Waits until a message is due, reading `now` (ticks); none after the last message, or as
    /// soon as `stop` is true.
    fn next_burst(
        &mut self,
        now: impl Fn() -> u64,
        stop: &dyn Fn() -> bool,
    ) -> Option<Self::Burst<'_>>;

    /// Number of messages handed out.
    fn sent(&self) -> u64;

    /// Most messages handed out between two readings of the clock.
    fn largest_burst(&self) -> u64;

    /// The longest gap between two back-to-back readings of the clock while waiting, in ticks. None
    /// if the clock was not read twice.
    fn longest_gap(&self) -> Option<u64>;
}

/// A schedule of bursts: message `i` is due at
/// `start + ⌊i / burst⌋ × burst × ticks_per_second / rate`.
///
/// Times are exact in runs of any length: the rounding error of one burst is carried over to the
/// next, so there is no product that could overflow.
#[derive(Clone, Debug)]
pub struct Bursts {
    index: u64,
    count: u64,
    /// Messages due together, and the number of them still to send.
    burst: u64,
    left: u64,
    /// Index at the latest reading of the clock, and the most messages due at one reading.
    looked_at: u64,
    largest_burst: u64,
    due: u64,
    /// Ticks between bursts: `whole + part / rate`.
    whole: u64,
    part: u64,
    rate: u64,
    /// Fraction of a tick carried over to the next burst, times `rate`; less than `rate`.
    owed: u64,
    longest_gap: Option<u64>,
}

impl Bursts {
    /// A schedule of `count` messages at `rate` (1 or more) a second on average, `burst` (1 or
    /// more) at a time, the first ones due at `start`.
    ///
    /// # Panics
    /// If `rate` or `burst` is 0: that is no schedule.
    pub fn new(rate: u64, burst: u64, count: u64, start: u64, ticks_per_second: u64) -> Self {
        assert!(rate > 0 && burst > 0, "a schedule needs a rate, and messages");
        let rate_wide = u128::from(rate);
        let apart = u128::from(burst) * u128::from(ticks_per_second);
        Self {
            index: 0,
            count,
            burst,
            left: burst,
            looked_at: 0,
            largest_burst: 0,
            due: start,
            whole: u64::try_from(apart / rate_wide).unwrap_or(u64::MAX / 4),
            part: (apart % rate_wide) as u64,
            rate,
            owed: 0,
            longest_gap: None,
        }
    }

    /// An even schedule: message `i` is due at `start + i × ticks_per_second / rate`.
    ///
    /// # Panics
    /// As [`new`](Self::new).
    pub fn even(rate: u64, count: u64, start: u64, ticks_per_second: u64) -> Self {
        Self::new(rate, 1, count, start, ticks_per_second)
    }

    /// The messages due at `now`, without waiting; none if no message is due. For threads with
    /// other work in between.
    #[inline]
    pub fn due_at(&mut self, now: u64) -> Option<DueBurst<'_>> {
        self.largest_burst = self.largest_burst();
        self.looked_at = self.index;
        let is_due = self.index < self.count && self.is_due(now);
        is_due.then_some(DueBurst { pace: self, now })
    }

    #[inline(always)]
    fn advance(&mut self) {
        self.index += 1;
        self.left -= 1;
        if self.left > 0 {
            return;
        }
        self.left = self.burst;
        self.due = self.due.wrapping_add(self.whole);
        // `owed + part >= rate`, written so that it cannot overflow.
        if self.owed >= self.rate - self.part {
            self.owed -= self.rate - self.part;
            self.due = self.due.wrapping_add(1);
        } else {
            self.owed += self.part;
        }
    }

    #[inline(always)]
    fn is_due(&self, now: u64) -> bool {
        now.wrapping_sub(self.due).cast_signed() >= 0
    }
}

impl Pace for Bursts {
    type Burst<'a> = DueBurst<'a>;

    #[inline]
    fn next_burst(
        &mut self,
        now: impl Fn() -> u64,
        stop: &dyn Fn() -> bool,
    ) -> Option<DueBurst<'_>> {
        self.largest_burst = self.largest_burst();
        self.looked_at = self.index;
        if self.index == self.count || stop() {
            return None;
        }
        let mut read = now();
        while !self.is_due(read) {
            if stop() {
                return None;
            }
            let before = read;
            read = now();
            self.longest_gap = self.longest_gap.max(Some(read.saturating_sub(before)));
        }
        Some(DueBurst { pace: self, now: read })
    }

    fn sent(&self) -> u64 {
        self.index
    }

    fn largest_burst(&self) -> u64 {
        self.largest_burst.max(self.index - self.looked_at)
    }

    fn longest_gap(&self) -> Option<u64> {
        self.longest_gap
    }
}

/// The messages of [`Bursts`] that are due at one moment.
#[derive(Debug)]
pub struct DueBurst<'a> {
    pace: &'a mut Bursts,
    now: u64,
}

impl Iterator for DueBurst<'_> {
    type Item = Slot;
    #[inline(always)]
    fn next(&mut self) -> Option<Slot> {
        let pace = &mut *self.pace;
        if pace.index == pace.count || !pace.is_due(self.now) {
            return None;
        }
        let slot = Slot { index: pace.index, due: Some(pace.due) };
        pace.advance();
        Some(slot)
    }
}

impl Burst for DueBurst<'_> {
    fn sent(&self) -> u64 {
        self.pace.index
    }

    fn run_is_over(&self) -> bool {
        self.pace.index == self.pace.count
    }
}

/// No schedule: every message is due. The clock is not read.
#[derive(Clone, Debug)]
pub struct FlatOut {
    index: u64,
    count: u64,
}

/// Messages between two checks of the stop flag.
const STRETCH: u64 = 1 << 16;

impl FlatOut {
    /// `count` messages, as fast as they go.
    pub const fn new(count: u64) -> Self {
        Self { index: 0, count }
    }
}

impl Pace for FlatOut {
    type Burst<'a> = FlatOutBurst<'a>;

    #[inline]
    fn next_burst(
        &mut self,
        _now: impl Fn() -> u64,
        stop: &dyn Fn() -> bool,
    ) -> Option<FlatOutBurst<'_>> {
        if self.index == self.count || stop() {
            return None;
        }
        let end = self.count.min(self.index.saturating_add(STRETCH));
        Some(FlatOutBurst { index: &mut self.index, end, count: self.count })
    }

    fn sent(&self) -> u64 {
        self.index
    }

    /// All messages: the clock is never read.
    fn largest_burst(&self) -> u64 {
        self.index
    }

    fn longest_gap(&self) -> Option<u64> {
        None
    }
}

/// A stretch of a [`FlatOut`] run.
#[derive(Debug)]
pub struct FlatOutBurst<'a> {
    index: &'a mut u64,
    end: u64,
    count: u64,
}

impl Iterator for FlatOutBurst<'_> {
    type Item = Slot;
    #[inline(always)]
    fn next(&mut self) -> Option<Slot> {
        let index = *self.index;
        (index < self.end).then(|| {
            *self.index = index + 1;
            Slot { index, due: None }
        })
    }
}

impl Burst for FlatOutBurst<'_> {
    fn sent(&self) -> u64 {
        *self.index
    }

    fn run_is_over(&self) -> bool {
        *self.index == self.count
    }
}

#[cfg(test)]
mod tests;
