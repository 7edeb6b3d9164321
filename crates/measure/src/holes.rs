//! Numbers that a subscriber in order of arrival has passed over, and that may still come.

use std::collections::BTreeMap;

/// Most runs of numbers kept; more of them count as lost.
const RUNS_MAX: usize = 1 << 16;

/// Runs of numbers passed over: first and end of each.
#[derive(Clone, Debug, Default)]
pub(crate) struct Holes {
    runs: BTreeMap<u64, u64>,
}

impl Holes {
    /// Passes over `first..end`, which lies behind all runs.
    pub(crate) fn pass_over(&mut self, first: u64, end: u64) {
        if first < end && self.runs.len() < RUNS_MAX {
            self.runs.insert(first, end);
        }
    }

    /// Takes `number` out, as it has come; false if it had not been passed over.
    pub(crate) fn fill(&mut self, number: u64) -> bool {
        let Some((&first, &end)) = self.runs.range(..=number).next_back() else { return false };
        if number >= end {
            return false;
        }
        self.runs.remove(&first);
        for (first, end) in [(first, number), (number + 1, end)] {
            if first < end {
                self.runs.insert(first, end);
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_passed_over_fills_its_place_once() {
        let mut holes = Holes::default();
        holes.pass_over(3, 3);
        holes.pass_over(5, 9);
        holes.pass_over(20, 21);
        for (number, fills) in
            [(4, false), (9, false), (6, true), (6, false), (5, true), (8, true), (7, true)]
        {
            assert_eq!(holes.fill(number), fills, "{number}");
        }
        assert!(holes.fill(20) && !holes.fill(20) && holes.runs.is_empty());
        (0..2 * RUNS_MAX as u64).for_each(|at| holes.pass_over(2 * at, 2 * at + 1));
        assert_eq!(holes.runs.len(), RUNS_MAX);
    }
}
