//! Messages in flight, as a run's result shows them.

use super::mode::PersistMode;
use lanecast_base::sync::{AtomicU64, Ordering};
use serde::Serialize;
use std::time::Duration;

/// Persistence of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FlightResult {
    /// `s` or `r`.
    pub mode: PersistMode,
    /// Stable id of the program's ends.
    pub id: u64,
    /// The stores, separated by commas.
    pub stores: String,
    /// Most messages in flight at once.
    pub most_in_flight: u64,
    /// Messages that were in flight, or not sent, when the publishers had closed.
    pub left_in_flight: u64,
    /// Time from the end of sending until nothing was in flight, or was waited for no longer.
    pub drained_ns: u64,
    /// Number of times that a store fell silent.
    pub stores_lost: u64,
}

/// Counts of messages in flight. Relaxed: they publish nothing else.
#[derive(Debug, Default)]
pub(super) struct Flight {
    most: AtomicU64,
    left: AtomicU64,
    drained_ns: AtomicU64,
    stores_lost: AtomicU64,
}

impl Flight {
    pub(super) fn note_most(&self, messages: u64) {
        self.most.fetch_max(messages, Ordering::Relaxed);
    }

    pub(super) fn note_left(&self, messages: u64) {
        self.left.fetch_add(messages, Ordering::Relaxed);
    }

    pub(super) fn note_drained(&self, time: Duration) {
        let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.drained_ns.fetch_max(ns, Ordering::Relaxed);
    }

    pub(super) fn note_store_lost(&self) {
        self.stores_lost.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn result(&self, mode: PersistMode, id: u64, stores: String) -> FlightResult {
        FlightResult {
            mode,
            id,
            stores,
            most_in_flight: self.most.load(Ordering::Relaxed),
            left_in_flight: self.left.load(Ordering::Relaxed),
            drained_ns: self.drained_ns.load(Ordering::Relaxed),
            stores_lost: self.stores_lost.load(Ordering::Relaxed),
        }
    }
}
