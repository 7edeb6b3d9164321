//! Parameters of ends whose messages stores keep, and the state that they share.

use super::flight::{Flight, FlightResult};
use super::mode::PersistMode;
use super::notice::StoreNotice;
use lanecast_store::{Pacing, StoreGroups};
use std::fmt;
use std::time::Duration;

/// Stores, and the measure of waiting for them.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Whether slow receivers hold the publisher back.
    pub mode: PersistMode,
    /// Stable id of this program's publishers and subscribers.
    pub id: u64,
    /// The stores.
    pub stores: StoreGroups,
    /// Most messages in flight: not stable, or, receiver-paced, not consumed.
    pub flight_messages: usize,
    /// Most bytes of messages that are not stable.
    pub flight_bytes: usize,
    /// Most bytes of live messages that wait for those in front of them.
    pub cache_bytes: usize,
    /// Interval of requests to each store, in nanoseconds.
    pub retry: u64,
    /// Longest time without a store's acceptance at the start, and without any progress of
    /// messages in flight later.
    pub patience: Duration,
}

impl Settings {
    pub(super) fn pacing(&self) -> Pacing {
        match self.mode {
            PersistMode::Source => Pacing::Source,
            PersistMode::Receiver => Pacing::Receivers { messages: self.flight_messages as u64 },
        }
    }

    pub(super) fn store_names(&self) -> Vec<String> {
        self.stores.names().map(str::to_owned).collect()
    }
}

/// Callbacks of publishers and subscribers, by whichever thread uses them.
pub struct StoreHooks {
    /// Ends waiting as soon as it is true.
    pub stop: Box<dyn Fn() -> bool + Send + Sync>,
    /// Receives notices about stores and messages in flight.
    pub notify: Box<dyn Fn(&StoreNotice) + Send + Sync>,
}

impl fmt::Debug for StoreHooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreHooks").finish_non_exhaustive()
    }
}

/// State that all ends of a transport share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) settings: Settings,
    pub(super) hooks: StoreHooks,
    pub(super) flight: Flight,
}

impl Shared {
    /// Persistence so far, for a run's result.
    pub(super) fn result(&self) -> FlightResult {
        let Settings { mode, id, .. } = self.settings;
        self.flight.result(mode, id, self.settings.store_names().join(","))
    }
}
