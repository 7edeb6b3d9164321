//! Distribution of a row's threads over CPUs.

use super::row::Row;
use crate::names::named;
use thiserror::Error;

named! {
    /// The distribution of threads over CPUs.
    pub enum Layout: "placement" {
        /// Each thread has a CPU of its own.
        Own = "own",
        /// Producers on some CPUs, consumers on the others.
        Split = "split",
        /// Producers and consumers on all CPUs.
        Mixed = "mixed",
    }
}

impl Layout {
    /// The layout with the best, or least flattering, figures on that many CPUs: producers that
    /// share a CPU do not contend with each other.
    pub const fn usual(row: Row, cpus: usize) -> Self {
        if row.threads() <= cpus {
            Self::Own
        } else if row.producers() == 1 {
            Self::Split
        } else {
            Self::Mixed
        }
    }
}

/// Too few CPUs for a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "{row} has {threads} threads, which is more than there are CPUs to choose of ({cpus}): use \
     --placement split or mixed, or more --cpus",
    threads = row.threads()
)]
pub struct LayoutError {
    row: Row,
    cpus: usize,
}

/// The CPU of each thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seats {
    /// Layout of the threads.
    pub layout: Layout,
    /// CPUs of the producers.
    pub producers: Vec<usize>,
    /// CPUs of the consumers.
    pub consumers: Vec<usize>,
}

impl Seats {
    /// Distributes the threads of `row` over `cpus` (not empty), producers first.
    ///
    /// # Errors
    /// If each thread is to have a CPU of its own, and there are not enough.
    pub fn deal(row: Row, layout: Option<Layout>, cpus: &[usize]) -> Result<Self, LayoutError> {
        let layout = layout.unwrap_or_else(|| Layout::usual(row, cpus.len()));
        if layout == Layout::Own && cpus.len() < row.threads() {
            return Err(LayoutError { row, cpus: cpus.len() });
        }
        let first = (cpus.len() * row.producers() / row.threads()).clamp(1, cpus.len().max(2) - 1);
        let (here, there) = match layout {
            Layout::Own => cpus.split_at(row.producers()),
            Layout::Split if cpus.len() > 1 => cpus.split_at(first),
            Layout::Split | Layout::Mixed => (cpus, cpus),
        };
        let deal = |cpus: &[usize], threads| cpus.iter().copied().cycle().take(threads).collect();
        let (producers, consumers) = (deal(here, row.producers()), deal(there, row.consumers()));
        Ok(Self { layout, producers, consumers })
    }

    /// Whether some of them share a CPU.
    pub fn is_crowded(&self) -> bool {
        let mut all = [self.producers.as_slice(), &self.consumers].concat();
        let threads = all.len();
        all.sort_unstable();
        all.dedup();
        all.len() < threads
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dealt(row: Row, layout: Option<Layout>, cpus: &[usize]) -> (Layout, Vec<usize>, Vec<usize>) {
        let seats = Seats::deal(row, layout, cpus).unwrap();
        (seats.layout, seats.producers, seats.consumers)
    }

    #[test]
    fn each_has_its_own_while_there_are_enough() {
        assert_eq!(dealt(Row::Unicast, None, &[1, 0]), (Layout::Own, vec![1], vec![0]));
        let found = dealt(Row::Multicast, None, &[3, 2, 1, 0, 9]);
        assert_eq!(found, (Layout::Own, vec![3], vec![2, 1, 0]));
        let error = Seats::deal(Row::FourByFour, Some(Layout::Own), &[0, 1]).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("8 threads, which is more than there are CPUs to choose of (2)"),
            "{error}"
        );
    }

    #[test]
    fn otherwise_they_are_split_or_mixed() {
        assert_eq!(dealt(Row::Diamond, None, &[1, 0]), (Layout::Split, vec![1], vec![0, 0, 0]));
        assert_eq!(dealt(Row::TwoByTwo, None, &[1, 0]), (Layout::Mixed, vec![1, 0], vec![1, 0]));
        let split = Some(Layout::Split);
        let found = dealt(Row::FourByFour, split, &[5, 6, 7, 8]);
        assert_eq!(found, (Layout::Split, vec![5, 6, 5, 6], vec![7, 8, 7, 8]));
        let found = dealt(Row::Multicast, split, &[5, 6, 7]);
        assert_eq!(found, (Layout::Split, vec![5], vec![6, 7, 6]));
        for layout in [None, split, Some(Layout::Mixed)] {
            let (_, producers, consumers) = dealt(Row::TwoByTwo, layout, &[4]);
            assert_eq!((producers, consumers), (vec![4, 4], vec![4, 4]));
        }
        assert!(Seats::deal(Row::Unicast, None, &[4]).unwrap().is_crowded());
        assert!(!Seats::deal(Row::Unicast, None, &[4, 5]).unwrap().is_crowded());
    }

    #[test]
    fn layouts_are_known_by_their_names() {
        for layout in Layout::ALL {
            assert_eq!(layout.name().parse(), Ok(layout));
        }
        assert!("apart".parse::<Layout>().unwrap_err().contains("own, split, mixed"));
    }
}
