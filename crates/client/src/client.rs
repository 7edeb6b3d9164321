//! The blocking client.

use crate::call::Answer;
use crate::connection::Shared;
use crate::conversation::Conversation;
use crate::error::ClientError;
use crate::event::{Event, Record};
use crate::publication::{Deletion, Publication};
use crate::question::{Interest, Question, Wishes};
use crate::settings::{Identity, Settings};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

/// A client of a content server. What it does with the network happens on threads of its own.
///
/// Dropped, it sends what is left to be sent; whether the server takes that nobody is told, so
/// [`flush`](Self::flush) before.
#[derive(Debug)]
pub struct Client {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    patience: Duration,
    unread_bytes_max: usize,
    unacknowledged_bytes_max: usize,
}

impl Client {
    /// Connects to a server, such as `127.0.0.1:9007`, and says who the client is. When the
    /// connection ends, so does the client; see [`connect_with`](Self::connect_with).
    ///
    /// # Errors
    /// If it cannot be reached, or does not want this client.
    pub fn connect(server: &str, identity: &Identity) -> Result<Self, ClientError> {
        Self::connect_with(Settings::once(server, identity.clone()))
    }

    /// Connects as the settings say, and says who the client is.
    ///
    /// # Errors
    /// If no server can be reached, or one does not want this client.
    pub fn connect_with(settings: Settings) -> Result<Self, ClientError> {
        let conversation = begin(settings)?;
        let settings = conversation.settings();
        let Settings { patience, unread_bytes_max, unacknowledged_bytes_max, .. } = *settings;
        let shared = Arc::new(Shared::new(conversation));
        let runner = Arc::clone(&shared);
        let thread = thread::Builder::new().name("lanecast-read".into());
        let thread = Some(thread.spawn(move || runner.run())?);
        let client = Self { shared, thread, patience, unread_bytes_max, unacknowledged_bytes_max };
        // Each attempt is bounded, and so is their number.
        let connected = client.shared.wait(None, |conversation| {
            let failure = conversation.failure().cloned();
            failure.map(Err).or_else(|| conversation.is_connected().then_some(Ok(())))
        });
        connected.unwrap_or(Err(ClientError::Closed)).map(|()| client)
    }

    /// Publishes a message. It is on its way when this returns; whether the server took it shows
    /// at a later call, of [`flush`](Self::flush) at the latest. While too much waits to be
    /// acknowledged, this waits as well, for as long as the settings' patience lasts.
    ///
    /// # Errors
    /// If there is no room for it, the connection has ended for good, or the server refused an
    /// earlier message. This one was not taken then.
    pub fn publish(&mut self, topic: &str, body: &[u8]) -> Result<(), ClientError> {
        self.publish_with(&Publication::of(topic, body))
    }

    /// Publishes the fields of a kept record that change, along with those of its key: the record
    /// keeps all others. Apart from that it is as [`publish`](Self::publish).
    ///
    /// # Errors
    /// As there.
    pub fn delta_publish(&mut self, topic: &str, body: &[u8]) -> Result<(), ClientError> {
        self.publish_with(&Publication { is_delta: true, ..Publication::of(topic, body) })
    }

    /// Publishes a message with all that can be said of it. Apart from that it is as
    /// [`publish`](Self::publish).
    ///
    /// # Errors
    /// As there.
    pub fn publish_with(&mut self, publication: &Publication<'_>) -> Result<(), ClientError> {
        let until = Some(Instant::now() + self.patience);
        let sent =
            self.shared.wait(until, |conversation| match conversation.publish(publication) {
                Err(ClientError::Full { .. }) => self.overrun(conversation),
                done => Some(done),
            });
        sent.unwrap_or(Err(ClientError::Full { bytes: self.unacknowledged_bytes_max }))
    }

    /// Publishes a message if there is room for it now.
    ///
    /// # Errors
    /// As [`publish`](Self::publish), without waiting.
    pub fn try_publish(&mut self, topic: &str, body: &[u8]) -> Result<(), ClientError> {
        self.shared.with(|conversation| conversation.publish(&Publication::of(topic, body)))
    }

    /// Waits until the server has answered all messages that were published.
    ///
    /// # Errors
    /// If it refused one, does not answer in time, or is gone.
    pub fn flush(&mut self) -> Result<(), ClientError> {
        self.await_answer("cannot flush", |conversation| match conversation.is_flushed() {
            Ok(false) => None,
            Ok(true) => Some(Ok(())),
            Err(error) => Some(Err(error)),
        })
    }

    /// How many of the messages that were acknowledged the server had not published, as their
    /// numbers were had before: they were sent again after a connection broke, or another client
    /// has used this one's name.
    pub fn duplicates(&self) -> u64 {
        self.shared.with(|conversation| conversation.duplicates())
    }

    /// Subscribes to a topic, or to all topics that hold a pattern such as `^orders`: to those of
    /// its messages that `filter` lets through, if there is one. Gives the subscription's name.
    ///
    /// # Errors
    /// If the server refuses: the filter may not be one, say.
    pub fn subscribe(&mut self, topic: &str, filter: Option<&str>) -> Result<String, ClientError> {
        let interest = Interest::messages(topic, filter);
        self.place("cannot subscribe", interest)
    }

    /// Subscribes to what changes about the records that are kept of a topic, as `wishes` say: of
    /// the question, the filter and the fields count. Where nothing is kept, messages come as they
    /// are. Gives the subscription's name.
    ///
    /// # Errors
    /// If the question is about more, or the server refuses.
    pub fn subscribe_with(
        &mut self,
        topic: &str,
        question: &Question,
        wishes: &Wishes,
    ) -> Result<String, ClientError> {
        self.place("cannot subscribe", Interest::changes(topic, question, wishes)?)
    }

    /// Asks for the records that are kept of a topic, and subscribes to what changes about them
    /// from then on, without a gap. Gives the subscription's name; all records come as
    /// [`Event::Record`], then [`Event::Current`]. Where nothing is kept there are no
    /// records, and messages come as they are.
    ///
    /// # Errors
    /// If the server refuses.
    pub fn query_and_subscribe(
        &mut self,
        topic: &str,
        question: &Question,
        wishes: &Wishes,
    ) -> Result<String, ClientError> {
        let interest = Interest::records(topic, question, wishes);
        self.place("cannot query and subscribe", interest)
    }

    /// Asks for the records that are kept of a topic.
    ///
    /// # Errors
    /// If nothing is kept of it, or the server refuses for another reason.
    pub fn query(&mut self, topic: &str, question: &Question) -> Result<Vec<Record>, ClientError> {
        let command = self.shared.with(|conversation| conversation.query(topic, question));
        Ok(self.answer("cannot query", command)?.records)
    }

    /// Removes the records that meet a filter; how many those were.
    ///
    /// # Errors
    /// If nothing is kept of the topic, or the server refuses for another reason.
    pub fn delete(&mut self, topic: &str, filter: &str) -> Result<u64, ClientError> {
        self.delete_with(topic, &Deletion::Filter(filter))
    }

    /// Removes records; how many those were.
    ///
    /// # Errors
    /// As [`delete`](Self::delete).
    pub fn delete_with(
        &mut self,
        topic: &str,
        deletion: &Deletion<'_>,
    ) -> Result<u64, ClientError> {
        let command = self.shared.with(|conversation| conversation.delete(topic, deletion));
        Ok(self.answer("cannot delete", command)?.deleted)
    }

    /// Ends a subscription. What comes of it from now on is dropped.
    pub fn unsubscribe(&mut self, name: &str) {
        self.shared.with(|conversation| conversation.unsubscribe(name));
    }

    /// What has happened next; none if nothing has within `timeout`. Without one it waits for ever.
    ///
    /// # Errors
    /// If the connection has ended for good, or the server refused a message.
    pub fn next(&mut self, timeout: Option<Duration>) -> Result<Option<Event>, ClientError> {
        let until = timeout.map(|timeout| Instant::now() + timeout);
        let next = self.shared.wait(until, |conversation| match conversation.next_event() {
            Some(event) => Some(Ok(event)),
            None => conversation.complain().err().map(Err),
        });
        next.transpose()
    }

    fn place(&mut self, what: &str, interest: Interest) -> Result<String, ClientError> {
        let (command, name) = self.shared.with(|conversation| conversation.subscribe(interest));
        let answer = self.answer(what, command);
        if answer.is_err() {
            self.unsubscribe(&name);
        }
        answer.map(|_| name)
    }

    fn answer(&self, what: &str, command: u64) -> Result<Answer, ClientError> {
        let answer = self.await_answer(what, |conversation| conversation.take_answer(command));
        if answer.is_err() {
            self.shared.with(|conversation| conversation.forget(command));
        }
        answer
    }

    /// The server cannot be heard while too much that came before waits to be read.
    fn overrun<T>(&self, conversation: &Conversation) -> Option<Result<T, ClientError>> {
        conversation.is_full().then_some(Err(ClientError::Overrun(self.unread_bytes_max)))
    }

    /// Waits for what the server has to say.
    fn await_answer<T>(
        &self,
        what: &str,
        mut look: impl FnMut(&mut Conversation) -> Option<Result<T, ClientError>>,
    ) -> Result<T, ClientError> {
        let until = Some(Instant::now() + self.patience);
        let answer = self
            .shared
            .wait(until, |conversation| look(conversation).or_else(|| self.overrun(conversation)));
        let (what, seconds) = (what.to_owned(), self.patience.as_secs());
        answer.unwrap_or(Err(ClientError::NoAnswer { what, seconds }))
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let is_connected = self.shared.with(|conversation| conversation.is_connected());
        self.shared.close();
        if let Some(thread) = self.thread.take()
            && is_connected
        {
            // It ends when the rest is sent. One that panicked has said so.
            drop(thread.join());
        }
    }
}

/// A conversation that begins now. Numbers of messages begin with the time, so that they are above
/// those of earlier programs of the same name, whichever server knows about them.
pub(crate) fn begin(settings: Settings) -> Result<Conversation, ClientError> {
    settings.check()?;
    let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let sequence = u64::try_from(unix.as_micros()).unwrap_or(0);
    let seed = RandomState::new().hash_one(sequence);
    Ok(Conversation::new(settings, Instant::now(), seed, sequence))
}
