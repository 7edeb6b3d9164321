//! The streams that a publisher keeps in flight, one for each of its topics.

use super::error::StoreBackedError;
use super::missing::Missing;
use super::notice::{StallReason, StoreNotice};
use super::settings::{SHORT_WAIT, Shared, rest};
use lanecast_store::{
    PersistentOptions, PersistentPublisher, PersistentSendError, SendRefusal, SourceEvent,
};
use lanecast_transport::{BackPressureReason, ClaimError, TopicId, Transport};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Messages after which the stores' answers are read.
const POLL_EVERY: u32 = 32;
/// Times that the end waits for messages in flight: 1, 2 and 3 seconds.
const DRAINS: u64 = 3;

/// Publishers of one program, and what it knows of their stores.
///
/// A program's calls drive them: the stores' answers are read after a message is on its way, and
/// while the program waits.
pub(super) struct OutgoingStreams<C: Transport> {
    carrier: C,
    shared: Arc<Shared>,
    pub(super) topics: Vec<(String, PersistentPublisher<C>)>,
    /// Bytes of the claimed message.
    pub(super) buffer: Vec<u8>,
    /// Messages since the stores' answers were read.
    unpolled: u32,
    /// Since when, and at which sequences, messages have been refused.
    refused: Option<(Instant, u64)>,
    refusals: u64,
    /// Stores that do not answer.
    silent: Vec<String>,
    /// Messages that were committed and not sent.
    unsent: u64,
    is_over: bool,
}

impl<C: Transport> OutgoingStreams<C> {
    pub(super) const fn new(carrier: C, shared: Arc<Shared>) -> Self {
        Self {
            carrier,
            shared,
            topics: Vec::new(),
            buffer: Vec::new(),
            unpolled: 0,
            refused: None,
            refusals: 0,
            silent: Vec::new(),
            unsent: 0,
            is_over: false,
        }
    }

    /// The stream of a topic, opened if it is new; waits until the stores have accepted it.
    pub(super) fn open(&mut self, name: &str) -> Result<TopicId, StoreBackedError> {
        let known = self.topics.iter().position(|(topic, _)| topic == name);
        let index = known.unwrap_or(self.topics.len());
        if known.is_none() {
            let publisher = open_topic(&self.carrier, name, &self.shared)?;
            self.topics.push((name.to_owned(), publisher));
        }
        Ok(TopicId(u32::try_from(index).unwrap_or(u32::MAX)))
    }

    /// Interval of requests to each store.
    pub(super) fn retry(&self) -> Duration {
        Duration::from_nanos(self.shared.settings.retry)
    }

    /// Makes room for a message of `len` bytes.
    pub(super) fn reserve(&mut self, topic: TopicId, len: usize) -> Result<(), ClaimError> {
        self.check_room(topic, len)?;
        if self.buffer.len() < len {
            self.buffer.resize(len, 0);
        }
        Ok(())
    }

    /// The same, waiting for room.
    pub(super) fn wait_for_room(&mut self, topic: TopicId, len: usize) -> Result<(), ClaimError> {
        while let Err(error) = self.reserve(topic, len) {
            let ClaimError::BackPressured(_) = error else { return Err(error) };
            if (self.shared.hooks.stop)() {
                return Err(ClaimError::Closed);
            }
            let work = self.poll();
            self.wait(topic, work, SHORT_WAIT);
        }
        Ok(())
    }

    /// Number of times that a message found no room, in flight or in the transport.
    pub(super) const fn refusals(&self) -> u64 {
        self.refusals
    }

    fn at(&self, topic: TopicId) -> Result<&PersistentPublisher<C>, ClaimError> {
        let found = self.topics.get(topic.0 as usize).map(|(_, publisher)| publisher);
        found.ok_or(ClaimError::NoSuchTopic)
    }

    pub(super) fn in_flight(&self) -> u64 {
        self.topics.iter().map(|(_, publisher)| publisher.in_flight()).sum()
    }

    /// Reads the stores' answers; returns the amount of work.
    pub(super) fn poll(&mut self) -> usize {
        self.unpolled = 0;
        self.shared.flight.note_most(self.in_flight());
        let Self { topics, shared, silent, is_over, .. } = self;
        let mut work = 0;
        for (_, publisher) in topics {
            work += publisher.poll(|event| match event {
                // Once for all topics.
                SourceEvent::StoreLost { store } if !silent.contains(&store) => {
                    silent.push(store.clone());
                    shared.flight.note_store_lost();
                    (shared.hooks.notify)(&StoreNotice::StoreLost { store });
                }
                SourceEvent::StoreBack { store } if silent.contains(&store) => {
                    silent.retain(|it| *it != store);
                    (shared.hooks.notify)(&StoreNotice::StoreBack { store });
                }
                SourceEvent::OtherVersion { store, version } => {
                    (shared.hooks.notify)(&StoreNotice::OtherVersion { store, version });
                }
                SourceEvent::Refused { store, refusal } => {
                    (shared.hooks.notify)(&StoreNotice::Refused { store, refusal });
                }
                SourceEvent::Superseded { .. } => {
                    *is_over = true;
                    (shared.hooks.notify)(&StoreNotice::Superseded);
                }
                _ => {}
            });
        }
        work
    }

    /// Publishes the claimed message. Its room in flight was sure at the claim; that of the
    /// transport is waited for. A message that cannot be sent counts as left in flight.
    pub(super) fn commit(&mut self, topic: TopicId, length: usize) {
        loop {
            let Some((_, publisher)) = self.topics.get_mut(topic.0 as usize) else { return };
            let Err(error) = publisher.try_send(&self.buffer[..length]) else { break };
            if !self.can_wait(topic, error) {
                self.unsent += 1;
                return;
            }
        }
        self.refused = None;
        self.unpolled += 1;
        if self.unpolled >= POLL_EVERY {
            self.poll();
        }
    }

    /// Waits after a refused message; false if the publisher gives up.
    #[cold]
    fn can_wait(&mut self, topic: TopicId, error: PersistentSendError) -> bool {
        let is_stopped = (self.shared.hooks.stop)();
        if !error.may_pass() {
            (self.shared.hooks.notify)(&StoreNotice::Unsent { why: error.to_string() });
            self.is_over = true;
        }
        self.is_over |= is_stopped;
        if self.is_over || self.on_refusal(StallReason::of(error)).is_err() {
            return false;
        }
        let work = self.poll();
        // Readers that make room in the transport wake up no publisher.
        let is_transport = matches!(error, PersistentSendError::Transport(_));
        let publisher = self.topics.get(topic.0 as usize).filter(|_| is_transport);
        let limit = publisher.map_or(SHORT_WAIT, |(_, publisher)| publisher.room_wait());
        self.wait(topic, work, limit);
        true
    }

    fn wait(&mut self, topic: TopicId, work: usize, limit: Duration) {
        if let Some((_, publisher)) = self.topics.get_mut(topic.0 as usize) {
            publisher.wait_at_most(work, limit);
        }
    }

    /// A message was refused: gives up if nothing has got further for long.
    #[cold]
    fn on_refusal(&mut self, reason: StallReason) -> Result<(), ClaimError> {
        self.refusals += 1;
        let done = |(_, it): &(String, PersistentPublisher<C>)| it.stable() + it.consumed();
        let progress = self.topics.iter().map(done).sum();
        match self.refused {
            Some((since, before)) if before == progress => {
                if since.elapsed() < self.shared.settings.patience {
                    return Ok(());
                }
                let (messages, silent) = (self.in_flight(), self.silent.clone());
                let stalled = StoreNotice::Stalled { messages, silent, reason };
                (self.shared.hooks.notify)(&stalled);
                self.is_over = true;
                Err(ClaimError::Closed)
            }
            _ => {
                self.refused = Some((Instant::now(), progress));
                Ok(())
            }
        }
    }

    /// Checks the room of a message in flight.
    fn check_room(&mut self, topic: TopicId, len: usize) -> Result<(), ClaimError> {
        if self.is_over {
            return Err(ClaimError::Closed);
        }
        let longest = self.at(topic)?.longest_message();
        if len > longest {
            return Err(ClaimError::TooLong { longest });
        }
        if self.at(topic)?.room(len).is_ok() {
            return Ok(());
        }
        self.poll();
        match self.at(topic)?.room(len) {
            Ok(()) => Ok(()),
            Err(SendRefusal::TooLong { longest }) => Err(ClaimError::TooLong { longest }),
            Err(SendRefusal::Superseded | SendRefusal::Exhausted) => Err(ClaimError::Closed),
            Err(refusal) => {
                self.on_refusal(StallReason::of(refusal.into()))?;
                Err(ClaimError::BackPressured(BackPressureReason::WindowFull))
            }
        }
    }

    /// Waits until nothing is in flight, as long as the document's tools do.
    pub(super) fn drain_flight(&mut self) {
        let start = Instant::now();
        for seconds in 1..=DRAINS {
            self.poll();
            let messages = self.in_flight();
            if messages == 0 || self.is_over {
                break;
            }
            (self.shared.hooks.notify)(&StoreNotice::Draining { messages });
            let until = Instant::now() + Duration::from_secs(seconds);
            while self.in_flight() > 0 && Instant::now() < until && !(self.shared.hooks.stop)() {
                rest(self.poll());
            }
        }
        self.shared.flight.note_drained(start.elapsed());
        let left = self.in_flight() + self.unsent;
        if left > 0 {
            (self.shared.hooks.notify)(&StoreNotice::GaveUp);
        }
        self.shared.flight.note_left(left);
    }
}

/// Opens the publisher of one topic, and waits until the stores have accepted it.
fn open_topic<C: Transport>(
    carrier: &C,
    topic: &str,
    shared: &Shared,
) -> Result<PersistentPublisher<C>, StoreBackedError> {
    let settings = &shared.settings;
    let mut options = PersistentOptions::new(settings.stores_of(topic).clone());
    options.settings.pacing = settings.pacing();
    options.settings.flight_messages = settings.flight_messages;
    options.settings.flight_bytes = settings.flight_bytes;
    options.settings.unconsumed_messages = settings.unconsumed_messages;
    options.settings.retry = settings.retry;
    let opened = PersistentPublisher::open(carrier, topic, settings.id, options);
    let mut publisher = opened.map_err(StoreBackedError::of)?;
    let mut missing = Missing { silent: shared.use_stores(topic), ..Missing::default() };
    shared.wait_for_stores((topic.to_owned(), "publisher"), || {
        let work = publisher.poll(|event| missing.take(event));
        let is_waiting = !publisher.is_registered();
        (work, is_waiting.then(|| missing.clone()))
    })?;
    Ok(publisher)
}
