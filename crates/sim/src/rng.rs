//! Random numbers of a run.

use lanecast_protocol::Nanos;
use lanecast_protocol::rng::{Rng, mix};
use std::ops::RangeInclusive;

/// Probability, in millionths.
pub type Millionths = u32;

/// Random number generator of one run, or of one part of it.
#[derive(Clone, Debug)]
pub struct SimRng(Rng);

impl SimRng {
    /// Creates the generator of `seed`.
    pub const fn new(seed: u64) -> Self {
        Self(Rng::new(mix(seed ^ 0x51b1_1f00_d5ee_d000)))
    }

    /// Separate generator for a part of the run: its draws do not shift those of others.
    pub const fn fork(&mut self) -> Self {
        Self::new(self.0.next_u64())
    }

    /// Next number.
    pub const fn any(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Number in `range`.
    pub const fn within(&mut self, range: RangeInclusive<u64>) -> u64 {
        let span = range.end().saturating_sub(*range.start()).saturating_add(1);
        *range.start() + self.0.below(span)
    }

    /// Number in `range`, with each order of magnitude equally likely.
    pub fn spread(&mut self, range: RangeInclusive<u64>) -> u64 {
        let (low, high) = (*range.start(), *range.end());
        let doublings = u64::from((high / low.max(1)).max(1).ilog2()) + 1;
        let step = self.within(0..=doublings - 1);
        let from = low.max(1) << step;
        self.within(from..=(2 * from).min(high).max(from)).clamp(low, high)
    }

    /// True with a probability of `odds` millionths.
    pub const fn happens(&mut self, odds: Millionths) -> bool {
        odds > 0 && self.0.below(1_000_000) < odds as u64
    }

    /// True `percent` times out of a hundred.
    pub const fn percent(&mut self, percent: u32) -> bool {
        self.happens(percent * 10_000)
    }

    /// Random choice.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.within(0..=choices.len() as u64 - 1) as usize]
    }

    /// Random time of up to `most`.
    pub const fn up_to(&mut self, most: Nanos) -> Nanos {
        self.within(0..=most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rolls_stay_within_their_range() {
        let mut rng = SimRng::new(4);
        for _ in 0..10_000 {
            assert!((3..=5).contains(&rng.within(3..=5)));
            assert!((10..=100_000).contains(&rng.spread(10..=100_000)));
            assert!(!rng.happens(0) && rng.happens(1_000_000));
        }
        let few = (0..100_000).filter(|_| rng.percent(5)).count();
        assert!((4_500..5_500).contains(&few), "{few}");
        assert_eq!(rng.within(7..=7), 7);
    }
}
