//! The demonstration's results.

use super::actors::{PublisherFigures, SubscriberFigures};
use crate::table::grouped;
use serde::Serialize;

/// The figures of all processes.
#[derive(Debug, Serialize)]
pub(super) struct Outcome {
    pub(super) steady: PublisherFigures,
    pub(super) flat_out: PublisherFigures,
    pub(super) survivors: Vec<SubscriberFigures>,
    pub(super) victim_pid: u32,
    /// Messages lost by all surviving subscribers together.
    lost: u64,
}

impl Outcome {
    pub(super) fn new(
        steady: PublisherFigures,
        flat_out: PublisherFigures,
        survivors: Vec<SubscriberFigures>,
        victim_pid: u32,
    ) -> Self {
        let mut outcome = Self { steady, flat_out, survivors, victim_pid, lost: 0 };
        outcome.lost = outcome.survivors.iter().map(|survivor| outcome.lost(survivor)).sum();
        outcome
    }

    /// Messages lost by a surviving subscriber.
    pub(super) fn lost(&self, survivor: &SubscriberFigures) -> u64 {
        self.flat_out.total.saturating_sub(survivor.received) + survivor.out_of_order
    }

    pub(super) fn is_complete(&self) -> bool {
        self.survivors.iter().all(|survivor| {
            self.lost(survivor) == 0
                && survivor.received == self.flat_out.total
                && survivor.checksum == self.flat_out.checksum
                && survivor.fate == "closed"
        })
    }

    /// The verdict in words.
    pub(super) fn words(&self) -> String {
        if self.is_complete() {
            format!(
                "Every survivor read all {} messages in order, byte for byte; none was lost.",
                grouped(self.flat_out.total)
            )
        } else {
            "Not every survivor read every message: this should not happen, please report it."
                .into()
        }
    }
}
