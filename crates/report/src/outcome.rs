//! What publishers, subscribers and the jitter test came to, as lines carry it.

use crate::conditions::{Conditions, Cpus, Interference};
use crate::distribution::Distribution;
use crate::series::Published;
use serde::{Deserialize, Serialize};

/// A publisher's run.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Publisher {
    pub(crate) topic: Option<String>,
    pub(crate) session: Option<String>,
    pub(crate) source: Option<String>,
    pub(crate) size: Option<u64>,
    pub(crate) sent: Option<u64>,
    pub(crate) warmup: Option<u64>,
    pub(crate) interrupted: Option<bool>,
    pub(crate) duration_ns: Option<u64>,
    pub(crate) rate: Option<f64>,
    pub(crate) rate_asked: Option<u64>,
    pub(crate) burst: Option<u64>,
    pub(crate) largest_burst: Option<u64>,
    pub(crate) back_pressured: Option<u64>,
    pub(crate) subscribers_at_start: Option<u64>,
    pub(crate) subscribers_at_end: Option<u64>,
    pub(crate) drained: Option<bool>,
    pub(crate) lateness: Option<Distribution>,
    pub(crate) calls: Option<Linear>,
    #[serde(flatten)]
    pub(crate) conditions: Conditions,
}

/// A subscriber's run: all its streams together, then each.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Subscriber {
    #[serde(flatten)]
    pub(crate) counts: Counts,
    pub(crate) fast: Option<bool>,
    pub(crate) spin: Option<u64>,
    pub(crate) recovered: Option<u64>,
    pub(crate) streams: Option<Vec<Stream>>,
    #[serde(flatten)]
    pub(crate) conditions: Conditions,
}

/// What a subscriber saw of one publisher.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Stream {
    pub(crate) topic: Option<String>,
    pub(crate) session: Option<String>,
    pub(crate) source: Option<String>,
    pub(crate) ended: Option<String>,
    #[serde(flatten)]
    pub(crate) counts: Counts,
}

/// Counts and times of received messages.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Counts {
    pub(crate) received: Option<u64>,
    pub(crate) warmup: Option<u64>,
    pub(crate) lost: Option<u64>,
    pub(crate) told_lost: Option<u64>,
    pub(crate) duplicated: Option<u64>,
    pub(crate) damaged: Option<u64>,
    pub(crate) unchecked: Option<u64>,
    pub(crate) first_number: Option<u64>,
    pub(crate) duration_ns: Option<u64>,
    pub(crate) rate: Option<f64>,
    pub(crate) latency: Option<Latency>,
    pub(crate) linear: Option<Linear>,
}

impl Counts {
    /// Messages that are missing, came twice, or were not what was sent.
    pub(crate) fn wrong(&self) -> u64 {
        let all = [self.lost.max(self.told_lost), self.duplicated, self.damaged];
        all.into_iter().flatten().fold(0, u64::saturating_add)
    }
}

/// One-way latency, from both times.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Latency {
    pub(crate) actual: Option<Distribution>,
    pub(crate) intended: Option<Distribution>,
}

/// The histogram that the UM latency tools print.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Linear {
    pub(crate) buckets: Option<u64>,
    pub(crate) width_ns: Option<u64>,
    pub(crate) counts: Option<Vec<u64>>,
    pub(crate) overflows: Option<u64>,
    pub(crate) min_ns: Option<u64>,
    pub(crate) max_ns: Option<u64>,
    pub(crate) mean_ns: Option<f64>,
    pub(crate) samples: Option<u64>,
    pub(crate) percentiles: Option<Vec<(f64, i64)>>,
}

/// How a thread was interrupted.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Jitter {
    pub(crate) loops: Option<u64>,
    pub(crate) ts_min_ns: Option<u64>,
    pub(crate) ts_max_ns: Option<u64>,
    pub(crate) gaps: Option<Distribution>,
    pub(crate) long_gaps: Option<u64>,
    pub(crate) lost_share: Option<f64>,
    pub(crate) duration_ns: Option<u64>,
    pub(crate) clock: Option<String>,
    pub(crate) clock_cost_ns: Option<f64>,
    pub(crate) monotonic_cost_ns: Option<f64>,
    pub(crate) cpus: Option<Cpus>,
    pub(crate) raise: Option<String>,
    pub(crate) interference: Option<Interference>,
    pub(crate) repetition: Option<u64>,
    pub(crate) repetitions: Option<u64>,
    pub(crate) published: Option<Published>,
}
