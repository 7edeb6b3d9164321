//! The blocking client.

use crate::connection::Shared;
use crate::error::ClientError;
use crate::event::{Event, Record};
use crate::pending::Answer;
use crate::publication::{Deletion, Publication};
use crate::query::{Query, SubscribeOptions, SubscribeRequest};
use crate::session::Session;
use crate::settings::{Identity, Settings};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

/// A blocking client of a content server. Two threads of its own do the network's work.
///
/// End it by [`close`](Self::close), which says whether the server has everything. Dropping a
/// connected client sends pending bytes and waits until the server has read them, for at most
/// [`Settings::patience`], but tells of no failure; without a connection they are lost.
#[derive(Debug)]
pub struct Client {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    patience: Duration,
    unread_bytes_max: usize,
    unacknowledged_bytes_max: usize,
}

impl Client {
    /// Connects to a server, such as `127.0.0.1:9007`, and logs on. The client ends with its
    /// connection; see [`connect_with`](Self::connect_with).
    ///
    /// # Errors
    /// If the server cannot be reached or refuses the logon.
    pub fn connect(server: &str, identity: &Identity) -> Result<Self, ClientError> {
        Self::connect_with(Settings::once(server, identity.clone()))
    }

    /// Connects according to the settings, and logs on.
    ///
    /// # Errors
    /// If no server can be reached, or a server refuses the logon.
    pub fn connect_with(settings: Settings) -> Result<Self, ClientError> {
        let session = new_session(settings)?;
        let settings = session.settings();
        let Settings { patience, unread_bytes_max, unacknowledged_bytes_max, .. } = *settings;
        let shared = Arc::new(Shared::new(session));
        let runner = Arc::clone(&shared);
        let thread = thread::Builder::new().name("lanecast-read".into());
        let thread = Some(thread.spawn(move || runner.run())?);
        let client = Self { shared, thread, patience, unread_bytes_max, unacknowledged_bytes_max };
        // Each attempt is bounded, and so is their number.
        let connected = client.shared.wait(None, |session| {
            let failure = session.failure().cloned();
            failure.map(Err).or_else(|| session.is_connected().then_some(Ok(())))
        });
        connected.unwrap_or(Err(ClientError::Closed)).map(|()| client)
    }

    /// Publishes a message without waiting for its acknowledgement: a later call returns a refusal,
    /// [`flush`](Self::flush) at the latest. Waits while too many bytes are unacknowledged, up to
    /// the timeout of the settings.
    ///
    /// # Errors
    /// If there is no room, the connection has ended for good, or the server refused an earlier
    /// message. This message is then not published.
    pub fn publish(&mut self, topic: &str, body: &[u8]) -> Result<(), ClientError> {
        self.publish_with(&Publication::of(topic, body))
    }

    /// Publishes the changed fields of a stored record and its key fields, otherwise like
    /// [`publish`](Self::publish). The record keeps its other fields.
    ///
    /// # Errors
    /// As [`publish`](Self::publish).
    pub fn delta_publish(&mut self, topic: &str, body: &[u8]) -> Result<(), ClientError> {
        self.publish_with(&Publication { is_delta: true, ..Publication::of(topic, body) })
    }

    /// Publishes a message with all options, otherwise like [`publish`](Self::publish).
    ///
    /// # Errors
    /// As [`publish`](Self::publish).
    pub fn publish_with(&mut self, publication: &Publication<'_>) -> Result<(), ClientError> {
        let until = Some(Instant::now() + self.patience);
        let sent = self.shared.wait(until, |session| match session.publish(publication) {
            Err(ClientError::Full { .. }) => self.overrun(session),
            done => Some(done),
        });
        sent.unwrap_or(Err(ClientError::Full { bytes: self.unacknowledged_bytes_max }))
    }

    /// Publishes a message if there is room for it now.
    ///
    /// # Errors
    /// As [`publish`](Self::publish), without waiting.
    pub fn try_publish(&mut self, topic: &str, body: &[u8]) -> Result<(), ClientError> {
        self.shared.with(|session| session.publish(&Publication::of(topic, body)))
    }

    /// Waits until the server has acknowledged all published messages.
    ///
    /// # Errors
    /// If it refused one, does not answer in time, or the connection has ended for good.
    pub fn flush(&mut self) -> Result<(), ClientError> {
        self.await_answer("cannot flush", |session| match session.is_flushed() {
            Ok(false) => None,
            Ok(true) => Some(Ok(())),
            Err(error) => Some(Err(error)),
        })
    }

    /// Waits until the server has acknowledged all published messages, as [`flush`](Self::flush)
    /// does, and ends the client.
    ///
    /// # Errors
    /// As [`flush`](Self::flush). The client has ended then, too: dropping it sends what is
    /// pending.
    pub fn close(mut self) -> Result<(), ClientError> {
        self.flush()
    }

    /// Number of messages that the server acknowledged as duplicates: sent again after a lost
    /// connection, or published by another client under this client's name.
    pub fn duplicates(&self) -> u64 {
        self.shared.with(|session| session.duplicates())
    }

    /// Subscribes to the messages of a topic, or of all topics that match a pattern such as
    /// `^orders`, that match `filter`. Returns the subscription's name.
    ///
    /// # Errors
    /// If the server refuses, for instance an invalid filter.
    pub fn subscribe(&mut self, topic: &str, filter: Option<&str>) -> Result<String, ClientError> {
        let request = SubscribeRequest::messages(topic, filter);
        self.subscribe_to("cannot subscribe", request)
    }

    /// Subscribes to changes of the stored records of a topic, with options. The filter and the
    /// fields of `query` apply. Topics without stored records deliver their messages. Returns the
    /// subscription's name.
    ///
    /// # Errors
    /// If the query asks for an order or a limit, or the server refuses.
    pub fn subscribe_with(
        &mut self,
        topic: &str,
        query: &Query,
        options: &SubscribeOptions,
    ) -> Result<String, ClientError> {
        self.subscribe_to("cannot subscribe", SubscribeRequest::changes(topic, query, options)?)
    }

    /// Queries the stored records of a topic and subscribes to their changes, without a gap.
    /// Returns the subscription's name; all records arrive as [`Event::Record`], then
    /// [`Event::Current`]. Topics without stored records deliver only messages.
    ///
    /// # Errors
    /// If the server refuses.
    pub fn query_and_subscribe(
        &mut self,
        topic: &str,
        query: &Query,
        options: &SubscribeOptions,
    ) -> Result<String, ClientError> {
        let request = SubscribeRequest::records(topic, query, options);
        self.subscribe_to("cannot query and subscribe", request)
    }

    /// Queries the stored records of a topic.
    ///
    /// # Errors
    /// If the topic stores no records, or the server refuses for another reason.
    pub fn query(&mut self, topic: &str, query: &Query) -> Result<Vec<Record>, ClientError> {
        let command = self.shared.with(|session| session.query(topic, query));
        Ok(self.answer("cannot query", command)?.records)
    }

    /// Deletes the records that match a filter; returns their number.
    ///
    /// # Errors
    /// If the topic stores no records, or the server refuses for another reason.
    pub fn delete(&mut self, topic: &str, filter: &str) -> Result<u64, ClientError> {
        self.delete_with(topic, &Deletion::Filter(filter))
    }

    /// Deletes records; returns their number.
    ///
    /// # Errors
    /// As [`delete`](Self::delete).
    pub fn delete_with(
        &mut self,
        topic: &str,
        deletion: &Deletion<'_>,
    ) -> Result<u64, ClientError> {
        let command = self.shared.with(|session| session.delete(topic, deletion));
        Ok(self.answer("cannot delete", command)?.deleted)
    }

    /// Ends a subscription and drops its later events.
    pub fn unsubscribe(&mut self, name: &str) {
        self.shared.with(|session| session.unsubscribe(name));
    }

    /// The next event; `None` after `timeout`. Without a timeout, or with one whose end is beyond
    /// the clock, it waits for ever.
    ///
    /// # Errors
    /// If the connection has ended for good, or the server refused a message.
    pub fn next(&mut self, timeout: Option<Duration>) -> Result<Option<Event>, ClientError> {
        let until = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let next = self.shared.wait(until, |session| match session.next_event() {
            Some(event) => Some(Ok(event)),
            None => session.take_refusal().err().map(Err),
        });
        next.transpose()
    }

    fn subscribe_to(
        &mut self,
        what: &str,
        request: SubscribeRequest,
    ) -> Result<String, ClientError> {
        let (command, name) = self.shared.with(|session| session.subscribe(request));
        let answer = self.answer(what, command);
        if answer.is_err() {
            self.unsubscribe(&name);
        }
        answer.map(|_| name)
    }

    fn answer(&self, what: &str, command: u64) -> Result<Answer, ClientError> {
        let answer = self.await_answer(what, |session| session.take_answer(command));
        if answer.is_err() {
            self.shared.with(|session| session.abandon(command));
        }
        answer
    }

    /// An error while too many events are unread: the connection is not read then, so no answer
    /// can arrive.
    fn overrun<T>(&self, session: &Session) -> Option<Result<T, ClientError>> {
        session.is_full().then_some(Err(ClientError::Overrun(self.unread_bytes_max)))
    }

    /// Waits until `look` finds the answer.
    fn await_answer<T>(
        &self,
        what: &str,
        mut look: impl FnMut(&mut Session) -> Option<Result<T, ClientError>>,
    ) -> Result<T, ClientError> {
        let until = Some(Instant::now() + self.patience);
        let answer =
            self.shared.wait(until, |session| look(session).or_else(|| self.overrun(session)));
        let (what, seconds) = (what.to_owned(), self.patience.as_secs());
        answer.unwrap_or(Err(ClientError::NoAnswer { what, seconds }))
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let is_connected = self.shared.with(|session| session.is_connected());
        self.shared.close();
        if let Some(thread) = self.thread.take()
            && is_connected
        {
            // The thread ends after sending the pending bytes. A panic was already reported.
            drop(thread.join());
        }
    }
}

/// A new session. Sequence numbers start with the time, above those of earlier programs of the
/// same name, on any server.
pub(crate) fn new_session(settings: Settings) -> Result<Session, ClientError> {
    settings.check()?;
    let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let sequence = u64::try_from(unix.as_micros()).unwrap_or(0);
    let seed = RandomState::new().hash_one(sequence);
    Ok(Session::new(settings, Instant::now(), seed, sequence))
}
