//! The cases of a series, in the order in which they run.

use super::case::{Case, Experiment, Seats, Transport};
use lanecast_base::WaitStrategy;
use std::time::Duration;

/// The document's batch sizes.
pub const BATCHES: [usize; 11] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];
/// Fewer of them.
pub const QUICK_BATCHES: [usize; 5] = [1, 8, 32, 128, 1024];
/// Starting a process, looking at the machine, and ending, beside the measured time.
const OVERHEAD: Duration = Duration::from_millis(60);

/// Selection of cases. An empty list selects everything.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Only these experiments.
    pub experiments: Vec<Experiment>,
    /// Only these transports.
    pub transports: Vec<Transport>,
    /// Only these wait strategies, each with every transport but sockets.
    pub waits: Vec<WaitStrategy>,
    /// Only with so many CPUs.
    pub seats: Vec<Seats>,
    /// These batches, for as many messages as possible.
    pub batches: Vec<usize>,
}

/// The cases of one repetition, in the order in which they run.
#[derive(Clone, Debug)]
pub struct Series {
    /// The cases.
    pub cases: Vec<Case>,
}

impl Series {
    /// All selected cases. Cases that are compared run one after the other.
    pub fn new(wanted: &Wanted) -> Self {
        let mut cases = Vec::new();
        for experiment in Experiment::ALL {
            for seats in Seats::ALL {
                for &batch in wanted.batches_of(experiment, seats) {
                    for transport in Transport::ALL {
                        let waits = wanted.waits_of(transport, seats, batch);
                        let case = |&wait| Case { experiment, transport, wait, seats, batch };
                        cases.extend(waits.iter().map(case));
                    }
                }
            }
        }
        cases.retain(|case| wanted.has(case));
        Self { cases }
    }

    /// Expected duration of `repetitions`, if each case is measured for `time`.
    pub fn expected(&self, time: Duration, repetitions: u32) -> Duration {
        let cases = u32::try_from(self.cases.len()).unwrap_or(u32::MAX);
        (time + OVERHEAD).saturating_mul(cases).saturating_mul(repetitions)
    }
}

impl Wanted {
    fn batches_of(&self, experiment: Experiment, seats: Seats) -> &[usize] {
        match (experiment, seats) {
            (Experiment::PingPong, _) => &[1],
            // Where the two take turns, batches form by themselves; the drawing is of two CPUs.
            (Experiment::Throughput, Seats::One) if self.seats.is_empty() => &[1],
            (Experiment::Throughput, _) if self.batches.is_empty() => &BATCHES,
            (Experiment::Throughput, _) => &self.batches,
        }
    }

    /// The wait strategies of a case. The document's readers always sleep; the pipe without polling
    /// is also measured with other strategies.
    fn waits_of(&self, transport: Transport, seats: Seats, batch: usize) -> &[WaitStrategy] {
        use WaitStrategy::{BusySpin, Park, SpinPark, SpinYield};
        match (transport, seats) {
            (Transport::Socketpair, _) => &[Park],
            _ if !self.waits.is_empty() => &self.waits,
            (Transport::Semaphore, Seats::One) => &[Park, SpinPark, SpinYield],
            (Transport::Semaphore, Seats::Two) if batch == 1 => &[Park, SpinPark, BusySpin],
            (Transport::Semaphore, Seats::Two) => &[Park, SpinPark],
            // One that is as fast as the others is no second drawing.
            (Transport::SocketSignal, _) if batch > 1 && self.transports.is_empty() => &[],
            _ => &[Park],
        }
    }

    fn has(&self, case: &Case) -> bool {
        let is_wanted = |wanted: bool, is_empty: bool| wanted || is_empty;
        is_wanted(self.experiments.contains(&case.experiment), self.experiments.is_empty())
            && is_wanted(self.transports.contains(&case.transport), self.transports.is_empty())
            && is_wanted(self.seats.contains(&case.seats), self.seats.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipes::Reference;

    fn all() -> Series {
        Series::new(&Wanted::default())
    }

    #[test]
    fn every_figure_of_the_document_is_repeated_on_one_cpu_and_on_two() {
        for seats in Seats::ALL {
            let here = || all().cases.into_iter().filter(|case| case.seats == seats);
            assert_eq!(here().filter(|case| Reference::of(case).is_some()).count(), 6, "{seats}");
        }
        for transport in [Transport::Socketpair, Transport::Pollset, Transport::Semaphore] {
            let drawn = all().cases.into_iter().filter(|case| {
                case.transport == transport
                    && case.experiment == Experiment::Throughput
                    && (case.wait, case.seats) == (WaitStrategy::Park, Seats::Two)
            });
            assert_eq!(drawn.map(|case| case.batch).collect::<Vec<_>>(), BATCHES, "{transport}");
        }
    }

    #[test]
    fn compared_cases_alternate_within_the_time_limit() {
        let series = all();
        let expected = series.expected(Duration::from_millis(200), 5);
        assert!(expected < Duration::from_secs(150), "{expected:?} for {}", series.cases.len());
        let sockets = |case: &Case| case.transport == Transport::Socketpair;
        for at in (0..series.cases.len()).filter(|at| Reference::of(&series.cases[*at]).is_some()) {
            let before = series.cases[..=at].iter().rev().position(sockets).unwrap();
            assert!(before < 3, "{}", series.cases[at]);
        }
    }

    #[test]
    fn a_single_case_can_be_chosen() {
        let case = Case {
            experiment: Experiment::PingPong,
            transport: Transport::SocketSignal,
            wait: WaitStrategy::SpinYield,
            seats: Seats::One,
            batch: 1,
        };
        for case in [case, Case { experiment: Experiment::Throughput, batch: 64, ..case }] {
            let wanted = Wanted {
                experiments: vec![case.experiment],
                transports: vec![case.transport],
                waits: vec![case.wait],
                seats: vec![case.seats],
                batches: vec![case.batch],
            };
            assert_eq!(Series::new(&wanted).cases, [case]);
        }
    }

    #[test]
    fn fewer_batches_are_a_short_series() {
        let wanted = Wanted { batches: QUICK_BATCHES.to_vec(), ..Wanted::default() };
        let expected = Series::new(&wanted).expected(Duration::from_millis(50), 2);
        assert!(expected < Duration::from_secs(20), "{expected:?}");
    }
}
