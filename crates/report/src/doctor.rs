//! What disturbs measurements on a machine, as lines carry it.

use crate::series::Yardstick;
use serde::{Deserialize, Serialize};

/// What `lanecast doctor` found.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Doctor {
    pub(crate) findings: Option<Vec<Finding>>,
    pub(crate) proposal: Option<Proposal>,
    pub(crate) verdict: Option<String>,
    pub(crate) gaps: Option<Vec<CpuGaps>>,
    pub(crate) yardstick: Option<Yardstick>,
    pub(crate) noise_p99_9_ns: Option<f64>,
}

/// One check, in words.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Finding {
    pub(crate) id: Option<String>,
    pub(crate) title: Option<String>,
    pub(crate) state: Option<String>,
    pub(crate) found: Option<String>,
    pub(crate) effect: Option<String>,
    pub(crate) mend: Option<String>,
}

/// The CPUs to measure on.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Proposal {
    pub(crate) publisher_cpu: Option<u64>,
    pub(crate) subscriber_cpu: Option<u64>,
    pub(crate) rest_cpu: Option<u64>,
}

/// How a CPU was interrupted.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct CpuGaps {
    pub(crate) cpu: Option<u64>,
    pub(crate) duration_ns: Option<u64>,
    pub(crate) long_gaps: Option<u64>,
    pub(crate) longest_gap_ns: Option<u64>,
    pub(crate) lost_share: Option<f64>,
    pub(crate) interrupts_per_second: Option<f64>,
    pub(crate) interrupts_mostly: Option<String>,
}
