//! Rows and batches of a series.

use super::row::Row;
use std::time::Duration;

/// The batch sizes of the drawings.
pub const BATCHES: [usize; 11] = crate::pipes::BATCHES;
/// Starting a process, filling the ring, looking at the machine, and ending.
const OVERHEAD: Duration = Duration::from_millis(80);

/// The rows and batches of one repetition, in the order in which they run.
#[derive(Clone, Debug)]
pub struct Series {
    /// Each run.
    pub turns: Vec<Turn>,
}

/// One run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Producers and consumers.
    pub row: Row,
    /// Messages that are published together.
    pub batch: usize,
}

impl Series {
    /// All of `rows` (every row, if there are none) with all of `batches`.
    pub fn new(rows: &[Row], batches: &[usize]) -> Self {
        let wanted = Row::ALL.into_iter().filter(|row| rows.is_empty() || rows.contains(row));
        let turns = wanted.flat_map(|row| {
            // Single reads are compared with single writes only.
            let fits = move |batch: &&usize| row != Row::Singly || **batch == 1;
            batches.iter().filter(fits).map(move |&batch| Turn { row, batch })
        });
        Self { turns: turns.collect() }
    }

    /// Expected duration of `repetitions`, if each run is measured for `time`.
    pub fn expected(&self, time: Duration, repetitions: u32) -> Duration {
        let turns = u32::try_from(self.turns.len()).unwrap_or(u32::MAX);
        (time + OVERHEAD).saturating_mul(turns).saturating_mul(repetitions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_every_batch_but_single_ones_stay_single() {
        let series = Series::new(&[], &[1, 64]);
        assert_eq!(series.turns.len(), 11);
        assert!(series.turns.contains(&Turn { row: Row::FourByFour, batch: 64 }));
        assert!(!series.turns.contains(&Turn { row: Row::Singly, batch: 64 }));
        let one = Series::new(&[Row::Diamond], &[64]);
        assert_eq!(one.turns, [Turn { row: Row::Diamond, batch: 64 }]);
    }

    #[test]
    fn even_all_batches_fit_into_three_minutes() {
        let all = Series::new(&[], &BATCHES);
        let expected = all.expected(Duration::from_millis(500), 5);
        assert!(expected < Duration::from_secs(180), "{expected:?}");
        let usual = Series::new(&[], &[1, 64]).expected(Duration::from_millis(500), 5);
        assert!(usual < Duration::from_secs(60), "{usual:?}");
    }
}
