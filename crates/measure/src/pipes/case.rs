//! One case of an experiment between two threads.

use lanecast_base::WaitStrategy;
use serde::{Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// What the two threads do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Experiment {
    /// One message goes there and back: no other one is under way.
    PingPong,
    /// Messages go one way, as many as possible.
    Throughput,
}

/// What carries the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// A pair of local sockets, the document's yardstick.
    Socketpair,
    /// A pipe whose reader waits for one of many signals: the document's "with polling".
    Pollset,
    /// A pipe whose reader waits for one signal: "without polling".
    Semaphore,
    /// A pipe whose signals a file descriptor shows.
    SocketSignal,
}

/// How many CPUs the two threads have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Seats {
    /// Each its own.
    Two,
    /// They share one.
    One,
}

/// What one run looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Case {
    /// What the threads do.
    pub experiment: Experiment,
    /// What carries the messages.
    pub transport: Transport,
    /// How a reader waits.
    #[serde(serialize_with = "as_text")]
    pub wait: WaitStrategy,
    /// How many CPUs there are for the two.
    pub seats: Seats,
    /// Messages that are written before they are flushed together.
    pub batch: usize,
}

impl Experiment {
    /// All, in the order in which they run.
    pub const ALL: [Self; 2] = [Self::PingPong, Self::Throughput];

    /// The name on the command line and in the lines.
    pub const fn name(self) -> &'static str {
        match self {
            Self::PingPong => "ping-pong",
            Self::Throughput => "throughput",
        }
    }
}

impl Transport {
    /// All; the yardstick is the first.
    pub const ALL: [Self; 4] =
        [Self::Socketpair, Self::Pollset, Self::Semaphore, Self::SocketSignal];

    /// The name on the command line and in the lines.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Socketpair => "socketpair",
            Self::Pollset => "pollset",
            Self::Semaphore => "semaphore",
            Self::SocketSignal => "socket-signal",
        }
    }
}

impl Seats {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Two, Self::One];

    /// The name on the command line and in the lines.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Two => "two",
            Self::One => "one",
        }
    }
}

impl fmt::Display for Experiment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Display for Seats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Experiment {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        chosen(text, &Self::ALL, Self::name, "experiment")
    }
}

impl FromStr for Transport {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        chosen(text, &Self::ALL, Self::name, "transport")
    }
}

impl FromStr for Seats {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        chosen(text, &Self::ALL, Self::name, "number of CPUs")
    }
}

/// The one of `all` that `text` names.
pub(crate) fn chosen<T: Copy>(
    text: &str,
    all: &[T],
    name: fn(T) -> &'static str,
    what: &str,
) -> Result<T, String> {
    all.iter().copied().find(|one| name(*one) == text).ok_or_else(|| {
        let names: Vec<_> = all.iter().map(|one| name(*one)).collect();
        format!("'{text}' is no {what}: choose of {}", names.join(", "))
    })
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
    fn everything_is_known_by_its_name_and_nothing_else_is() {
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
