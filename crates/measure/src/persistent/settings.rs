//! Parameters of ends whose messages stores keep, and the state that they share.

use super::error::StoreBackedError;
use super::flight::{Flight, FlightResult};
use super::missing::Missing;
use super::mode::PersistMode;
use super::notice::StoreNotice;
use lanecast_store::{Pacing, StoreGroups};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Interval of notices while stores are missing.
const NOTICE_EVERY: Duration = Duration::from_secs(1);
/// Sleep while stores, a transport without room, or a subscriber are waited for.
pub(super) const SHORT_WAIT: Duration = Duration::from_millis(1);

/// Stores, and the measure of waiting for them.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Whether slow receivers hold the publisher back.
    pub mode: PersistMode,
    /// Stable id of this program's publishers and subscribers.
    pub id: u64,
    /// A subscriber goes on where one with the same id that was killed had come to; otherwise it
    /// skips what the stores have kept.
    pub resumes: bool,
    /// Subscribers do not hold a receiver-paced publisher back.
    pub is_non_blocking: bool,
    /// The stores.
    pub stores: StoreGroups,
    /// Stores of single topics; the others have `stores`.
    pub topic_stores: Vec<(String, StoreGroups)>,
    /// Most messages that are not stable.
    pub flight_messages: usize,
    /// Most bytes of messages that are not stable.
    pub flight_bytes: usize,
    /// Most messages that are not consumed, receiver-paced.
    pub unconsumed_messages: u64,
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
            PersistMode::Receiver => Pacing::Receivers,
        }
    }

    pub(super) fn stores_of(&self, topic: &str) -> &StoreGroups {
        let own = self.topic_stores.iter().find(|(name, _)| name == topic);
        own.map_or(&self.stores, |(_, stores)| stores)
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
    /// Stores of the topics that were opened.
    pub(super) used: Mutex<Vec<String>>,
}

impl Shared {
    pub(super) fn new(settings: Settings, hooks: StoreHooks) -> Self {
        Self { settings, hooks, flight: Flight::default(), used: Mutex::default() }
    }

    /// Waits until enough stores have accepted the `end` (`publisher` or `subscriber`) of `topics`.
    /// `poll` serves it and returns the amount of work, and the missing stores if it has to wait.
    pub(super) fn wait_for_stores(
        &self,
        (topics, end): (String, &'static str),
        mut poll: impl FnMut() -> (usize, Option<Missing>),
    ) -> Result<(), StoreBackedError> {
        let patience = self.settings.patience;
        let (start, mut notice_at) = (Instant::now(), Instant::now() + NOTICE_EVERY);
        loop {
            let (work, missing) = poll();
            let Some(missing) = missing else {
                (self.hooks.notify)(&StoreNotice::Registered { topics, end });
                return Ok(());
            };
            if (self.hooks.stop)() {
                return Err(StoreBackedError::Stopped);
            }
            let now = Instant::now();
            // Before the error: a program that had no CPU meanwhile has not said it yet.
            if now >= notice_at {
                notice_at = now + NOTICE_EVERY;
                let (stores, unlisted) = (missing.count(), missing.unlisted.clone());
                (self.hooks.notify)(&StoreNotice::Waiting { stores, unlisted });
            }
            if now - start >= patience {
                return Err(missing.error(patience));
            }
            rest(work);
        }
    }

    /// Persistence so far, for a run's result.
    pub(super) fn result(&self) -> FlightResult {
        let Settings { mode, id, .. } = self.settings;
        self.flight.result(mode, id, self.used().join(","))
    }

    fn used(&self) -> MutexGuard<'_, Vec<String>> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Names of the stores of a topic, which is going to be opened.
    pub(super) fn use_stores(&self, topic: &str) -> Vec<String> {
        let names: Vec<String> =
            self.settings.stores_of(topic).names().map(str::to_owned).collect();
        let mut used = self.used();
        for name in &names {
            if !used.contains(name) {
                used.push(name.clone());
            }
        }
        names
    }
}

/// Sleeps after a poll without work, whatever the wait strategy: nothing is measured, and a thread
/// that spins could take the CPU that a store needs to answer.
pub(super) fn rest(work: usize) {
    if work == 0 {
        std::thread::sleep(SHORT_WAIT);
    }
}
