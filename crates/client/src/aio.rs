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
//! Clones of a [`Client`] are the same client, and each [`Subscription`] may be read by a task of
//! its own. What comes for a subscription waits in a queue of its own, which has a limit
//! ([`Settings::unread_bytes_max`]): one that is read too slowly gets what waits, then
//! [`ClientError::Overrun`], and ends. Nobody else waits for it.
//!
//! Every call may be cancelled, by dropping its future: what it was to do happens once or not at
//! all, and no event is lost.

mod drive;

use self::drive::Shared;
use crate::call::Answer;
use crate::client::begin;
use crate::error::ClientError;
use crate::event::{Event, Record};
use crate::publication::{Deletion, Publication};
use crate::question::{Interest, Question, Wishes};
use crate::settings::{Identity, Settings};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task;
use tokio::time::timeout;

/// A client of a content server. Its connection is looked after by a task.
///
/// When the last clone and the last subscription are dropped, it sends what is left to be sent;
/// whether the server takes that nobody is told, so [`flush`](Self::flush) before.
#[derive(Clone, Debug)]
pub struct Client {
    handle: Arc<Handle>,
    patience: Duration,
    unacknowledged_bytes_max: usize,
}

/// As long as it is there, so is the client.
#[derive(Debug)]
struct Handle {
    shared: Arc<Shared>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.close();
    }
}

/// A command whose answer somebody waits for, or does not any more.
struct Asked<'a> {
    shared: &'a Shared,
    command: u64,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        self.shared.with(|desk| desk.conversation.forget(self.command));
    }
}

impl Client {
    /// Connects to a server, such as `127.0.0.1:9007`, and says who the client is. When the
    /// connection ends, so does the client; see [`connect_with`](Self::connect_with).
    ///
    /// # Errors
    /// If it cannot be reached, or does not want this client.
    pub async fn connect(server: &str, identity: &Identity) -> Result<Self, ClientError> {
        Self::connect_with(Settings::once(server, identity.clone())).await
    }

    /// Connects as the settings say, and says who the client is.
    ///
    /// # Errors
    /// If no server can be reached, or one does not want this client.
    ///
    /// # Panics
    /// Outside of a tokio runtime with network and time enabled.
    pub async fn connect_with(settings: Settings) -> Result<Self, ClientError> {
        let conversation = begin(settings)?;
        let Settings { patience, unacknowledged_bytes_max, .. } = *conversation.settings();
        let shared = Arc::new(Shared::new(conversation));
        task::spawn(drive::run(Arc::clone(&shared)));
        let handle = Arc::new(Handle { shared });
        let client = Self { handle, patience, unacknowledged_bytes_max };
        let connected = client.handle.shared.wait(|desk| {
            let failure = desk.conversation.failure().cloned();
            failure.map(Err).or_else(|| desk.conversation.is_connected().then_some(Ok(())))
        });
        connected.await.map(|()| client)
    }

    /// Publishes a message. It is on its way when this returns; whether the server took it shows
    /// at a later call, of [`flush`](Self::flush) at the latest. While too much waits to be
    /// acknowledged, this waits as well, for as long as the settings' patience lasts.
    ///
    /// # Errors
    /// If there is no room for it, the connection has ended for good, or the server refused an
    /// earlier message. This one was not taken then.
    pub async fn publish(&self, topic: &str, body: &[u8]) -> Result<(), ClientError> {
        self.publish_with(&Publication::of(topic, body)).await
    }

    /// Publishes the fields of a kept record that change, along with those of its key: the record
    /// keeps all others. Apart from that it is as [`publish`](Self::publish).
    ///
    /// # Errors
    /// As there.
    pub async fn delta_publish(&self, topic: &str, body: &[u8]) -> Result<(), ClientError> {
        self.publish_with(&Publication { is_delta: true, ..Publication::of(topic, body) }).await
    }

    /// Publishes a message with all that can be said of it. Apart from that it is as
    /// [`publish`](Self::publish).
    ///
    /// # Errors
    /// As there.
    pub async fn publish_with(&self, publication: &Publication<'_>) -> Result<(), ClientError> {
        // So that others get their turn, however fast this one publishes.
        task::consume_budget().await;
        let sent = self.handle.shared.wait(|desk| match desk.conversation.publish(publication) {
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
        self.handle.shared.with(|desk| desk.conversation.publish(&publication))
    }

    /// Waits until the server has answered all messages that were published.
    ///
    /// # Errors
    /// If it refused one, does not answer in time, or is gone.
    pub async fn flush(&self) -> Result<(), ClientError> {
        let flushed = self.handle.shared.wait(|desk| match desk.conversation.is_flushed() {
            Ok(false) => None,
            Ok(true) => Some(Ok(())),
            Err(error) => Some(Err(error)),
        });
        timeout(self.patience, flushed)
            .await
            .unwrap_or_else(|_| Err(self.no_answer("cannot flush")))
    }

    /// How many of the messages that were acknowledged the server had not published, as their
    /// numbers were had before: they were sent again after a connection broke, or another client
    /// has used this one's name.
    pub fn duplicates(&self) -> u64 {
        self.handle.shared.with(|desk| desk.conversation.duplicates())
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
        self.place("cannot subscribe", Interest::messages(topic, filter)).await
    }

    /// Subscribes to what changes about the records that are kept of a topic, as `wishes` say: of
    /// the question, the filter and the fields count. Where nothing is kept, messages come as they
    /// are.
    ///
    /// # Errors
    /// If the question is about more, or the server refuses.
    pub async fn subscribe_with(
        &self,
        topic: &str,
        question: &Question,
        wishes: &Wishes,
    ) -> Result<Subscription, ClientError> {
        self.place("cannot subscribe", Interest::changes(topic, question, wishes)?).await
    }

    /// Asks for the records that are kept of a topic, and subscribes to what changes about them
    /// from then on, without a gap. All records come as [`Event::Record`], then
    /// [`Event::Current`]. Where nothing is kept there are no
    /// records, and messages come as they are.
    ///
    /// # Errors
    /// If the server refuses.
    pub async fn query_and_subscribe(
        &self,
        topic: &str,
        question: &Question,
        wishes: &Wishes,
    ) -> Result<Subscription, ClientError> {
        let interest = Interest::records(topic, question, wishes);
        self.place("cannot query and subscribe", interest).await
    }

    /// Asks for the records that are kept of a topic.
    ///
    /// # Errors
    /// If nothing is kept of it, or the server refuses for another reason.
    pub async fn query(
        &self,
        topic: &str,
        question: &Question,
    ) -> Result<Vec<Record>, ClientError> {
        let command = self.handle.shared.with(|desk| desk.conversation.query(topic, question));
        Ok(self.answer("cannot query", command).await?.records)
    }

    /// Removes the records that meet a filter; how many those were.
    ///
    /// # Errors
    /// If nothing is kept of the topic, or the server refuses for another reason.
    pub async fn delete(&self, topic: &str, filter: &str) -> Result<u64, ClientError> {
        self.delete_with(topic, &Deletion::Filter(filter)).await
    }

    /// Removes records; how many those were.
    ///
    /// # Errors
    /// As [`delete`](Self::delete).
    pub async fn delete_with(
        &self,
        topic: &str,
        deletion: &Deletion<'_>,
    ) -> Result<u64, ClientError> {
        let command = self.handle.shared.with(|desk| desk.conversation.delete(topic, deletion));
        Ok(self.answer("cannot delete", command).await?.deleted)
    }

    async fn place(&self, what: &str, interest: Interest) -> Result<Subscription, ClientError> {
        let (command, name, ready) = self.handle.shared.with(|desk| desk.subscribe(interest));
        // Dropped, if this is given up, it ends what the server may have begun.
        let subscription = Subscription { handle: Arc::clone(&self.handle), name, ready };
        self.answer(what, command).await.map(|_| subscription)
    }

    async fn answer(&self, what: &str, command: u64) -> Result<Answer, ClientError> {
        let shared = &self.handle.shared;
        let _asked = Asked { shared, command };
        let answer = shared.wait(|desk| desk.conversation.take_answer(command));
        timeout(self.patience, answer).await.unwrap_or_else(|_| Err(self.no_answer(what)))
    }

    fn no_answer(&self, what: &str) -> ClientError {
        ClientError::NoAnswer { what: what.to_owned(), seconds: self.patience.as_secs() }
    }
}

/// What comes of one subscription. It ends when this is dropped.
#[derive(Debug)]
pub struct Subscription {
    handle: Arc<Handle>,
    name: String,
    ready: Arc<Notify>,
}

impl Subscription {
    /// Its name, as events have it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Waits for what happens next.
    ///
    /// # Errors
    /// If it has ended: it was read too slowly, the server does not want it any more, or the
    /// connection has ended for good. What came before that is given first.
    pub async fn next(&mut self) -> Result<Event, ClientError> {
        loop {
            if let Some(next) = self.handle.shared.with(|desk| desk.next(&self.name)) {
                return next;
            }
            self.ready.notified().await;
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.handle.shared.with(|desk| desk.unsubscribe(&self.name));
    }
}
