//! One case of an experiment between two threads.

use crate::names::named;
use lanecast_base::WaitStrategy;
use serde::{Serialize, Serializer};
use std::fmt;

named! {
    /// The exchange of the two threads.
    pub enum Experiment: "experiment" {
        /// One message goes there and back; no other one is under way.
        PingPong = "ping-pong",
        /// Messages go one way, as many as possible.
        Throughput = "throughput",
    }
}

named! {
    /// The transport between the two threads. The first one is the baseline.
    pub enum Transport: "transport" {
        /// A pair of local sockets, the document's baseline.
        Socketpair = "socketpair",
        /// A pipe whose reader waits for one of many signals: the document's "with polling".
        Pollset = "pollset",
        /// A pipe whose reader waits for one signal: "without polling".
        Semaphore = "semaphore",
        /// A pipe whose signals a file descriptor shows.
        SocketSignal = "socket-signal",
    }
}

named! {
    /// The number of CPUs of the two threads.
    pub enum Seats: "number of CPUs" {
        /// Each thread has its own.
        Two = "two",
        /// Both share one.
        One = "one",
    }
}

/// Parameters of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Case {
    /// Exchange of the threads.
    pub experiment: Experiment,
    /// Transport of the messages.
    pub transport: Transport,
    /// Wait strategy of readers.
    #[serde(serialize_with = "as_text")]
    pub wait: WaitStrategy,
    /// Number of CPUs of the two threads.
    pub seats: Seats,
    /// Messages that are written before they are flushed together.
    pub batch: usize,
}

/// Such as `ping-pong, semaphore, park, one CPU`.
impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { experiment, transport, wait, seats, batch } = self;
        write!(f, "{experiment}, {transport}, {wait}, {seats} CPU")?;
        f.write_str(if *seats == Seats::Two { "s" } else { "" })?;
        if *batch > 1 {
            write!(f, ", batches of {batch}")?;
        }
        Ok(())
    }
}

pub(crate) fn as_text<S: Serializer>(
    wait: &WaitStrategy,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(wait.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_parse_by_their_names_only() {
        for experiment in Experiment::ALL {
            assert_eq!(experiment.name().parse(), Ok(experiment));
            assert_eq!(serde_json::to_value(experiment).unwrap(), experiment.name());
        }
        for transport in Transport::ALL {
            assert_eq!(transport.name().parse(), Ok(transport));
            assert_eq!(serde_json::to_value(transport).unwrap(), transport.name());
        }
        for seats in Seats::ALL {
            assert_eq!(seats.name().parse(), Ok(seats));
            assert_eq!(serde_json::to_value(seats).unwrap(), seats.name());
        }
        assert!("pong".parse::<Experiment>().unwrap_err().contains("ping-pong, throughput"));
        assert!("mutex".parse::<Transport>().unwrap_err().contains("choose of socketpair"));
        assert!("three".parse::<Seats>().unwrap_err().contains("two, one"));
    }

    #[test]
    fn a_case_names_what_is_special_about_it() {
        let case = Case {
            experiment: Experiment::Throughput,
            transport: Transport::Pollset,
            wait: WaitStrategy::Park,
            seats: Seats::Two,
            batch: 64,
        };
        assert_eq!(case.to_string(), "throughput, pollset, park, two CPUs, batches of 64");
        let case = Case { seats: Seats::One, batch: 1, ..case };
        assert_eq!(case.to_string(), "throughput, pollset, park, one CPU");
    }
}
