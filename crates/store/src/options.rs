//! Options of stores and of publishers whose messages are kept.

use lanecast_journal::JournalConfig;
use lanecast_persistence::{
    GroupRule, ReceiverSettings, SourceSettings, StoreGroups, StoreSettings,
};

/// Options of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreOptions {
    /// Bounds and times.
    pub settings: StoreSettings,
    /// The journal: length of its segments, and bytes that may wait for the disk.
    pub journal: JournalConfig,
    /// Bytes of journal between two checkpoints: a store that starts again reads about so much.
    /// Default 64 MiB.
    pub checkpoint_bytes: u64,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            settings: StoreSettings::default(),
            journal: JournalConfig::default(),
            checkpoint_bytes: 64 << 20,
        }
    }
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

/// When a message counts as consumed, so that it does not come again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Acknowledgement {
    /// When its handler has returned. A program that dies inside the handler is handed the message
    /// again.
    #[default]
    OnReturn,
    /// When the program says so: [`DurableSubscriber::acknowledge`](crate::DurableSubscriber).
    Explicit,
    /// When it is received, before its handler is called: a program that dies inside the handler
    /// loses the message.
    OnReception,
}

/// Options of a subscriber that gets what it missed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DurableOptions {
    /// The stores, and where to begin.
    pub settings: ReceiverSettings,
    /// When a message counts as consumed.
    pub acknowledgement: Acknowledgement,
}

impl DurableOptions {
    /// Options with these stores, all others by default: messages are consumed when their handler
    /// returns.
    pub const fn new(stores: StoreGroups) -> Self {
        let acknowledgement = Acknowledgement::OnReturn;
        Self { settings: ReceiverSettings::new(stores), acknowledgement }
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
