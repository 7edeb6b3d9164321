//! When a commit is sent at once, and when it waits for company.

use lanecast_protocol::{MICROSECOND, Nanos};

/// A commit within this time of the end of the last sending follows back to back: however long
/// sending takes, more is waiting than is sent.
const BACK_TO_BACK: Nanos = MICROSECOND;
/// Commits that take longer than this are no stream any more.
const FALTERING: Nanos = 2 * MICROSECOND;
/// So many back-to-back commits are a stream; fewer are a burst, of which each is urgent.
const STREAM: u32 = 16;
/// While corked the clock is read every so many commits.
const LOOK_EVERY: u32 = 8;
/// Bytes that are worth a system call.
const FULL: usize = 60 << 10;

/// What to do with a message that has just been committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Send the full datagrams.
    Send,
    /// Send it, and all before it: nothing may follow for a while.
    Flush,
    /// Keep it: more is coming at this very moment.
    Keep,
}

/// Decides, commit by commit.
///
/// Every commit is sent at once, until they come back to back, faster than they can be sent one by
/// one. From then on they are packed, and sent when there is enough for one large system call, or
/// as soon as the stream falters. A stream that falters once may have been interrupted: it is over
/// if it falters again at once. Whoever comes next notices that, and if nobody does, the conductor.
#[derive(Debug)]
pub(crate) struct Cork {
    corked: bool,
    /// Back-to-back commits so far.
    run: u32,
    /// When the last sending ended, or the last look at the clock.
    last: Nanos,
    unsent: usize,
    looks: u32,
    /// The last look found that the stream had faltered.
    faltered: bool,
}

impl Cork {
    pub(crate) const fn new() -> Self {
        Self { corked: false, run: 0, last: 0, unsent: 0, looks: 0, faltered: false }
    }

    /// Whether commits are packed; if so [`keep`](Self::keep) is to be asked.
    #[inline(always)]
    pub(crate) const fn is_corked(&self) -> bool {
        self.corked
    }

    /// A message that was committed at `committed` was sent by itself, and it is `now`; says
    /// whether the next ones are packed.
    pub(crate) fn sent_alone(&mut self, committed: Nanos, now: Nanos) -> bool {
        let close = committed.wrapping_sub(self.last) < BACK_TO_BACK;
        self.run = if close { self.run + 1 } else { 0 };
        self.last = now;
        if self.run >= STREAM {
            self.corked = true;
            self.looks = LOOK_EVERY;
            self.faltered = false;
        }
        self.corked
    }

    /// A message of `bytes` was committed while corked.
    #[inline(always)]
    pub(crate) fn keep(&mut self, bytes: usize, now: impl FnOnce() -> Nanos) -> Verdict {
        self.unsent += bytes;
        self.looks -= 1;
        if self.looks == 0 && self.falters(now()) {
            Verdict::Flush
        } else if self.unsent >= FULL {
            Verdict::Send
        } else {
            Verdict::Keep
        }
    }

    /// Whether the last few commits took so long that each could have been sent; uncorks if so did
    /// those before.
    fn falters(&mut self, now: Nanos) -> bool {
        let took = now.wrapping_sub(self.last);
        let falters = took > FALTERING * Nanos::from(LOOK_EVERY);
        if falters && self.faltered {
            self.uncork();
        }
        self.faltered = falters;
        self.last = now;
        self.looks = LOOK_EVERY;
        falters
    }

    /// All was sent.
    #[inline]
    pub(crate) fn emptied(&mut self) {
        self.unsent = 0;
    }

    /// Sending, listening, or waiting for room took time that says nothing about the stream.
    pub(crate) fn waited(&mut self, now: Nanos) {
        (self.last, self.looks) = (now, LOOK_EVERY);
    }

    /// From now on each commit is sent at once.
    pub(crate) fn uncork(&mut self) {
        self.corked = false;
        self.run = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_burst_is_sent_message_by_message() {
        let mut cork = Cork::new();
        for burst in 0..100u64 {
            for place in 0..u64::from(STREAM) {
                let now = 1_000_000 + burst * 50_000 + place * 1_500;
                assert!(!cork.sent_alone(now, now + 1_400), "burst {burst}, place {place}");
            }
        }
    }

    /// A stream whose messages take `sending` each while they are sent one by one.
    fn stream(sending: Nanos) {
        let mut cork = Cork::new();
        let mut now = 1_000_000;
        while !cork.sent_alone(now, now + sending) {
            now += sending + 20;
        }
        now += sending;
        let mut sends = 0;
        for _ in 0..10_000 {
            now += 20;
            if cork.keep(30, || now) == Verdict::Send {
                sends += 1;
                now += 100 * MICROSECOND;
                cork.emptied();
                cork.waited(now);
            }
        }
        assert_eq!(sends, 10_000 * 30 / FULL);
        assert!(cork.is_corked());
        for is_over in [false, true] {
            let held = (0..).take_while(|_| {
                now += 20_000;
                cork.keep(30, || now) == Verdict::Keep
            });
            assert!(held.count() < LOOK_EVERY as usize);
            assert_eq!(cork.is_corked(), !is_over);
        }
    }

    #[test]
    fn an_interruption_does_not_end_a_stream() {
        let mut cork = Cork::new();
        let mut now = 1_000_000;
        while !cork.sent_alone(now, now + 1_500) {
            now += 1_520;
        }
        now += 1_500;
        let mut flushes = 0;
        for number in 1..=100_000u64 {
            now += if number % 1_000 == 0 { 200_000 } else { 20 };
            let verdict = cork.keep(30, || now);
            flushes += u64::from(verdict == Verdict::Flush);
            if verdict != Verdict::Keep {
                cork.emptied();
            }
        }
        assert!(cork.is_corked());
        assert_eq!(flushes, 100);
    }

    #[test]
    fn a_stream_is_packed_until_it_falters() {
        stream(1_500);
    }

    #[test]
    fn a_stream_to_many_is_packed_too_however_long_sending_takes() {
        stream(30_000);
    }

    #[test]
    fn messages_that_can_be_sent_one_by_one_are() {
        let mut cork = Cork::new();
        for number in 0..1_000u64 {
            let now = 1_000_000 + number * 3_000;
            assert!(!cork.sent_alone(now, now + 1_200));
        }
    }
}
