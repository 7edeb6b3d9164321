//! Credit: the bytes that a sender may have under way, adapted to the group and to losses.

use crate::Nanos;

/// Never less than this, or the whole window if that is smaller.
const LEAST: usize = 256 << 10;
/// Interval of adaption.
const INTERVAL: Nanos = 50_000_000;
/// Repairs per frame sent, as a divisor, from which the credit is halved.
const MANY_REPAIRS: u64 = 16;
/// Fewest repairs that count as many.
const SOME_REPAIRS: u64 = 32;

/// Credit of this member's own stream.
#[derive(Clone, Debug, Default)]
pub(crate) struct Credit {
    limit: usize,
    least: usize,
    most: usize,
    /// End of the interval.
    due: Nanos,
    sent: u64,
    repairs: u64,
    refused: bool,
}

impl Credit {
    /// Bytes of one sender in a group of `members`: the window is for all of them together.
    pub(crate) fn share(window: usize, members: usize) -> usize {
        (window / members.max(1)).max(LEAST.min(window))
    }

    /// Begins a view. The credit stays reduced if it was.
    pub(crate) fn reset(&mut self, window: usize, members: usize) {
        let former = core::mem::replace(&mut self.most, Self::share(window, members));
        self.least = LEAST.min(window);
        // In proportion: half of the former credit becomes half of the new one.
        let limit =
            if former == 0 { self.most } else { self.most / former.div_ceil(self.limit.max(1)) };
        self.limit = limit.clamp(self.least, self.most);
    }

    /// Bytes that may be under way.
    #[inline]
    pub(crate) const fn limit(&self) -> usize {
        self.limit
    }

    /// A frame was sent.
    #[inline]
    pub(crate) const fn on_sent(&mut self) {
        self.sent += 1;
    }

    /// A frame of this member's stream was repaired for another member.
    pub(crate) const fn on_repair(&mut self) {
        self.repairs += 1;
    }

    /// A send was refused for lack of credit.
    pub(crate) const fn on_refused(&mut self) {
        self.refused = true;
    }

    /// Memory is short.
    pub(crate) fn halve(&mut self) {
        self.limit = (self.limit / 2).max(self.least);
    }

    /// Adapts once in an interval: half after many repairs, double if sends were refused without.
    pub(crate) fn adapt(&mut self, now: Nanos) {
        if now < self.due {
            return;
        }
        if self.repairs >= SOME_REPAIRS && self.repairs > self.sent / MANY_REPAIRS {
            self.halve();
        } else if self.refused {
            self.limit = (2 * self.limit).min(self.most);
        }
        (self.sent, self.repairs, self.refused) = (0, 0, false);
        self.due = now.saturating_add(INTERVAL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_is_shared_by_the_group_down_to_a_floor() {
        assert_eq!(Credit::share(8 << 20, 4), 2 << 20);
        assert_eq!(Credit::share(8 << 20, 1_000), LEAST);
        assert_eq!(Credit::share(64 << 10, 10), 64 << 10);
    }

    #[test]
    fn much_repair_halves_and_want_of_credit_doubles() {
        let mut credit = Credit::default();
        credit.reset(4 << 20, 2);
        let mut now = 0;
        for expected in [1 << 20, 512 << 10, 256 << 10, 256 << 10] {
            (0..100).for_each(|_| credit.on_sent());
            (0..50).for_each(|_| credit.on_repair());
            credit.adapt(now);
            assert_eq!(credit.limit(), expected);
            now += INTERVAL;
        }
        credit.adapt(now);
        assert_eq!(credit.limit(), 256 << 10, "no need of more");
        credit.on_refused();
        credit.adapt(now + INTERVAL);
        assert_eq!(credit.limit(), 512 << 10);
        credit.reset(4 << 20, 4);
        assert_eq!(credit.limit(), 256 << 10);
    }
}
