//! The libraries. Each is configured as it performs best; the README has the reasons.

mod case;
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

pub use case::{Built, Case};

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{Load, Row};
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
    }
}
