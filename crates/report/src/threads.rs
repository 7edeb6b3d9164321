//! Messages between threads, as lines carry them.

use crate::conditions::Interference;
use crate::series::Yardstick;
use serde::{Deserialize, Serialize};

/// Between two threads, through a pipe or sockets.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Pipes {
    #[serde(flatten)]
    pub(crate) case: PipesCase,
    #[serde(flatten)]
    pub(crate) outcome: Outcome,
    pub(crate) signals: Option<u64>,
    pub(crate) published: Option<PublishedDensity>,
}

/// What is varied between two threads.
#[derive(Clone, Debug, Default, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(default)]
pub(crate) struct PipesCase {
    pub(crate) experiment: Option<String>,
    pub(crate) seats: Option<String>,
    pub(crate) batch: Option<u64>,
    pub(crate) transport: Option<String>,
    pub(crate) wait: Option<String>,
}

/// What the Y-suite document says of a case.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct PublishedDensity {
    pub(crate) density_ns: Option<f64>,
    pub(crate) rate: Option<f64>,
}

/// Between threads, through a ring.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Rings {
    #[serde(flatten)]
    pub(crate) case: RingsCase,
    #[serde(flatten)]
    pub(crate) outcome: Outcome,
    pub(crate) published: Option<PublishedRate>,
}

/// What is varied with rings.
#[derive(Clone, Debug, Default, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(default)]
pub(crate) struct RingsCase {
    pub(crate) row: Option<String>,
    pub(crate) batch: Option<u64>,
    pub(crate) size: Option<u64>,
    pub(crate) capacity: Option<u64>,
    pub(crate) wait: Option<String>,
    pub(crate) placement: Option<String>,
}

/// What the AMPS slides say of a row.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct PublishedRate {
    pub(crate) rate: Option<f64>,
    pub(crate) lmax_rate: Option<f64>,
}

/// What an exchange between threads came to.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Outcome {
    pub(crate) messages: Option<u64>,
    pub(crate) lost: Option<u64>,
    pub(crate) duplicated: Option<u64>,
    pub(crate) disordered: Option<u64>,
    pub(crate) damaged: Option<u64>,
    pub(crate) duration_ns: Option<u64>,
    pub(crate) density_ns: Option<f64>,
    pub(crate) rate: Option<f64>,
    pub(crate) yardstick: Option<Yardstick>,
    pub(crate) raise: Option<String>,
    pub(crate) threads: Option<Vec<Thread>>,
    pub(crate) repetition: Option<u64>,
    pub(crate) repetitions: Option<u64>,
}

/// One thread of an exchange.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Thread {
    pub(crate) role: Option<String>,
    pub(crate) cpu: Option<u64>,
    pub(crate) node: Option<u64>,
    pub(crate) ran_on: Option<u64>,
    pub(crate) interference: Option<Interference>,
}

impl Outcome {
    pub(crate) fn threads(&self) -> &[Thread] {
        self.threads.as_deref().unwrap_or_default()
    }

    /// The doubts of all threads.
    pub(crate) fn doubts(&self) -> impl Iterator<Item = &String> {
        let found = self.threads().iter().filter_map(|thread| thread.interference.as_ref());
        found.flat_map(Interference::doubts)
    }

    /// Messages that are missing, came twice or too late, or were not what was sent.
    pub(crate) fn wrong(&self) -> u64 {
        let all = [self.lost, self.duplicated, self.disordered, self.damaged];
        all.into_iter().flatten().fold(0, u64::saturating_add)
    }
}
