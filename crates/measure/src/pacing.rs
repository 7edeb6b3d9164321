//! When messages are sent: on a schedule, or as fast as they go.
//!
//! A schedule has bursts: so many messages that are due together, and evenly spaced bursts. An
//! even schedule is one with bursts of one message. It catches up: it sends every message that
//! is due, one after the other, reads the clock again, and so on; those that were held up by an
//! interruption go in one go, and the most that ever went so are told. It never sleeps.
//!
//! The clock is an argument, so that a schedule can be tried without waiting.

/// One message's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Which message, counted from 0.
    pub index: u64,
    /// When the schedule wants it sent, in ticks; none if there is no schedule.
    pub due: Option<u64>,
}

/// Messages that are sent one after the other, without a look at the clock.
pub trait Burst: Iterator<Item = Slot> {
    /// How many messages of the whole run have been handed out.
    fn sent(&self) -> u64;

    /// Whether these are all.
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

    /// How many messages were handed out.
    fn sent(&self) -> u64;

    /// The most messages that were handed out between two looks at the clock.
    fn largest_burst(&self) -> u64;

    /// The longest time, in ticks, between two readings of the clock with nothing in between: how
    /// long the thread was held up while it waited. None if it never read the clock twice.
    fn longest_gap(&self) -> Option<u64>;
}

/// A schedule of bursts: message `i` is due at
/// `start + ⌊i / burst⌋ × burst × ticks_per_second / rate`.
///
/// The times are exact however long the run: the rounding error of one burst is carried over to
/// the next, so there is no product that could outgrow its type.
#[derive(Clone, Debug)]
pub struct Bursts {
    index: u64,
    count: u64,
    /// Messages that are due together, and how many of these are still to come.
    burst: u64,
    left: u64,
    /// What the latest look at the clock started at, and the most that one ever found due.
    looked_at: u64,
    largest_burst: u64,
    due: u64,
    /// Ticks between bursts: `whole + part / rate`.
    whole: u64,
    part: u64,
    rate: u64,
    /// What of a tick is still owed, times `rate`; less than `rate`.
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

    /// The messages that are due at `now`, without waiting for any; none if there are none. A
    /// thread that has other things to do meanwhile asks again after them.
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

/// Messages between two looks at the stop flag.
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

    /// All of them: there is no look at the clock in between.
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
