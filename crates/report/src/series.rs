//! Series of runs, and other libraries under the same load, as lines carry them.

use crate::distribution::Distribution;
use crate::outcome::{Publisher, Subscriber};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One repetition of one case.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Run {
    pub(crate) experiment: Option<String>,
    pub(crate) case: Option<Case>,
    pub(crate) repetition: Option<u64>,
    pub(crate) repetitions: Option<u64>,
    pub(crate) yardstick: Option<Yardstick>,
    pub(crate) publisher: Option<Publisher>,
    pub(crate) subscribers: Option<Vec<Subscriber>>,
    pub(crate) published: Option<Published>,
}

impl Run {
    pub(crate) fn subscribers(&self) -> &[Subscriber] {
        self.subscribers.as_deref().unwrap_or_default()
    }

    /// The doubts of all who took part.
    pub(crate) fn doubts(&self) -> impl Iterator<Item = &String> {
        let publisher = self.publisher.iter().flat_map(|publisher| publisher.conditions.doubts());
        publisher.chain(self.subscribers().iter().flat_map(|one| one.conditions.doubts()))
    }
}

/// What is varied in an experiment.
#[derive(Clone, Debug, Default, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(default)]
pub(crate) struct Case {
    pub(crate) size: Option<u64>,
    pub(crate) rate_asked: Option<u64>,
    pub(crate) spin: Option<u64>,
    pub(crate) receivers: Option<u64>,
    pub(crate) api: Option<String>,
    pub(crate) fast: Option<bool>,
    pub(crate) cross_numa: Option<bool>,
}

/// What the machine could do just before a run.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Yardstick {
    pub(crate) line_ns: Option<f64>,
    pub(crate) loop_ns: Option<f64>,
}

/// What the source document says of a case.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Published {
    pub(crate) rate: Option<f64>,
    pub(crate) min_ns: Option<f64>,
    pub(crate) mean_ns: Option<f64>,
    pub(crate) max_ns: Option<f64>,
}

/// An experiment that was left out.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Skipped {
    pub(crate) experiment: Option<String>,
    pub(crate) why: Option<String>,
}

/// One repetition of another library, or of lanecast beside it.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Rival {
    pub(crate) peer: Option<String>,
    pub(crate) peer_version: Option<String>,
    pub(crate) row: Option<String>,
    pub(crate) size: Option<u64>,
    pub(crate) rate_asked: Option<u64>,
    pub(crate) producers: Option<u64>,
    pub(crate) subscribers: Option<u64>,
    pub(crate) batch: Option<u64>,
    pub(crate) one_cpu: Option<bool>,
    pub(crate) way: Option<String>,
    pub(crate) touch: Option<String>,
    pub(crate) pair: Option<u64>,
    pub(crate) pairs: Option<u64>,
    pub(crate) rate: Option<f64>,
    pub(crate) received: Option<u64>,
    pub(crate) lost: Option<u64>,
    pub(crate) damaged: Option<u64>,
    pub(crate) actual: Option<Distribution>,
    pub(crate) intended: Option<Distribution>,
    pub(crate) publisher_cpu: Option<Value>,
    pub(crate) subscriber_cpu: Option<Value>,
    pub(crate) raised: Option<Value>,
    pub(crate) clock: Option<String>,
    pub(crate) clock_cost_ns: Option<f64>,
    pub(crate) stolen_share: Option<f64>,
    pub(crate) involuntary_switches: Option<u64>,
}
