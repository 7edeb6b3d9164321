//! One measurement line: who wrote it, where it stands, what it holds.

use crate::conditions::Host;
use crate::distribution::Distribution;
use crate::doctor::Doctor;
use crate::fanout::Fanout;
use crate::outcome::{Jitter, Publisher, Subscriber};
use crate::round_trip::{Floor, Ping, Pong};
use crate::series::{Rival, Run, Skipped};
use crate::threads::{Outcome, Pipes, Rings};
use serde::{Deserialize, Serialize};

/// A line that was read.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    /// Its place among all lines of the report, from 1: the page's anchor.
    pub(crate) id: usize,
    /// The file it stands in.
    pub(crate) file: String,
    /// Its number in that file, from 1.
    pub(crate) number: usize,
    /// The line as it was written.
    pub(crate) text: String,
    pub(crate) head: Head,
    pub(crate) record: Record,
}

impl Line {
    /// `file:number`.
    pub(crate) fn place(&self) -> String {
        format!("{}:{}", self.file, self.number)
    }

    /// Every sentence of doubt on the line.
    pub(crate) fn doubts(&self) -> Vec<&String> {
        match &self.record {
            Record::Publisher(publisher) => publisher.conditions.doubts().iter().collect(),
            Record::Subscriber(subscriber) => subscriber.conditions.doubts().iter().collect(),
            Record::Jitter(jitter) => {
                jitter.interference.iter().flat_map(|found| found.doubts()).collect()
            }
            Record::Run(run) => run.doubts().collect(),
            Record::Pipes(pipes) => pipes.outcome.doubts().collect(),
            Record::Rings(rings) => rings.outcome.doubts().collect(),
            Record::Ping(ping) => ping.doubts().collect(),
            Record::Pong(pong) => pong.conditions.doubts().iter().collect(),
            Record::Floor(floor) => floor.doubts().collect(),
            Record::Skipped(_)
            | Record::Rival(_)
            | Record::Doctor(_)
            | Record::Fanout(_)
            | Record::Log(_) => Vec::new(),
        }
    }

    /// Messages that were lost, repeated or damaged.
    pub(crate) fn wrong(&self) -> u64 {
        match &self.record {
            Record::Subscriber(subscriber) => subscriber.counts.wrong(),
            Record::Run(run) => {
                run.subscribers().iter().fold(0, |sum, one| sum.saturating_add(one.counts.wrong()))
            }
            Record::Rival(rival) if rival.peer.as_deref() == Some("lanecast") => {
                rival.lost.unwrap_or(0).saturating_add(rival.damaged.unwrap_or(0))
            }
            Record::Ping(ping) => ping.wrong(),
            Record::Pong(pong) => pong.traffic.wrong(),
            Record::Floor(floor) => floor.lost.unwrap_or(0),
            Record::Fanout(fanout) => fanout.wrong(),
            _ => self.outcome().map_or(0, Outcome::wrong),
        }
    }

    /// What an exchange between threads came to.
    pub(crate) fn outcome(&self) -> Option<&Outcome> {
        match &self.record {
            Record::Pipes(pipes) => Some(&pipes.outcome),
            Record::Rings(rings) => Some(&rings.outcome),
            _ => None,
        }
    }

    /// Whether who sent was interrupted before the end.
    pub(crate) fn was_interrupted(&self) -> bool {
        let interrupted = match &self.record {
            Record::Publisher(publisher) => publisher.interrupted,
            Record::Run(run) => run.publisher.as_ref().and_then(|one| one.interrupted),
            Record::Ping(ping) => ping.interrupted,
            _ => None,
        };
        interrupted == Some(true)
    }
}

/// What every line begins with.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Head {
    pub(crate) schema: Option<u64>,
    pub(crate) kind: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) command: Option<String>,
    pub(crate) started_unix_ns: Option<u64>,
    pub(crate) host: Option<Host>,
}

/// What a line holds.
#[derive(Clone, Debug)]
pub(crate) enum Record {
    Publisher(Box<Publisher>),
    Subscriber(Box<Subscriber>),
    Jitter(Box<Jitter>),
    Run(Box<Run>),
    Skipped(Skipped),
    Rival(Box<Rival>),
    Doctor(Box<Doctor>),
    Pipes(Box<Pipes>),
    Rings(Box<Rings>),
    Ping(Box<Ping>),
    Pong(Box<Pong>),
    Floor(Box<Floor>),
    Fanout(Box<Fanout>),
    /// An interval of a HdrHistogram log.
    Log(Box<Interval>),
}

/// One interval of a HdrHistogram log, times in nanoseconds.
#[derive(Clone, Debug)]
pub(crate) struct Interval {
    pub(crate) tag: Option<String>,
    pub(crate) times: Distribution,
}
