//! Order, loss and repetition of one sender's messages at one receiver.

use std::collections::VecDeque;
use std::ops::Range;

/// Most gaps remembered; the oldest one counts as lost for good beyond that.
const GAPS_MAX: usize = 1 << 20;

/// The numbers seen of one sender.
#[derive(Clone, Debug, Default)]
pub(super) struct SenderCheck {
    /// One more than the highest number seen.
    next: u64,
    /// Different messages seen.
    pub(super) received: u64,
    pub(super) duplicated: u64,
    /// Messages after later ones.
    pub(super) disordered: u64,
    /// Numbers below `next` that were not seen, rising.
    gaps: VecDeque<Range<u64>>,
}

impl SenderCheck {
    /// Counts the message with `number`.
    #[inline]
    pub(super) fn see(&mut self, number: u64) {
        if number == self.next {
            self.next += 1;
            self.received += 1;
        } else {
            self.see_out_of_turn(number);
        }
    }

    #[cold]
    fn see_out_of_turn(&mut self, number: u64) {
        if number > self.next {
            if self.gaps.len() == GAPS_MAX {
                self.gaps.pop_front();
            }
            self.gaps.push_back(self.next..number);
            self.next = number + 1;
            self.received += 1;
            return;
        }
        let at = self.gaps.partition_point(|gap| gap.end <= number);
        let Some(gap) = self.gaps.get_mut(at).filter(|gap| gap.contains(&number)) else {
            self.duplicated += 1;
            return;
        };
        self.received += 1;
        self.disordered += 1;
        let rest = number + 1..gap.end;
        gap.end = number;
        let is_empty = gap.is_empty();
        match (is_empty, rest.is_empty()) {
            (true, true) => drop(self.gaps.remove(at)),
            (true, false) => self.gaps[at] = rest,
            (false, true) => {}
            (false, false) => self.gaps.insert(at + 1, rest),
        }
    }

    /// Messages missing of the first `count`.
    pub(super) const fn lost(&self, count: u64) -> u64 {
        count.saturating_sub(self.received)
    }

    /// One more than the highest number seen.
    pub(super) const fn next(&self) -> u64 {
        self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn losses_repetitions_and_disorder_are_told_apart() {
        let mut check = SenderCheck::default();
        for number in [0, 1, 5, 3, 3, 2, 9] {
            check.see(number);
        }
        assert_eq!((check.received, check.duplicated, check.disordered), (6, 1, 2));
        assert_eq!((check.lost(10), check.lost(12), check.next()), (4, 6, 10));
    }

    proptest! {
        #[test]
        fn counts_equal_those_of_a_set(numbers in prop::collection::vec(0u64..40, 0..80)) {
            let mut check = SenderCheck::default();
            let (mut seen, mut highest) = (BTreeSet::new(), None);
            let (mut duplicated, mut disordered) = (0, 0);
            for number in numbers {
                check.see(number);
                if !seen.insert(number) {
                    duplicated += 1;
                } else if highest.is_some_and(|highest| number < highest) {
                    disordered += 1;
                }
                highest = highest.max(Some(number));
            }
            prop_assert_eq!(check.received, seen.len() as u64);
            prop_assert_eq!((check.duplicated, check.disordered), (duplicated, disordered));
            prop_assert_eq!(check.lost(40), 40 - seen.len() as u64);
        }
    }
}
