//! Under which conditions a figure was found, as lines carry it.

use serde::{Deserialize, Serialize};

/// The machine.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub(crate) struct Host {
    pub(crate) cpu: Option<String>,
    pub(crate) architecture: Option<String>,
    pub(crate) cpus: Option<u64>,
    pub(crate) threads_per_core: Option<u64>,
    pub(crate) numa_nodes: Option<u64>,
    pub(crate) l2_bytes: Option<u64>,
    pub(crate) l3_bytes: Option<u64>,
    pub(crate) memory_bytes: Option<u64>,
    pub(crate) kernel: Option<String>,
    pub(crate) hypervisor: Option<String>,
    pub(crate) governor: Option<String>,
    pub(crate) clock_source: Option<String>,
    pub(crate) load_average: Option<f64>,
}

impl Host {
    /// The same machine, apart from how busy it was.
    pub(crate) fn is_same_machine(&self, other: &Self) -> bool {
        let still = |host: &Self| Self { load_average: None, ..host.clone() };
        still(self) == still(other)
    }
}

/// What a figure is worth nothing without.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Conditions {
    pub(crate) transport: Option<String>,
    pub(crate) wait: Option<String>,
    pub(crate) window: Option<String>,
    pub(crate) touch: Option<String>,
    pub(crate) clock: Option<String>,
    pub(crate) clock_cost_ns: Option<f64>,
    pub(crate) recording_cost_ns: Option<f64>,
    pub(crate) cpus: Option<Cpus>,
    pub(crate) raise: Option<String>,
    pub(crate) interference: Option<Interference>,
}

impl Conditions {
    /// Sentences that say why the figure may be wrong.
    pub(crate) fn doubts(&self) -> &[String] {
        self.interference.as_ref().map_or(&[], Interference::doubts)
    }

    /// The CPU that the measured thread ended on.
    pub(crate) fn ran_on(&self) -> Option<u64> {
        self.cpus.as_ref()?.ran_on
    }
}

/// Where the measured thread ran.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Cpus {
    pub(crate) pinned: Option<u64>,
    pub(crate) choice: Option<String>,
    pub(crate) ran_on: Option<u64>,
    pub(crate) online: Option<u64>,
}

/// What disturbed the measured thread.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Interference {
    pub(crate) elapsed_ns: Option<u64>,
    pub(crate) involuntary_switches: Option<u64>,
    pub(crate) voluntary_switches: Option<u64>,
    pub(crate) waited_ns: Option<u64>,
    pub(crate) stolen_ns: Option<u64>,
    pub(crate) longest_gap_ns: Option<u64>,
    pub(crate) gap_watched: Option<String>,
    pub(crate) doubts: Option<Vec<String>>,
}

impl Interference {
    /// Sentences that say why the figure may be wrong.
    pub(crate) fn doubts(&self) -> &[String] {
        self.doubts.as_deref().unwrap_or_default()
    }
}
