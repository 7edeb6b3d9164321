//! Options of stores and of publishers whose messages are kept.

use lanecast_journal::JournalConfig;
use lanecast_persistence::{GroupRule, SourceSettings, StoreGroups, StoreSettings};

/// Options of a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreOptions {
    /// Bounds and times.
    pub settings: StoreSettings,
    /// The journal: length of its segments, and bytes that may wait for the disk.
    pub journal: JournalConfig,
}

/// Options of a publisher whose messages are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PersistentOptions {
    /// The stores, and the flight size.
    pub settings: SourceSettings,
}

impl PersistentOptions {
    /// Options with these stores, all others by default.
    pub const fn new(stores: StoreGroups) -> Self {
        Self { settings: SourceSettings::new(stores) }
    }

    /// Options with one store.
    ///
    /// # Panics
    /// If the name is empty or longer than 64 bytes.
    pub fn with_store(name: &str) -> Self {
        let groups = StoreGroups::new(vec![vec![name]], GroupRule::Any);
        Self::new(groups.expect("a store's name"))
    }
}
