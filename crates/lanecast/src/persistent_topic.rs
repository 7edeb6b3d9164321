//! Persistence: the way from a topic to stores, and to the publishers and subscribers that use
//! them.

use crate::error::Error;
use crate::exact_topics::ExactTopics;
use crate::persistence_settings::PersistenceSettings;
use lanecast_store::{
    Acknowledgement, DurableOptions, GroupRule, OpenError, Pacing, PersistentOptions, ReceiverEnd,
    ReceiverStart, StoreError, StoreGroups, StoreOptions,
};
use std::path::Path;

/// A publisher whose messages are kept; see [`lanecast_store::PersistentPublisher`].
pub type PersistentPublisher = lanecast_store::PersistentPublisher<ExactTopics>;

/// A subscriber that gets what it missed; see [`lanecast_store::DurableSubscriber`].
pub type DurableSubscriber = lanecast_store::DurableSubscriber<ExactTopics>;

/// A store; see [`lanecast_store::StoreServer`].
pub type StoreServer = lanecast_store::StoreServer<ExactTopics>;

/// A client that looks at stores; see [`lanecast_store::StoreAdministrator`].
pub type StoreAdministrator = lanecast_store::StoreAdministrator<ExactTopics>;

/// A topic whose messages stores keep, made by [`Topic::persistent`](crate::Topic::persistent):
/// opens its publisher. Settings that are not named here are those of `[persistence]`.
///
/// Stores are programs of their own: `lanecast store`, or [`Context::store`](crate::Context::store)
/// within this one.
///
/// ```
/// use lanecast::persistence::ReceiverEvent;
/// use lanecast::prelude::*;
/// use std::time::Duration;
/// # let directory = tempfile::tempdir()?;
/// # let context = Context::builder().set("shm.directory", directory.path().display())?.build()?;
///
/// let mut store = context.store("store", &directory.path().join("data"))?;
/// let mut orders = context.topic("orders").persistent(7).publisher()?; // its id over all restarts
/// while orders.stable() < 1 {
///     if orders.next() == 0 {
///         let _ = orders.try_send(b"hello"); // refused until the store has accepted
///     }
///     orders.poll(|_| {});
///     let work = store.poll()?;
///     store.wait_at_most(work, Duration::from_millis(1));
/// }
///
/// let mut feed = context.topic("orders").durable(99).subscriber()?; // late, and misses nothing
/// let mut received = Vec::new();
/// while received.is_empty() {
///     feed.poll(64, |event| {
///         if let ReceiverEvent::Message(message) = event {
///             received.push((message.sequence(), message.bytes().to_vec()));
///         }
///     });
///     store.poll()?;
/// }
/// assert_eq!(received, [(0, b"hello".to_vec())]);
/// # drop((feed, orders, store));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct PersistentTopic<'a> {
    transports: &'a ExactTopics,
    topic: &'a str,
    source: u64,
    settings: PersistenceSettings,
}

impl<'a> PersistentTopic<'a> {
    pub(crate) const fn new(
        transports: &'a ExactTopics,
        topic: &'a str,
        source: u64,
        settings: PersistenceSettings,
    ) -> Self {
        Self { transports, topic, source, settings }
    }

    /// The stores: a message is stable when more than half of them have it on disk. Publishers and
    /// subscribers of a topic name the same.
    pub fn stores(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.settings.stores = vec![names.into_iter().map(Into::into).collect()];
        self
    }

    /// Several groups of stores, and how many of the groups have to hold a message.
    pub fn groups(mut self, groups: Vec<Vec<String>>, rule: GroupRule) -> Self {
        (self.settings.stores, self.settings.groups) = (groups, rule);
        self
    }

    /// Receiver-paced: registered receivers hold the publisher back while this number of messages
    /// are not consumed.
    pub const fn receiver_paced(mut self, messages: u64) -> Self {
        self.settings.pacing = Pacing::Receivers;
        self.settings.unconsumed_messages = messages;
        self
    }

    /// Source-paced: the publisher does not wait for receivers.
    pub const fn source_paced(mut self) -> Self {
        self.settings.pacing = Pacing::Source;
        self
    }

    /// The flight size: the most messages, and the most bytes of them, that are not stable.
    pub const fn flight_size(mut self, messages: usize, bytes: usize) -> Self {
        (self.settings.flight_messages, self.settings.flight_bytes) = (messages, bytes);
        self
    }

    /// Opens the publisher.
    ///
    /// # Errors
    /// [`Error::Name`] if a name cannot be used; others see [`Error`].
    pub fn publisher(self) -> Result<PersistentPublisher, Error> {
        let configured = &self.settings;
        let mut options = PersistentOptions::new(store_groups(configured)?);
        let settings = &mut options.settings;
        settings.flight_messages = configured.flight_messages;
        settings.flight_bytes = configured.flight_bytes;
        settings.pacing = configured.pacing;
        settings.unconsumed_messages = configured.unconsumed_messages;
        settings.retry = configured.retry_ns();
        let Self { transports, topic, source, .. } = self;
        PersistentPublisher::open(transports, topic, source, options).map_err(not_opened)
    }
}

/// A topic for a subscriber that gets what it missed, made by
/// [`Topic::durable`](crate::Topic::durable). [`PersistentTopic`] has an example.
#[derive(Clone, Debug)]
#[must_use]
pub struct DurableTopic<'a> {
    transports: &'a ExactTopics,
    topic: &'a str,
    session: u64,
    settings: PersistenceSettings,
    start: ReceiverStart,
    is_replay: bool,
    end: ReceiverEnd,
    is_non_blocking: bool,
    acknowledgement: Acknowledgement,
}

impl<'a> DurableTopic<'a> {
    pub(crate) const fn new(
        transports: &'a ExactTopics,
        topic: &'a str,
        session: u64,
        settings: PersistenceSettings,
    ) -> Self {
        Self {
            transports,
            topic,
            session,
            settings,
            start: ReceiverStart::Oldest,
            is_replay: false,
            end: ReceiverEnd::Never,
            is_non_blocking: false,
            acknowledgement: Acknowledgement::OnReturn,
        }
    }

    /// As [`PersistentTopic::stores`].
    pub fn stores(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.settings.stores = vec![names.into_iter().map(Into::into).collect()];
        self
    }

    /// As [`PersistentTopic::groups`].
    pub fn groups(mut self, groups: Vec<Vec<String>>, rule: GroupRule) -> Self {
        (self.settings.stores, self.settings.groups) = (groups, rule);
        self
    }

    /// Start of the subscriber in a stream of which it has consumed nothing.
    pub const fn start(mut self, start: ReceiverStart) -> Self {
        self.start = start;
        self
    }

    /// Replays from `start`, even what this subscriber has consumed. By default it goes on behind
    /// the last message that it has acknowledged.
    pub const fn replay_from(mut self, start: ReceiverStart) -> Self {
        (self.start, self.is_replay) = (start, true);
        self
    }

    /// End of each stream: the stores send nothing from there on. The subscriber is done when
    /// [`has_ended`](DurableSubscriber::has_ended) says so.
    ///
    /// ```
    /// use lanecast::persistence::{ReceiverEnd, ReceiverEvent, ReceiverStart};
    /// use lanecast::prelude::*;
    /// # let directory = tempfile::tempdir()?;
    /// # let place = directory.path().display();
    /// # let context = Context::builder().set("shm.directory", place)?.build()?;
    /// # let mut store = context.store("store", &directory.path().join("data"))?;
    /// # let mut publisher = context.topic("orders").persistent(7).publisher()?;
    /// # while publisher.stable() < 5 {
    /// #     if publisher.next() < 5 {
    /// #         let _ = publisher.try_send(b"hello");
    /// #     }
    /// #     publisher.poll(|_| {});
    /// #     store.poll()?;
    /// # }
    ///
    /// let replay = context.topic("orders").durable(99).replay_from(ReceiverStart::Sequence(1));
    /// let mut replay = replay.until(ReceiverEnd::Sequence(3)).subscriber()?;
    /// let mut sequences = Vec::new();
    /// while !replay.has_ended() {
    ///     replay.poll(64, |event| {
    ///         if let ReceiverEvent::Message(message) = event {
    ///             sequences.push(message.sequence());
    ///         }
    ///     });
    /// #     store.poll()?;
    /// }
    /// assert_eq!(sequences, [1, 2]);
    /// # drop((replay, publisher, store));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub const fn until(mut self, end: ReceiverEnd) -> Self {
        self.end = end;
        self
    }

    /// Does not hold a receiver-paced publisher back. The stores keep this subscriber's position,
    /// and messages for it as for subscribers of a source-paced publisher; when it was too slow or
    /// away for too long, it is told which are gone
    /// ([`ReceiverEvent::Lost`](crate::persistence::ReceiverEvent::Lost)).
    pub const fn non_blocking(mut self) -> Self {
        self.is_non_blocking = true;
        self
    }

    /// When a message counts as consumed. By default when its handler returns.
    pub const fn acknowledgement(mut self, acknowledgement: Acknowledgement) -> Self {
        self.acknowledgement = acknowledgement;
        self
    }

    /// Opens the subscriber.
    ///
    /// # Errors
    /// [`Error::Name`] if a name cannot be used; others see [`Error`].
    pub fn subscriber(self) -> Result<DurableSubscriber, Error> {
        let (cache_bytes, retry) = (self.settings.cache_bytes, self.settings.retry_ns());
        let mut options = DurableOptions::new(store_groups(&self.settings)?);
        let settings = &mut options.settings;
        (settings.start, settings.cache_bytes, settings.retry) = (self.start, cache_bytes, retry);
        (settings.is_replay, settings.end) = (self.is_replay, self.end);
        settings.is_non_blocking = self.is_non_blocking;
        options.acknowledgement = self.acknowledgement;
        let Self { transports, topic, session, .. } = self;
        DurableSubscriber::open(transports.clone(), topic, session, options).map_err(not_opened)
    }
}

fn store_groups(settings: &PersistenceSettings) -> Result<StoreGroups, Error> {
    let stores = StoreGroups::new(settings.stores.clone(), settings.groups);
    stores.map_err(|error| Error::Name(error.to_string()))
}

/// Opens a store with its data in `directory`.
pub(crate) fn open_store(
    transports: &ExactTopics,
    name: &str,
    directory: &Path,
    mut options: StoreOptions,
) -> Result<StoreServer, Error> {
    options.counters = options.counters.or_else(|| transports.counters_directory());
    let opened = StoreServer::open(transports.clone(), name, directory, options);
    opened.map_err(|error| match error {
        StoreError::Transport(error) => error,
        StoreError::Name(error) => Error::Name(error.to_string()),
        other => refused(other),
    })
}

/// Opens an administrator of stores.
pub(crate) fn open_administrator(
    transports: &ExactTopics,
    stores: &[&str],
) -> Result<StoreAdministrator, Error> {
    StoreAdministrator::open(transports, stores).map_err(not_opened)
}

fn not_opened(error: OpenError<Error>) -> Error {
    match error {
        OpenError::Transport(error) => error,
        OpenError::Name(error) => Error::Name(error.to_string()),
        other => refused(other),
    }
}

fn refused(error: impl std::fmt::Display) -> Error {
    Error::Persistence(error.to_string())
}
