//! When to ask for missing frames of one sender.

use crate::Nanos;

/// First interval between two requests for the same frames.
const FIRST_INTERVAL: Nanos = 5_000_000;
/// Longest interval.
const LONGEST_INTERVAL: Nanos = 100_000_000;
/// Time without progress before frames known from hearsay are asked for: they may be on their way,
/// as behind a loss that TCP repairs.
const HEARSAY_DELAY: Nanos = 50_000_000;
/// The same if their sender says so: a transport in order brings its frames before its word.
const WORD_DELAY: Nanos = 1_000_000;
/// Requests without any progress after which frames known from hearsay alone are taken for
/// invented: a member that lacks them would be asked until the view changes.
const HEARSAY_TRIES: u32 = 20;

/// Schedule of the requests for one sender's missing frames.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gap {
    /// Frames below are known to exist.
    heard: u64,
    /// End of the frames that arrived.
    arrived: u64,
    /// Frames below exist by the word of their sender.
    told: u64,
    /// Hearsay of frames below is not believed any more.
    disbelieved: u64,
    /// Frames below have been asked for, if they were missing.
    asked: u64,
    /// Time of the next request; `Nanos::MAX` if nothing is missing.
    pub(crate) due: Nanos,
    interval: Nanos,
    /// Requests since the last progress.
    pub(crate) tries: u32,
}

impl Gap {
    pub(crate) const fn new(first: u64) -> Self {
        Self {
            heard: first,
            arrived: first,
            told: first,
            disbelieved: first,
            asked: first,
            due: Nanos::MAX,
            interval: FIRST_INTERVAL,
            tries: 0,
        }
    }

    /// Frames below are known to exist.
    pub(crate) const fn heard(&self) -> u64 {
        self.heard
    }

    /// A frame arrived ahead of the expected one: the missing frames before it that were not asked
    /// for yet are asked for at once.
    pub(crate) fn on_ahead(
        &mut self,
        now: Nanos,
        expected: u64,
        sequence: u64,
    ) -> Option<(u64, u64)> {
        let first = self.asked.max(expected);
        self.arrived = self.arrived.max(sequence.saturating_add(1));
        self.heard = self.heard.max(self.arrived);
        self.due = self.due.min(now.saturating_add(self.interval));
        if first >= sequence {
            self.asked = self.asked.max(sequence.saturating_add(1));
            return None;
        }
        self.asked = sequence.saturating_add(1);
        Some((first, sequence))
    }

    /// Frames below `next` exist, as their sender says, or another member. True: some of them are
    /// missing.
    pub(crate) fn on_word(
        &mut self,
        now: Nanos,
        expected: u64,
        next: u64,
        is_sender: bool,
    ) -> bool {
        if is_sender {
            self.told = self.told.max(next);
        }
        if is_sender || next > self.disbelieved {
            self.heard = self.heard.max(next);
        }
        if self.heard > expected {
            let delay = if is_sender { WORD_DELAY } else { HEARSAY_DELAY };
            self.due = self.due.min(now.saturating_add(delay));
        }
        self.heard > expected
    }

    /// Asks at the next occasion.
    pub(crate) const fn hurry(&mut self, now: Nanos) {
        (self.due, self.interval, self.tries) = (now, FIRST_INTERVAL, 0);
    }

    /// The expected sequence has grown.
    #[inline]
    pub(crate) fn on_progress(&mut self, now: Nanos, expected: u64) {
        if self.due == Nanos::MAX {
            return;
        }
        (self.interval, self.tries) = (FIRST_INTERVAL, 0);
        self.due = if expected >= self.heard {
            Nanos::MAX
        } else if expected >= self.arrived {
            // Only hearsay is left, and frames arrive: those are on their way.
            now.saturating_add(HEARSAY_DELAY)
        } else {
            self.due.min(now.saturating_add(FIRST_INTERVAL))
        };
    }

    /// Whether missing frames are known from other members alone.
    pub(crate) fn is_hearsay(&self, expected: u64) -> bool {
        self.arrived.max(self.told) <= expected
    }

    /// All that is missing from `expected` on is asked for now.
    pub(crate) fn on_asked(&mut self, now: Nanos, expected: u64) {
        self.asked = self.asked.max(self.heard);
        self.due = now.saturating_add(self.interval);
        self.interval = (2 * self.interval).min(LONGEST_INTERVAL);
        self.tries = self.tries.saturating_add(1);
        if self.tries >= HEARSAY_TRIES && self.is_hearsay(expected) {
            self.disbelieved = self.disbelieved.max(self.heard);
            self.heard = expected;
            (self.due, self.interval, self.tries) = (Nanos::MAX, FIRST_INTERVAL, 0);
        }
    }

    /// Frames wait to be read that may be the missing ones: asks later.
    pub(crate) fn defer(&mut self, now: Nanos) {
        self.due = now.saturating_add(HEARSAY_DELAY);
    }

    /// Asks later, for frames that cannot be used now.
    pub(crate) const fn postpone(&mut self) {
        self.due = Nanos::MAX;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hole_is_asked_for_at_once_and_only_once() {
        let mut gap = Gap::new(5);
        assert_eq!(gap.on_ahead(0, 5, 7), Some((5, 7)));
        assert_eq!(gap.on_ahead(0, 5, 8), None, "no new hole");
        assert_eq!(gap.on_ahead(0, 5, 6), None, "asked for before");
        assert_eq!(gap.on_ahead(0, 5, 10), Some((9, 10)));
        assert_eq!(gap.due, FIRST_INTERVAL);
    }

    #[test]
    fn requests_become_rarer_until_there_is_progress() {
        let mut gap = Gap::new(0);
        gap.on_ahead(0, 0, 9);
        let (mut now, mut waited) = (0, Vec::new());
        for _ in 0..7 {
            waited.push(gap.due - now);
            now = gap.due;
            gap.on_asked(now, 0);
        }
        assert_eq!(waited, [5, 5, 10, 20, 40, 80, 100].map(|ms| ms * 1_000_000));
        gap.on_progress(now, 4);
        assert_eq!(gap.due, now + FIRST_INTERVAL);
        gap.on_progress(now, 10);
        assert_eq!(gap.due, Nanos::MAX);
    }

    #[test]
    fn invented_frames_are_not_asked_for_without_end() {
        let mut gap = Gap::new(3);
        assert!(gap.on_word(0, 3, 9, false));
        for _ in 0..HEARSAY_TRIES {
            let due = gap.due;
            gap.on_asked(due, 3);
        }
        assert_eq!((gap.due, gap.heard()), (Nanos::MAX, 3));
        assert!(!gap.on_word(1, 3, 9, false), "said again");
        assert!(gap.on_word(1, 3, 10, false), "more than before");
        assert!(gap.on_word(1, 3, 9, true), "their sender's word");
        for _ in 0..2 * HEARSAY_TRIES {
            gap.on_asked(gap.due, 3);
        }
        assert_ne!(gap.due, Nanos::MAX, "asked for until they come");
    }

    #[test]
    fn frames_from_hearsay_get_time_to_arrive() {
        let mut gap = Gap::new(0);
        assert!(!gap.on_word(0, 3, 3, false));
        assert_eq!(gap.due, Nanos::MAX);
        assert!(gap.on_word(1, 3, 4, false));
        assert_eq!(gap.due, 1 + HEARSAY_DELAY);
        assert!(gap.on_word(5, 3, 9, false));
        gap.on_progress(7, 5);
        assert_eq!(gap.due, 7 + HEARSAY_DELAY, "frames arrive");
        assert!(gap.on_word(8, 5, 9, true));
        assert_eq!(gap.due, 8 + WORD_DELAY);
    }
}
