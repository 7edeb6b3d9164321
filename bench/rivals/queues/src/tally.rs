//! Check of every value that a consumer has seen.
//!
//! ```text
//!    value:  | lane: 8 bits | number in the lane: 56 bits |
//! ```
//!
//! Each producer numbers its messages in a lane of its own. A consumer of everything knows what
//! must come next. Where consumers share the messages, each sees the numbers of a lane rise, and
//! count and sum over all consumers tell whether each message went to exactly one of them.

use std::ops::Range;

use crate::load::MOST_PRODUCERS;

const LANE_SHIFT: u32 = 56;
/// Takes the place of a value at the end, where a consumer sleeps in the library.
pub const END: u64 = u64::MAX;

/// The values of one producer.
pub fn lane(index: usize, numbers: Range<u64>) -> Range<u64> {
    let first = (index as u64) << LANE_SHIFT;
    first + numbers.start..first + numbers.end
}

/// Values that one consumer has seen.
#[derive(Clone, Debug)]
pub struct Tally {
    received: u64,
    /// Values that were not the next one.
    misplaced: u64,
    sum: u64,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    /// Sees everything, in order.
    All { next: u64, end: u64 },
    /// Sees some of each lane, in order.
    Some { next: [u64; MOST_PRODUCERS] },
}

impl Tally {
    /// Tally of a consumer that sees each of these values.
    pub fn of_all(values: Range<u64>) -> Self {
        let kind = Kind::All { next: values.start, end: values.end };
        Self { received: 0, misplaced: 0, sum: 0, kind }
    }

    /// Tally of a consumer that shares the values with others.
    pub fn of_some() -> Self {
        let kind = Kind::Some { next: [0; MOST_PRODUCERS] };
        Self { received: 0, misplaced: 0, sum: 0, kind }
    }

    /// One value.
    #[inline(always)]
    pub fn one(&mut self, value: u64) {
        match &mut self.kind {
            Kind::All { next, .. } => {
                self.misplaced += u64::from(value != *next);
                *next += 1;
            }
            Kind::Some { next } => {
                let next = &mut next[(value >> LANE_SHIFT) as usize % MOST_PRODUCERS];
                self.misplaced += u64::from(value < *next);
                *next = value + 1;
                self.sum = self.sum.wrapping_add(value);
                self.received += 1;
            }
        }
    }

    /// Several values that lie side by side.
    #[inline(always)]
    pub fn slice(&mut self, values: &[u64]) {
        let Kind::All { next, .. } = &mut self.kind else {
            return values.iter().for_each(|value| self.one(*value));
        };
        // Differences are only gathered here, which the compiler does several at a time.
        let mut difference = 0;
        for (index, value) in values.iter().enumerate() {
            difference |= value ^ (*next + index as u64);
        }
        *next += values.len() as u64;
        if difference != 0 {
            self.misplaced += count_misplaced(values, *next - values.len() as u64);
        }
    }

    /// Whether a consumer that sees everything has seen it.
    #[inline(always)]
    pub fn is_complete(&self) -> bool {
        matches!(self.kind, Kind::All { next, end } if next >= end)
    }

    /// Number of values that a consumer of all values has yet to see.
    #[inline(always)]
    pub fn left(&self) -> Option<u64> {
        match self.kind {
            Kind::All { next, end } => Some(end.saturating_sub(next)),
            Kind::Some { .. } => None,
        }
    }
}

#[cold]
fn count_misplaced(values: &[u64], first: u64) -> u64 {
    (first..).zip(values).filter(|(expected, value)| expected != *value).count() as u64
}

/// Values that all consumers together have seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Messages; where each consumer sees everything, those that each has seen.
    pub received: u64,
    /// Messages that no consumer has seen.
    pub lost: u64,
    /// Values out of order, of another content, or seen twice.
    pub damaged: u64,
}

impl Verdict {
    /// Judges consumers of these values, lane by lane.
    pub fn of(tallies: &[Tally], lanes: &[Range<u64>]) -> Self {
        let sent: u64 = lanes.iter().map(|lane| lane.end - lane.start).sum();
        let misplaced: u64 = tallies.iter().map(|tally| tally.misplaced).sum();
        let shared = tallies.iter().all(|tally| tally.left().is_none());
        if !shared {
            let left = tallies.iter().filter_map(Tally::left);
            let lost: u64 = left.clone().sum();
            let received = sent - left.max().unwrap_or_default();
            return Self { received, lost, damaged: misplaced };
        }
        let received: u64 = tallies.iter().map(|tally| tally.received).sum();
        let sum = tallies.iter().fold(0_u64, |sum, tally| sum.wrapping_add(tally.sum));
        let expected = lanes.iter().fold(0_u64, |sum, lane| sum.wrapping_add(sum_of(lane)));
        let twice = received.saturating_sub(sent);
        let other = u64::from(received == sent && sum != expected);
        Self { received, lost: sent.saturating_sub(received), damaged: misplaced + twice + other }
    }
}

/// Sum of a range, wrapped.
fn sum_of(range: &Range<u64>) -> u64 {
    let (first, count) = (u128::from(range.start), u128::from(range.end - range.start));
    (first.wrapping_mul(count).wrapping_add(count * count.saturating_sub(1) / 2)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_sees_everything_notices_a_wrong_a_missing_and_a_swapped_value() {
        let seen = |values: &[u64]| {
            let mut tally = Tally::of_all(10..15);
            tally.slice(&values[..2]);
            values[2..].iter().for_each(|value| tally.one(*value));
            Verdict::of(&[tally], std::slice::from_ref(&(10..15)))
        };
        assert_eq!(seen(&[10, 11, 12, 13, 14]), Verdict { received: 5, lost: 0, damaged: 0 });
        assert_eq!(seen(&[10, 11, 12, 13]), Verdict { received: 4, lost: 1, damaged: 0 });
        assert_eq!(seen(&[10, 99, 12, 13, 14]).damaged, 1);
        assert_eq!(seen(&[10, 11, 13, 12, 14]).damaged, 2);
    }

    #[test]
    fn who_shares_notices_a_lost_a_doubled_and_an_overtaken_value() {
        let lanes = [lane(0, 3..6), lane(1, 3..6)];
        let at = |index: usize, number: u64| lane(index, number..number).start;
        let all = [at(0, 3), at(1, 3), at(0, 4), at(1, 4), at(0, 5), at(1, 5)];
        let seen = |a: &[u64], b: &[u64]| {
            let tally = |values: &[u64]| {
                let mut tally = Tally::of_some();
                tally.slice(values);
                tally
            };
            Verdict::of(&[tally(a), tally(b)], &lanes)
        };
        assert_eq!(seen(&all[..2], &all[2..]), Verdict { received: 6, lost: 0, damaged: 0 });
        assert_eq!(seen(&all[..2], &all[3..]).lost, 1);
        assert_eq!(seen(&all[..3], &all[2..]).damaged, 1);
        // One lost, another twice: the count is right and the sum is not.
        assert_eq!(seen(&[all[0], all[1]], &[all[0], all[3], all[4], all[5]]).damaged, 1);
        assert_eq!(seen(&[all[2], all[0]], &[all[1], all[3], all[4], all[5]]).damaged, 1);
    }
}
