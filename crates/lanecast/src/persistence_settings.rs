//! Settings of publishers whose messages are kept, and of subscribers that get what they missed.

use lanecast_store::{GroupRule, Pacing};
use std::time::Duration;

/// The store that is used if none is named.
const STORE: &str = "store";

/// Settings of persistence: the section `[persistence]`. Builders of topics change them for one
/// publisher or subscriber.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PersistenceSettings {
    /// Groups of stores, by name.
    pub stores: Vec<Vec<String>>,
    /// Groups of stores of single topics; the others have `stores`.
    pub topic_stores: Vec<(String, Vec<Vec<String>>)>,
    /// Rule for the groups that have to hold a message.
    pub groups: GroupRule,
    /// Whether registered receivers hold publishers back.
    pub pacing: Pacing,
    /// Most messages that are not consumed by all registered receivers, where these hold publishers
    /// back.
    pub unconsumed_messages: u64,
    /// Most messages of a publisher that are not stable.
    pub flight_messages: usize,
    /// Most bytes of them.
    pub flight_bytes: usize,
    /// Most bytes of live messages of a stream that wait at a subscriber for those before them.
    pub cache_bytes: usize,
    /// Interval of requests to each store.
    pub retry: Duration,
}

impl Default for PersistenceSettings {
    /// One store with the name `store`, 10,000 messages or 4 MiB in flight, source-paced.
    fn default() -> Self {
        Self {
            stores: vec![vec![STORE.to_owned()]],
            topic_stores: Vec::new(),
            groups: GroupRule::Any,
            pacing: Pacing::Source,
            unconsumed_messages: 100_000,
            flight_messages: 10_000,
            flight_bytes: 4 << 20,
            cache_bytes: 4 << 20,
            retry: Duration::from_millis(200),
        }
    }
}

impl PersistenceSettings {
    /// Groups of the stores of `topic`.
    pub fn stores_of(&self, topic: &str) -> &[Vec<String>] {
        let own = self.topic_stores.iter().find(|(name, _)| name == topic);
        own.map_or(&self.stores, |(_, stores)| stores)
    }

    /// [`retry`](Self::retry) in nanoseconds, as publishers and subscribers have it.
    pub(crate) fn retry_ns(&self) -> u64 {
        u64::try_from(self.retry.as_nanos()).unwrap_or(u64::MAX)
    }

    /// Settings of `topic`: its stores are those of all.
    pub(crate) fn of_topic(mut self, topic: &str) -> Self {
        self.stores = self.stores_of(topic).to_vec();
        self
    }
}
