//! Check that every message arrived once and in its producer's order.
//!
//! A message holds its number, counted from 0 by its producer, with the producer's own number in
//! the top byte. Each consumer keeps a count, a sum and a check of the order for every producer;
//! the results of several consumers are added at the end.

use super::block::Block;
use serde::Serialize;

const NUMBER_BITS: u32 = 56;
const NUMBER_MASK: u64 = (1 << NUMBER_BITS) - 1;

/// The first message of a producer; the next ones are this plus 1, 2, ...
pub(crate) const fn tag(producer: usize) -> u64 {
    (producer as u64) << NUMBER_BITS
}

/// Messages seen by one consumer, or by several together.
///
/// Messages are mostly consecutive: continuing a run costs a comparison, and only a whole run is
/// added to the sums.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeliveryCheck {
    /// Current run: from `first` to before `next`.
    first: u64,
    next: u64,
    lanes: Vec<Lane>,
    /// Messages that no producer wrote: words differ, or the producer does not exist.
    damaged: u64,
}

/// Messages seen of one producer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Lane {
    /// The least number that keeps the order.
    next: u64,
    count: u64,
    sum: u64,
    /// Exclusive-or: two mistakes that hide each other in the sum mostly show here.
    mixed: u64,
    disordered: u64,
}

/// Delivery errors, in messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DeliveryErrors {
    /// Missing messages.
    pub lost: u64,
    /// Repeated messages.
    pub duplicated: u64,
    /// Messages after later ones of the same producer.
    pub disordered: u64,
    /// Messages with changed content; or equal counts with different sums.
    pub damaged: u64,
}

impl DeliveryErrors {
    /// Whether there are any errors.
    pub const fn is_any(&self) -> bool {
        self.lost != 0 || self.duplicated != 0 || self.disordered != 0 || self.damaged != 0
    }

    /// The sum of both.
    #[must_use]
    pub(crate) const fn and(self, other: Self) -> Self {
        Self {
            lost: self.lost + other.lost,
            duplicated: self.duplicated + other.duplicated,
            disordered: self.disordered + other.disordered,
            damaged: self.damaged + other.damaged,
        }
    }
}

impl DeliveryCheck {
    pub(crate) fn new(producers: usize) -> Self {
        Self { lanes: vec![Lane::default(); producers], ..Self::default() }
    }

    /// Counts messages, mostly consecutive ones of one producer.
    #[inline(always)]
    pub(crate) fn see<const WORDS: usize>(&mut self, blocks: &[Block<WORDS>]) {
        let Some(first) = blocks.first().map(|block| block.0[0]) else { return };
        // Differences are gathered, not looked for, so that every word is read and none waits
        // for another one.
        let mut expected = first;
        let mut differences = 0;
        for block in blocks {
            for word in block.0 {
                differences |= word ^ expected;
            }
            expected = expected.wrapping_add(1);
        }
        if differences != 0 {
            self.look_closely(blocks);
            return;
        }
        if first != self.next {
            self.begin(first);
        }
        self.next = expected;
    }

    /// Counts one message of one word.
    #[inline(always)]
    pub(crate) fn see_word(&mut self, word: u64) {
        if word != self.next {
            self.begin(word);
        }
        self.next = word.wrapping_add(1);
    }

    /// Ends the current run and begins another one.
    #[inline(never)]
    fn begin(&mut self, first: u64) {
        let (begun, count) = (self.first, self.next.wrapping_sub(self.first));
        self.first = first;
        self.next = first;
        let lane = usize::try_from(begun >> NUMBER_BITS).ok();
        match lane.and_then(|lane| self.lanes.get_mut(lane)) {
            Some(lane) => lane.run(begun & NUMBER_MASK, count),
            None => self.damaged += count,
        }
    }

    #[cold]
    fn look_closely<const WORDS: usize>(&mut self, blocks: &[Block<WORDS>]) {
        for block in blocks {
            let word = block.0[0];
            if block.0.iter().all(|other| *other == word) {
                self.see_word(word);
            } else {
                self.damaged += 1;
            }
        }
    }

    /// Adds what another consumer has seen.
    pub(crate) fn add(&mut self, mut other: Self) {
        other.begin(0);
        for (lane, other) in self.lanes.iter_mut().zip(&other.lanes) {
            lane.count += other.count;
            lane.sum = lane.sum.wrapping_add(other.sum);
            lane.mixed ^= other.mixed;
            lane.disordered += other.disordered;
        }
        self.damaged += other.damaged;
    }

    /// Errors, given the number of messages each producer has sent.
    pub(crate) fn against(mut self, sent: &[u64]) -> DeliveryErrors {
        self.begin(0);
        let mut wrong = DeliveryErrors { damaged: self.damaged, ..DeliveryErrors::default() };
        for (lane, sent) in self.lanes.iter().zip(sent) {
            wrong.lost += sent.saturating_sub(lane.count);
            wrong.duplicated += lane.count.saturating_sub(*sent);
            wrong.disordered += lane.disordered;
            let mut all = Lane::default();
            all.run(0, *sent);
            if lane.count == *sent && (lane.sum, lane.mixed) != (all.sum, all.mixed) {
                wrong.damaged += 1;
            }
        }
        wrong
    }
}

impl Lane {
    /// Numbers from `first` on, one after the other.
    fn run(&mut self, first: u64, count: u64) {
        let after = first.wrapping_add(count);
        self.disordered += self.next.saturating_sub(first).min(count);
        self.next = self.next.max(after);
        self.count += count;
        self.sum = self.sum.wrapping_add(below(after)).wrapping_sub(below(first));
        self.mixed ^= mixed_below(after) ^ mixed_below(first);
    }
}

/// The sum of all numbers below `end`, as far as 64 bits hold it.
fn below(end: u64) -> u64 {
    // One of the two factors is even.
    let (half, whole) =
        if end.is_multiple_of(2) { (end / 2, end.wrapping_sub(1)) } else { (end / 2, end) };
    half.wrapping_mul(whole)
}

/// All numbers below `end`, exclusive-or.
const fn mixed_below(end: u64) -> u64 {
    match end & 3 {
        0 => 0,
        1 => end - 1,
        2 => 1,
        _ => end,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PRODUCERS: usize = 2;

    fn blocks(words: &[u64]) -> Vec<Block<2>> {
        words.iter().map(|word| Block::new(*word)).collect()
    }

    /// Errors of `words` seen by one consumer, of ten messages each from two producers.
    fn wrong(words: &[u64]) -> DeliveryErrors {
        let mut seen = DeliveryCheck::new(PRODUCERS);
        words.chunks(4).for_each(|chunk| seen.see(&blocks(chunk)));
        seen.against(&[10, 10])
    }

    fn all() -> Vec<u64> {
        (0..10).chain(tag(1)..tag(1) + 10).collect()
    }

    #[test]
    fn each_message_once_and_in_order_passes() {
        assert_eq!(wrong(&all()), DeliveryErrors::default());
        let both: Vec<u64> = (0..10).flat_map(|number| [tag(1) + number, number]).collect();
        assert_eq!(
            wrong(&both),
            DeliveryErrors::default(),
            "producers need no order among each other"
        );
        assert!(!DeliveryErrors::default().is_any());
    }

    #[test]
    fn every_fault_is_noticed() {
        let right = all();
        let without = [&right[..5], &right[6..]].concat();
        assert_eq!(wrong(&without), DeliveryErrors { lost: 1, ..DeliveryErrors::default() });
        let twice = [&right[..5], &right[4..]].concat();
        assert_eq!(
            wrong(&twice),
            DeliveryErrors { duplicated: 1, disordered: 1, ..DeliveryErrors::default() }
        );
        let mut swapped = right.clone();
        swapped.swap(5, 6);
        assert_eq!(wrong(&swapped), DeliveryErrors { disordered: 1, ..DeliveryErrors::default() });
        let mut replaced = right.clone();
        replaced[5] = right[9];
        assert!(wrong(&replaced).damaged > 0, "counts agree, sums do not");
        let mut foreign = right.clone();
        foreign[5] = tag(7);
        assert_eq!(
            wrong(&foreign),
            DeliveryErrors { lost: 1, damaged: 1, ..DeliveryErrors::default() }
        );
        assert_eq!(wrong(&[]), DeliveryErrors { lost: 20, ..DeliveryErrors::default() });
    }

    #[test]
    fn every_word_of_a_message_counts() {
        let mut seen = DeliveryCheck::new(1);
        seen.see(&[Block([0, 0]), Block([1, 2]), Block([2, 2])]);
        assert_eq!(
            seen.against(&[3]),
            DeliveryErrors { lost: 1, damaged: 1, ..DeliveryErrors::default() }
        );
    }

    #[test]
    fn a_gap_is_no_disorder_and_hidden_mistakes_show() {
        let mut seen = DeliveryCheck::new(1);
        // 1 and 4 for 2 and 3: the same count and the same sum.
        seen.see(&blocks(&[0, 1, 1, 4, 4]));
        let wrong = seen.against(&[5]);
        assert_eq!((wrong.lost, wrong.duplicated, wrong.damaged), (0, 0, 1));
        let mut seen = DeliveryCheck::new(1);
        seen.see(&blocks(&[0, 1]));
        seen.see(&blocks(&[3, 4]));
        assert_eq!(seen.against(&[5]), DeliveryErrors { lost: 1, ..DeliveryErrors::default() });
    }

    proptest! {
        #[test]
        fn shares_of_several_consumers_add_up(
            owners in prop::collection::vec(0usize..3, 40), from in 0u64..8,
        ) {
            let mut consumers = vec![DeliveryCheck::new(PRODUCERS); 3];
            for (number, owner) in owners.iter().enumerate() {
                let word = tag(number % PRODUCERS) + (number / PRODUCERS) as u64;
                consumers[*owner].see_word(word);
            }
            let mut sum = DeliveryCheck::new(PRODUCERS);
            consumers.into_iter().for_each(|consumer| sum.add(consumer));
            prop_assert_eq!(sum.clone().against(&[20, 20]), DeliveryErrors::default());
            prop_assert!(sum.against(&[20 + from, 20]).is_any() == (from > 0));
        }

        #[test]
        fn the_closed_forms_are_the_loops(end in 0u64..2000) {
            prop_assert_eq!(below(end), (0..end).sum::<u64>());
            prop_assert_eq!(mixed_below(end), (0..end).fold(0, |all, number| all ^ number));
        }
    }
}
