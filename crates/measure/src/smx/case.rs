//! One case of an experiment.

use serde::Serialize;
use std::fmt;
use std::str::FromStr;

/// The experiments of the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Experiment {
    /// Interruptions of the machine.
    Jitter,
    /// The highest rate, by message size.
    Size,
    /// The highest rate, by what the receiver does with each message.
    Workload,
    /// A receiver that is far slower than the publisher.
    Slow,
    /// One-way latency, by message size and rate.
    Latency,
    /// The copying call instead of writing in place.
    Generic,
    /// Two and three receivers.
    Receivers,
    /// Publisher and receiver on different NUMA nodes.
    Numa,
}

impl Experiment {
    /// All, in the order in which they run.
    pub const ALL: [Self; 8] = [
        Self::Jitter,
        Self::Size,
        Self::Workload,
        Self::Slow,
        Self::Latency,
        Self::Generic,
        Self::Receivers,
        Self::Numa,
    ];

    /// The name on the command line and in the lines.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Jitter => "jitter",
            Self::Size => "size",
            Self::Workload => "workload",
            Self::Slow => "slow",
            Self::Latency => "latency",
            Self::Generic => "generic",
            Self::Receivers => "receivers",
            Self::Numa => "numa",
        }
    }
}

impl fmt::Display for Experiment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Experiment {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|experiment| experiment.name() == text).ok_or_else(|| {
            format!("'{text}' is no experiment: choose of {}", Self::ALL.map(Self::name).join(", "))
        })
    }
}

/// How the publisher sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Api {
    /// Room is claimed, and written in place.
    Claim,
    /// The message is copied by the thread-safe call.
    Generic,
}

/// What one run looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Case {
    /// The length of each message, in bytes.
    pub size: usize,
    /// Messages a second; 0 is flat out.
    pub rate_asked: u64,
    /// Empty iterations per message at the receiver.
    pub spin: u64,
    /// How many receivers there are.
    pub receivers: usize,
    /// How the publisher sends.
    pub api: Api,
    /// Whether receivers only count and check the order.
    pub fast: bool,
    /// Whether publisher and receivers are on different NUMA nodes.
    pub cross_numa: bool,
}

impl Case {
    /// The highest rate of `size` bytes, to one receiver that only counts.
    pub const fn flat_out(size: usize) -> Self {
        Self {
            size,
            rate_asked: 0,
            spin: 0,
            receivers: 1,
            api: Api::Claim,
            fast: true,
            cross_numa: false,
        }
    }

    /// The latency of `size` bytes at a fixed rate.
    pub const fn paced(size: usize, rate_asked: u64) -> Self {
        Self { rate_asked, fast: false, ..Self::flat_out(size) }
    }

    /// The highest rate to a receiver that counts and then spins.
    pub const fn working(size: usize, spin: u64) -> Self {
        Self { spin, fast: false, ..Self::flat_out(size) }
    }

    /// The same with so many receivers.
    pub const fn with_receivers(self, receivers: usize) -> Self {
        Self { receivers, ..self }
    }

    /// The same through the copying call.
    pub const fn copying(self) -> Self {
        Self { api: Api::Generic, ..self }
    }

    /// The same across nodes.
    pub const fn across_nodes(self) -> Self {
        Self { cross_numa: true, ..self }
    }

    /// Whether this case measures latency, and so stamps its messages.
    pub const fn is_paced(&self) -> bool {
        self.rate_asked > 0
    }
}

/// Such as `100 B at 250000/s, 2 receivers`.
impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} B", self.size)?;
        if self.is_paced() {
            write!(f, " at {}/s", self.rate_asked)?;
        }
        if !self.fast && !self.is_paced() {
            write!(f, ", spin {}", self.spin)?;
        }
        if self.receivers > 1 {
            write!(f, ", {} receivers", self.receivers)?;
        }
        if self.api == Api::Generic {
            f.write_str(", copying")?;
        }
        if self.cross_numa {
            f.write_str(", across nodes")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_names_what_is_special_about_it() {
        assert_eq!(Case::flat_out(64).to_string(), "64 B");
        assert_eq!(Case::working(64, 4).to_string(), "64 B, spin 4");
        let case = Case::paced(100, 1000).with_receivers(2).copying().across_nodes();
        assert_eq!(case.to_string(), "100 B at 1000/s, 2 receivers, copying, across nodes");
    }

    #[test]
    fn every_experiment_is_known_by_its_name() {
        for experiment in Experiment::ALL {
            assert_eq!(experiment.name().parse(), Ok(experiment));
        }
        assert!("sizes".parse::<Experiment>().unwrap_err().contains("workload"));
    }
}
