//! The libraries. Each is configured as it performs best; the README has the reasons.

#[cfg(feature = "crossbeam")]
mod crossbeam;
#[cfg(feature = "disruptor")]
mod disruptor;
#[cfg(feature = "zmq")]
mod inproc;
#[cfg(feature = "kanal")]
mod kanal;
#[cfg(feature = "lanecast")]
mod lanecast;
#[cfg(feature = "rtrb")]
mod rtrb;
mod socketpair;
mod standard;
#[cfg(feature = "tokio")]
mod tokio;

use anyhow::Result;

use crate::load::{Load, Row};
use crate::pair::Pair;
use crate::stream::Stream;

/// A library that is ready to be measured.
pub enum Built {
    /// For messages that flow.
    Stream(Stream),
    /// For round trips.
    Pair(Pair),
}

/// One side of the comparison.
pub struct Case {
    /// Word of the command line that asks for it.
    pub peer: &'static str,
    /// Name in the report: a peer can have several.
    pub side: &'static str,
    /// The package that it comes from, if it is one.
    pub package: Option<&'static str>,
    /// Rows that it takes part in.
    pub rows: &'static [Row],
    /// Sets it up; also tells in a few words, without a comma, in which way it is used.
    pub build: fn(&Load) -> Result<(Built, &'static str)>,
}

/// Every case that was built.
pub const CASES: &[&[Case]] = &[
    #[cfg(feature = "lanecast")]
    lanecast::CASES,
    #[cfg(feature = "disruptor")]
    disruptor::CASES,
    #[cfg(feature = "rtrb")]
    rtrb::CASES,
    #[cfg(feature = "crossbeam")]
    crossbeam::CASES,
    #[cfg(feature = "kanal")]
    kanal::CASES,
    standard::CASES,
    #[cfg(feature = "tokio")]
    tokio::CASES,
    #[cfg(feature = "zmq")]
    inproc::CASES,
    socketpair::CASES,
];

/// The lock file, which has the versions that were built.
const LOCK_FILE: &str = include_str!("../../../Cargo.lock");

impl Case {
    /// Version of the package; without one, the library came with the compiler or the kernel.
    pub fn version(&self) -> &'static str {
        self.package.and_then(locked_version).unwrap_or("-")
    }
}

fn locked_version(package: &str) -> Option<&'static str> {
    let name = format!("name = \"{package}\"");
    let mut lines = LOCK_FILE.lines().skip_while(|line| *line != name);
    let version = lines.nth(1)?.strip_prefix("version = \"")?;
    version.strip_suffix('"')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Row;
    use crate::{pair, stream};
    use rivals_kit::Line;
    use std::thread;

    fn load(row: Row, batch: u64, consumer_cpu: usize) -> Load {
        let (producers, consumers) = match row {
            Row::Multicast | Row::Diamond => (1, 3),
            Row::Mpmc => (2, 2),
            _ => (1, 1),
        };
        Load {
            row,
            batch,
            producers,
            consumers,
            messages: 5_000,
            capacity: 1 << 10,
            producer_cpu: 0,
            consumer_cpu,
        }
    }

    fn measured(case: &Case, load: &Load) -> Line {
        let (built, way) = (case.build)(load).expect("a case that takes part can be set up");
        assert!(!way.is_empty() && !way.contains(','), "{way}");
        let line = match built {
            Built::Stream(stream) => stream::run(stream, load),
            Built::Pair(pair) => pair::run(pair, load),
        };
        line.expect("the CPUs can be used")
    }

    #[test]
    fn every_case_delivers_everything_once_and_in_order() {
        // Asked once: every run pins the thread that begins it.
        let other = usize::from(thread::available_parallelism().is_ok_and(|n| n.get() > 1));
        for case in CASES.iter().flat_map(|cases| cases.iter()) {
            for (row, batch) in case.rows.iter().flat_map(|row| [(*row, 1), (*row, 7)]) {
                let load = load(row, batch, other);
                // On a busy machine a round trip of two that spin can take two time slices.
                let messages = if row == Row::Pingpong { 64 } else { load.messages };
                let load = Load { messages, ..load };
                let line = measured(case, &load);
                let number = |key| line.number(key).unwrap_or(-1.0);
                assert!(number("received") >= load.messages as f64, "{} {row:?} {line}", case.side);
                assert_eq!((number("lost"), number("damaged")), (0.0, 0.0), "{}", case.side);
            }
        }
    }

    #[test]
    fn packages_have_the_version_that_was_locked() {
        for case in CASES.iter().flat_map(|cases| cases.iter()) {
            assert_eq!(case.package.is_some(), case.version() != "-", "{}", case.side);
        }
        assert_eq!(locked_version("no such package"), None);
    }
}
