//! Reference figures of the Y-suite document.

use super::case::{Case, Experiment, Transport};
use lanecast_base::WaitStrategy;
use serde::Serialize;

/// Reference figures of another machine: for orientation, not for comparison.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Reference {
    /// Time of a message.
    pub density_ns: f64,
    /// Messages a second.
    pub rate: f64,
}

/// The document's tables, in its order: local sockets, with polling, without polling.
const TABLE: [(Experiment, Transport, f64, f64); 6] = [
    (Experiment::PingPong, Transport::Socketpair, 6352.0, 157_430.0),
    (Experiment::PingPong, Transport::Pollset, 3555.0, 281_294.0),
    (Experiment::PingPong, Transport::Semaphore, 3079.0, 324_780.0),
    (Experiment::Throughput, Transport::Socketpair, 1926.0, 519_210.0),
    (Experiment::Throughput, Transport::Pollset, 292.0, 3_424_658.0),
    (Experiment::Throughput, Transport::Semaphore, 263.0, 3_802_281.0),
];

impl Reference {
    /// The document's figures of a case; none for other cases. Its readers sleep when idle; its
    /// batches are in a drawing only.
    pub fn of(case: &Case) -> Option<Self> {
        if case.batch != 1 || case.wait != WaitStrategy::Park {
            return None;
        }
        let is_it = |(experiment, transport, ..): &&(Experiment, Transport, f64, f64)| {
            (*experiment, *transport) == (case.experiment, case.transport)
        };
        let (.., density_ns, rate) = *TABLE.iter().find(is_it)?;
        Some(Self { density_ns, rate })
    }
}

#[cfg(test)]
mod tests {
    use super::super::case::Seats;
    use super::*;

    #[test]
    fn the_two_columns_of_the_document_s_tables_agree() {
        for (experiment, transport, density_ns, rate) in TABLE {
            let product = density_ns * rate / 1e9;
            assert!((product - 1.0).abs() < 0.002, "{experiment} {transport}: {product}");
        }
    }

    #[test]
    fn only_what_the_document_measured_has_its_figures() {
        let case = Case {
            experiment: Experiment::Throughput,
            transport: Transport::Semaphore,
            wait: WaitStrategy::Park,
            seats: Seats::One,
            batch: 1,
        };
        let found = Reference::of(&case).unwrap();
        assert_eq!((found.density_ns, found.rate), (263.0, 3_802_281.0));
        assert_eq!(Reference::of(&Case { batch: 2, ..case }), None);
        assert_eq!(Reference::of(&Case { wait: WaitStrategy::BusySpin, ..case }), None);
        assert_eq!(Reference::of(&Case { transport: Transport::SocketSignal, ..case }), None);
    }
}
