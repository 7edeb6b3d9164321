//! Options of stores and of publishers whose messages are kept.

use lanecast_journal::{JournalConfig, Retention};
use lanecast_persistence::{
    GroupRule, ReceiverSettings, SourceSettings, StoreGroups, StoreSettings, UnconsumedBounds,
};
use std::path::PathBuf;
use std::time::Duration;

/// Options of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreOptions {
    /// Bounds and times.
    pub settings: StoreSettings,
    /// The journal: length of its segments, and bytes that may wait for the disk.
    pub journal: JournalConfig,
    /// Long batches go past the page cache of the system where that is possible: see
    /// [`Directory::with_direct_writes`](lanecast_journal::Directory::with_direct_writes). Default
    /// yes.
    pub has_direct_writes: bool,
    /// Longest time for which messages that keep coming are gathered before they are written, as
    /// long as no publisher seems to wait for those before: fewer writes, and less of the CPUs that
    /// publishers and subscribers may need. A publisher that waits for each message beside others
    /// that keep sending waits longer by so much. Only for stores that wait by
    /// [`wait_at_most`](crate::StoreServer::wait_at_most). Default 1 ms; 0 writes at once;
    /// [`COMMIT_DELAY_MAX`](Self::COMMIT_DELAY_MAX) is the longest.
    pub commit_delay: Duration,
    /// Bytes of journal between two checkpoints: a store that starts again reads about so much.
    /// Default 64 MiB; at most an eighth of the limit of `retention`.
    pub checkpoint_bytes: u64,
    /// Limits of the messages that are kept. Takes the place of `journal.retention` and
    /// `settings.unconsumed`.
    pub retention: StoreRetention,
    /// Every client may end registrations, not only those with the key in the store's directory:
    /// see [`read_administration_key`](crate::read_administration_key). Default no.
    pub permits_deregistration: bool,
    /// Directory for a file of this store's counters, which `lanecast stat` and `top` show while
    /// the store lives; only this user can read it. `None` writes none.
    pub counters: Option<PathBuf>,
}

/// Limits of the messages that a store keeps: beyond them the oldest are given up, as soon as a
/// segment of the journal is full. Receivers that would have wanted them are told which are lost.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreRetention {
    /// Bytes of the journal's files, of all topics. A few segments more are in use at times.
    /// Default none.
    pub bytes: Option<u64>,
    /// Age of messages. Default none.
    pub age: Option<Duration>,
    /// Bytes of a stream's messages that are kept beyond the limits because a registered receiver
    /// has not consumed them; of all streams, half of `bytes`. Of a source-paced stream the oldest
    /// are given up beyond that. A receiver-paced one is not given up: at its bound the store takes
    /// no more of its messages, so that its publisher stops until receivers have consumed some.
    /// 0: the oldest are given up, consumed or not. Default 64 MiB.
    pub unconsumed_bytes: u64,
    /// Limits of single topics, in addition.
    pub topics: Vec<TopicRetention>,
}

/// Limits of the messages of one topic, for each of its publishers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopicRetention {
    /// The topic.
    pub topic: String,
    /// Bytes of messages, to about 64 KiB. None: no limit of its own.
    pub bytes: Option<u64>,
    /// Age of messages. None: no limit of its own.
    pub age: Option<Duration>,
    /// As [`StoreRetention::unconsumed_bytes`], in its place.
    pub unconsumed_bytes: Option<u64>,
}

impl Default for StoreRetention {
    fn default() -> Self {
        Self { bytes: None, age: None, unconsumed_bytes: 64 << 20, topics: Vec::new() }
    }
}

impl StoreOptions {
    /// Longest [`commit_delay`](Self::commit_delay): publishers send again what is not stable after
    /// 200 ms, unless told otherwise.
    pub const COMMIT_DELAY_MAX: Duration = Duration::from_millis(100);

    /// Configuration of the journal.
    pub(crate) fn journal_config(&self) -> JournalConfig {
        let StoreRetention { bytes, age, .. } = self.retention;
        JournalConfig { retention: Retention { bytes, age }, ..self.journal.clone() }
    }

    /// Bounds of the protocol: those of retention, if there are limits at all.
    pub(crate) fn store_settings(&self) -> StoreSettings {
        let StoreRetention { bytes, age, unconsumed_bytes, topics } = &self.retention;
        let has_limits = bytes.is_some() || age.is_some();
        let bound = |limited: bool, bytes: u64| (limited && bytes > 0).then_some(bytes);
        let of_topic = |it: &TopicRetention| {
            let limited = has_limits || it.bytes.is_some() || it.age.is_some();
            let bytes = it.unconsumed_bytes.unwrap_or(*unconsumed_bytes);
            (it.topic.clone(), bound(limited, bytes))
        };
        let unconsumed = UnconsumedBounds {
            bytes: bound(has_limits, *unconsumed_bytes),
            topics: topics.iter().map(of_topic).collect(),
        };
        StoreSettings { unconsumed, ..self.settings.clone() }
    }

    /// Bytes between two checkpoints: retention waits for two of them.
    pub(crate) fn checkpoint_interval(&self) -> u64 {
        let limit = self.retention.bytes.map_or(u64::MAX, |bytes| bytes / 8);
        self.checkpoint_bytes.min(limit)
    }
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            settings: StoreSettings::default(),
            journal: JournalConfig::default(),
            has_direct_writes: true,
            commit_delay: Duration::from_millis(1),
            checkpoint_bytes: 64 << 20,
            retention: StoreRetention::default(),
            permits_deregistration: false,
            counters: None,
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
    /// When it is received: reported to the stores before its handler is called, one report for
    /// all messages of a poll. A program that dies inside the handler does not get the message
    /// again: it loses that, and the others of the same poll that it was not handed yet. These are
    /// at most the poll's `limit` of live messages, or the messages in as many answers of stores,
    /// of up to 128 KiB each. A poll with limit 1 loses one live message.
    ///
    /// Reports are not waited for. If none reaches a store, since all of them or this host fail at
    /// the same moment, messages come again as with [`OnReturn`](Self::OnReturn).
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
