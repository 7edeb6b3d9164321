//! One case of an experiment.

use crate::names::named;
use serde::Serialize;
use std::fmt;

named! {
    /// An experiment of the document.
    pub enum Experiment: "experiment" {
        /// Interruptions of the machine.
        Jitter = "jitter",
        /// The highest rate, by message size.
        Size = "size",
        /// The highest rate, by the receiver's work for each message.
        Workload = "workload",
        /// A receiver that is far slower than the publisher.
        Slow = "slow",
        /// One-way latency, by message size and rate.
        Latency = "latency",
        /// The copying call instead of writing in place.
        Generic = "generic",
        /// Two and three receivers.
        Receivers = "receivers",
        /// Publisher and receiver on different NUMA nodes.
        Numa = "numa",
    }
}

named! {
    /// The publisher's call.
    pub enum Api: "call" {
        /// Claims room and writes the message in place.
        Claim = "claim",
        /// Copies the message by the thread-safe call.
        Generic = "generic",
    }
}

/// Parameters of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Case {
    /// The length of each message, in bytes.
    pub size: usize,
    /// Messages a second; 0 is flat out.
    pub rate_asked: u64,
    /// Empty iterations per message at the receiver.
    pub spin: u64,
    /// Number of receivers.
    pub receivers: usize,
    /// Call of the publisher.
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
