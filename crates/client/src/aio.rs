//! The asynchronous client, for programs that run on tokio (feature `tokio`).
//!
//! ```no_run
//! use lanecast_client::{Event, Identity, Settings, aio::Client};
//! # async fn desk() -> Result<(), lanecast_client::ClientError> {
//! let identity = Identity { name: "desk".to_owned(), ..Identity::default() };
//! let client = Client::connect_with(Settings::new(["127.0.0.1:9007"], identity)).await?;
//! let mut orders = client.subscribe("orders", Some("/qty >= 5000")).await?;
//! client.publish("orders", br#"{"symbol":"IBM","qty":7000}"#).await?;
//! client.flush().await?;
//! while let Event::Message(message) = orders.next().await? {
//!     println!("{}: {}", message.topic, String::from_utf8_lossy(&message.body));
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Clones of a [`Client`] share one connection, and each [`Subscription`] may be read by a task of
//! its own. Each subscription has its own bounded queue ([`Settings::unread_bytes_max`]). A
//! subscription that is read too slowly delivers its queue, then [`ClientError::Overrun`], and
//! ends; the others are not delayed.
//!
//! Dropping the future of a call cancels it: its command is executed once or not at all, and no
//! event is lost.

mod tasks;

use self::tasks::Shared;
use crate::client::new_session;
use crate::error::ClientError;
use crate::event::{Event, Record};
use crate::pending::Answer;
use crate::publication::{Deletion, Publication};
use crate::query::{Query, SubscribeOptions, SubscribeRequest};
use crate::settings::{Identity, Settings};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task;
use tokio::time::timeout;

/// An asynchronous client of a content server. A task drives its connection.
///
/// End it by [`close`](Self::close), which says whether the server has everything. Dropping the
/// last clone and the last subscription of a connected client leaves it to the client's task to
/// send pending bytes, within [`Settings::patience`]: as long as its runtime runs, and without
/// telling of a failure.
#[derive(Clone, Debug)]
pub struct Client {
    handle: Arc<Handle>,
    patience: Duration,
    unacknowledged_bytes_max: usize,
}

/// Keeps the client alive; dropping the last one closes it.
#[derive(Debug)]
struct Handle {
    shared: Arc<Shared>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.close();
    }
}

/// A pending request, abandoned when its future is dropped.
struct PendingAnswer<'a> {
    shared: &'a Shared,
    command: u64,
}

impl Drop for PendingAnswer<'_> {
    fn drop(&mut self) {
        self.shared.with(|state| state.session.abandon(self.command));
    }
}

impl Client {
    /// Connects to a server, such as `127.0.0.1:9007`, and logs on. The client ends with its
    /// connection; see [`connect_with`](Self::connect_with).
    ///
    /// # Errors
    /// If the server cannot be reached or refuses the logon.
    pub async fn connect(server: &str, identity: &Identity) -> Result<Self, ClientError> {
        Self::connect_with(Settings::once(server, identity.clone())).await
    }

    /// Connects according to the settings, and logs on.
    ///
    /// # Errors
    /// If no server can be reached, or a server refuses the logon.
    ///
    /// # Panics
    /// Outside of a tokio runtime with network and time enabled.
    pub async fn connect_with(settings: Settings) -> Result<Self, ClientError> {
        let session = new_session(settings)?;
        let Settings { patience, unacknowledged_bytes_max, .. } = *session.settings();
        let shared = Arc::new(Shared::new(session));
        task::spawn(tasks::run(Arc::clone(&shared)));
        let handle = Arc::new(Handle { shared });
        let client = Self { handle, patience, unacknowledged_bytes_max };
        let connected = client.handle.shared.wait(|state| {
            let failure = state.session.failure().cloned();
            failure.map(Err).or_else(|| state.session.is_connected().then_some(Ok(())))
        });
        connected.await.map(|()| client)
    }

    /// Publishes a message without waiting for its acknowledgement: a later call returns a refusal,
    /// [`flush`](Self::flush) at the latest. Waits while too many bytes are unacknowledged, up to
    /// the timeout of the settings.
    ///
    /// # Errors
    /// If there is no room, the connection has ended for good, or the server refused an earlier
    /// message. This message is then not published.
    pub async fn publish(&self, topic: &str, body: &[u8]) -> Result<(), ClientError> {
        self.publish_with(&Publication::of(topic, body)).await
    }

    /// Publishes the changed fields of a stored record and its key fields, otherwise like
    /// [`publish`](Self::publish). The record keeps its other fields.
    ///
    /// # Errors
    /// As [`publish`](Self::publish).
    pub async fn delta_publish(&self, topic: &str, body: &[u8]) -> Result<(), ClientError> {
        self.publish_with(&Publication { is_delta: true, ..Publication::of(topic, body) }).await
    }

    /// Publishes a message with all options, otherwise like [`publish`](Self::publish).
    ///
    /// # Errors
    /// As [`publish`](Self::publish).
    pub async fn publish_with(&self, publication: &Publication<'_>) -> Result<(), ClientError> {
        // Yield to other tasks even if this one publishes without a pause.
        task::consume_budget().await;
        let sent = self.handle.shared.wait(|state| match state.session.publish(publication) {
            Err(ClientError::Full { .. }) => None,
            done => Some(done),
        });
        let bytes = self.unacknowledged_bytes_max;
        timeout(self.patience, sent).await.unwrap_or(Err(ClientError::Full { bytes }))
    }

    /// Publishes a message if there is room for it now.
    ///
    /// # Errors
    /// As [`publish`](Self::publish), without waiting.
    pub fn try_publish(&self, topic: &str, body: &[u8]) -> Result<(), ClientError> {
        let publication = Publication::of(topic, body);
        self.handle.shared.with(|state| state.session.publish(&publication))
    }

    /// Waits until the server has acknowledged all published messages.
    ///
    /// # Errors
    /// If it refused one, does not answer in time, or the connection has ended for good.
    pub async fn flush(&self) -> Result<(), ClientError> {
        let flushed = self.handle.shared.wait(|state| match state.session.is_flushed() {
            Ok(false) => None,
            Ok(true) => Some(Ok(())),
            Err(error) => Some(Err(error)),
        });
        timeout(self.patience, flushed)
            .await
            .unwrap_or_else(|_| Err(self.no_answer("cannot flush")))
    }

    /// Waits until the server has acknowledged all published messages, as [`flush`](Self::flush)
    /// does, and ends the client, with all its clones and subscriptions.
    ///
    /// # Errors
    /// As [`flush`](Self::flush). The client has ended then, too.
    pub async fn close(self) -> Result<(), ClientError> {
        let flushed = self.flush().await;
        let shared = &self.handle.shared;
        shared.close();
        let ended = shared.wait(|state| state.has_ended.then_some(()));
        // A server that does not end the connection, too, has acknowledged everything all the same.
        drop(timeout(self.patience, ended).await);
        flushed
    }

    /// Number of messages that the server acknowledged as duplicates: sent again after a lost
    /// connection, or published by another client under this client's name.
    pub fn duplicates(&self) -> u64 {
        self.handle.shared.with(|state| state.session.duplicates())
    }

    /// Subscribes to a topic, or to all topics that hold a pattern such as `^orders`: to those of
    /// its messages that `filter` lets through, if there is one.
    ///
    /// # Errors
    /// If the server refuses: the filter may not be one, say.
    pub async fn subscribe(
        &self,
        topic: &str,
        filter: Option<&str>,
    ) -> Result<Subscription, ClientError> {
        self.subscribe_to("cannot subscribe", SubscribeRequest::messages(topic, filter)).await
    }

    /// Subscribes to what changes about the records that are kept of a topic, as `options` say: of
    /// the question, the filter and the fields count. Where nothing is kept, messages come as they
    /// are.
    ///
    /// # Errors
    /// If the question is about more, or the server refuses.
    pub async fn subscribe_with(
        &self,
        topic: &str,
        query: &Query,
        options: &SubscribeOptions,
    ) -> Result<Subscription, ClientError> {
        self.subscribe_to("cannot subscribe", SubscribeRequest::changes(topic, query, options)?)
            .await
    }

    /// Queries the stored records of a topic and subscribes to their changes, without a gap. All
    /// records arrive as [`Event::Record`], then [`Event::Current`]. Topics without stored records
    /// deliver only messages.
    ///
    /// # Errors
    /// If the server refuses.
    pub async fn query_and_subscribe(
        &self,
        topic: &str,
        query: &Query,
        options: &SubscribeOptions,
    ) -> Result<Subscription, ClientError> {
        let request = SubscribeRequest::records(topic, query, options);
        self.subscribe_to("cannot query and subscribe", request).await
    }

    /// Queries the stored records of a topic.
    ///
    /// # Errors
    /// If the topic stores no records, or the server refuses for another reason.
    pub async fn query(&self, topic: &str, query: &Query) -> Result<Vec<Record>, ClientError> {
        let command = self.handle.shared.with(|state| state.session.query(topic, query));
        Ok(self.answer("cannot query", command).await?.records)
    }

    /// Deletes the records that match a filter; returns their number.
    ///
    /// # Errors
    /// If the topic stores no records, or the server refuses for another reason.
    pub async fn delete(&self, topic: &str, filter: &str) -> Result<u64, ClientError> {
        self.delete_with(topic, &Deletion::Filter(filter)).await
    }

    /// Deletes records; returns their number.
    ///
    /// # Errors
    /// As [`delete`](Self::delete).
    pub async fn delete_with(
        &self,
        topic: &str,
        deletion: &Deletion<'_>,
    ) -> Result<u64, ClientError> {
        let command = self.handle.shared.with(|state| state.session.delete(topic, deletion));
        Ok(self.answer("cannot delete", command).await?.deleted)
    }

    async fn subscribe_to(
        &self,
        what: &str,
        request: SubscribeRequest,
    ) -> Result<Subscription, ClientError> {
        let (command, name, ready) = self.handle.shared.with(|state| state.subscribe(request));
        // If this future is dropped, dropping the subscription ends it on the server too.
        let subscription = Subscription { handle: Arc::clone(&self.handle), name, ready };
        self.answer(what, command).await.map(|_| subscription)
    }

    async fn answer(&self, what: &str, command: u64) -> Result<Answer, ClientError> {
        let shared = &self.handle.shared;
        let _asked = PendingAnswer { shared, command };
        let answer = shared.wait(|state| state.session.take_answer(command));
        timeout(self.patience, answer).await.unwrap_or_else(|_| Err(self.no_answer(what)))
    }

    fn no_answer(&self, what: &str) -> ClientError {
        ClientError::NoAnswer { what: what.to_owned(), seconds: self.patience.as_secs() }
    }
}

/// A subscription and its queue of events. Dropping it ends it.
#[derive(Debug)]
pub struct Subscription {
    handle: Arc<Handle>,
    name: String,
    ready: Arc<Notify>,
}

impl Subscription {
    /// The name, as in events.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Waits for the next event.
    ///
    /// # Errors
    /// If the subscription has ended: it was read too slowly, the server ended it, or the
    /// connection has ended for good. Earlier events are delivered first.
    pub async fn next(&mut self) -> Result<Event, ClientError> {
        loop {
            if let Some(next) = self.handle.shared.with(|state| state.next(&self.name)) {
                return next;
            }
            self.ready.notified().await;
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.handle.shared.with(|state| state.unsubscribe(&self.name));
    }
}
