//! From which time latencies are counted.

use crate::distribution::Distribution;
use crate::outcome::{Latency, Subscriber};

/// From which time latencies are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Since {
    /// When the message was sent: what the source documents show.
    Actual,
    /// When the schedule wanted it sent: what a reader had to wait.
    #[default]
    Intended,
}

impl Since {
    pub(crate) const BOTH: [Self; 2] = [Self::Actual, Self::Intended];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Actual => "actual",
            Self::Intended => "intended",
        }
    }

    /// The latencies that `subscriber` saw.
    pub(crate) fn of(self, subscriber: &Subscriber) -> Option<&Distribution> {
        self.pick(subscriber.counts.latency.as_ref()?)
    }

    /// One of both distributions.
    pub(crate) const fn pick(self, latency: &Latency) -> Option<&Distribution> {
        match self {
            Self::Actual => latency.actual.as_ref(),
            Self::Intended => latency.intended.as_ref(),
        }
    }
}
