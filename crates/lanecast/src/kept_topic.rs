//! Persistence: the way from a context to stores, and to the publishers and subscribers that use
//! them.

use crate::error::Error;
use crate::exact_topics::ExactTopics;
use lanecast_store::{
    DurableOptions, GroupRule, OpenError, Pacing, PersistentOptions, ReceiverStart, StoreError,
    StoreGroups, StoreOptions,
};
use std::path::Path;

/// The store that is used if none is named.
const STORE: &str = "store";

/// A publisher whose messages are kept; see [`lanecast_store::PersistentPublisher`].
pub type PersistentPublisher = lanecast_store::PersistentPublisher<ExactTopics>;

/// A subscriber that gets what it missed; see [`lanecast_store::DurableSubscriber`].
pub type DurableSubscriber = lanecast_store::DurableSubscriber<ExactTopics>;

/// A store; see [`lanecast_store::StoreServer`].
pub type StoreServer = lanecast_store::StoreServer<ExactTopics>;

/// The kept messages of a topic, made by [`Context::kept`](crate::Context::kept): opens publishers
/// and subscribers.
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
/// let mut publisher = context.kept("orders").publisher(7)?; // its id, over all restarts
/// while publisher.stable() < 1 {
///     if publisher.next() == 0 {
///         let _ = publisher.try_send(b"hello"); // refused until the store has accepted
///     }
///     publisher.poll(|_| {});
///     let work = store.poll()?;
///     store.wait_at_most(work, Duration::from_millis(1));
/// }
///
/// let mut subscriber = context.kept("orders").subscriber(99)?; // comes late, misses nothing
/// let mut received = Vec::new();
/// while received.is_empty() {
///     subscriber.poll(64, |event| {
///         if let ReceiverEvent::Message { sequence, bytes, .. } = event {
///             received.push((sequence, bytes.to_vec()));
///         }
///     });
///     store.poll()?;
/// }
/// assert_eq!(received, [(0, b"hello".to_vec())]);
/// # drop((subscriber, publisher, store));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use]
pub struct KeptTopic<'a> {
    transports: &'a ExactTopics,
    topic: &'a str,
    groups: Vec<Vec<String>>,
    rule: GroupRule,
    pacing: Pacing,
    start: ReceiverStart,
    consumes_on_return: bool,
}

impl<'a> KeptTopic<'a> {
    pub(crate) fn new(transports: &'a ExactTopics, topic: &'a str) -> Self {
        Self {
            transports,
            topic,
            groups: vec![vec![STORE.to_owned()]],
            rule: GroupRule::Any,
            pacing: Pacing::Source,
            start: ReceiverStart::Oldest,
            consumes_on_return: true,
        }
    }

    /// The stores: a message is stable when more than half of them have it on disk. By default one
    /// with the name `store`. Publishers and subscribers of a topic name the same.
    pub fn stores(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.groups = vec![names.into_iter().map(Into::into).collect()];
        self
    }

    /// Several groups of stores, and how many of the groups have to hold a message.
    pub fn groups(mut self, groups: Vec<Vec<String>>, rule: GroupRule) -> Self {
        (self.groups, self.rule) = (groups, rule);
        self
    }

    /// For the publisher: registered receivers hold it back while this number of messages are not
    /// consumed (receiver-paced). By default it does not wait for them (source-paced).
    pub const fn receiver_paced(mut self, messages: u64) -> Self {
        self.pacing = Pacing::Receivers { messages };
        self
    }

    /// For the subscriber: where it begins with a stream of which it has consumed nothing.
    pub const fn start(mut self, start: ReceiverStart) -> Self {
        self.start = start;
        self
    }

    /// For the subscriber: the program says what it has consumed, with
    /// [`consumed`](lanecast_store::DurableSubscriber::consumed). By default a message is consumed
    /// when its handler returns.
    pub const fn consumed_by_call(mut self) -> Self {
        self.consumes_on_return = false;
        self
    }

    fn store_groups(&self) -> Result<StoreGroups, Error> {
        StoreGroups::new(self.groups.clone(), self.rule).map_err(refused)
    }

    /// Opens a publisher with the stable id `source`.
    ///
    /// # Errors
    /// [`Error::Persistence`] if a name cannot be used; others see [`Error`].
    pub fn publisher(self, source: u64) -> Result<PersistentPublisher, Error> {
        let mut options = PersistentOptions::new(self.store_groups()?);
        options.settings.pacing = self.pacing;
        let opened = PersistentPublisher::open(self.transports, self.topic, source, options);
        opened.map_err(not_opened)
    }

    /// Opens a subscriber with the stable id `receiver`.
    ///
    /// # Errors
    /// [`Error::Persistence`] if a name cannot be used; others see [`Error`].
    pub fn subscriber(self, receiver: u64) -> Result<DurableSubscriber, Error> {
        let mut options = DurableOptions::new(self.store_groups()?);
        options.settings.start = self.start;
        options.consumes_on_return = self.consumes_on_return;
        let transports = self.transports.clone();
        let opened = DurableSubscriber::open(transports, self.topic, receiver, options);
        opened.map_err(not_opened)
    }
}

/// Opens a store with its data in `directory`.
pub(crate) fn open_store(
    transports: &ExactTopics,
    name: &str,
    directory: &Path,
) -> Result<StoreServer, Error> {
    let opened = StoreServer::open(transports.clone(), name, directory, StoreOptions::default());
    opened.map_err(|error| match error {
        StoreError::Transport(error) => error,
        other => refused(other),
    })
}

fn not_opened(error: OpenError<Error>) -> Error {
    match error {
        OpenError::Transport(error) => error,
        other => refused(other),
    }
}

fn refused(error: impl std::fmt::Display) -> Error {
    Error::Persistence(error.to_string())
}
