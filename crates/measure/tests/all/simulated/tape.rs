//! A transport in simulated time: what a publisher sends goes on a tape, with the time; a
//! subscriber then reads the tape, as if it had been there all along. Both run in one thread, and
//! each run is the same to the nanosecond.

use crate::no_run::NoRun;
use lanecast_base::clock::Clock;
use lanecast_transport::{
    Batch, Claim, ClaimError, CloseReason, Completion, Event, Lease, Message, Publish,
    PublisherEvent, SessionId, Stream, Subscribe, TopicId, TopicSelection, Transport,
};
use std::cell::Cell;
use std::convert::Infallible;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// Transit time of a message.
pub(crate) const TRANSIT_NS: u64 = 100;
/// Duration of a clock reading.
pub(crate) const READING_NS: u64 = 10;
/// The longest message.
const LONGEST: usize = 64;

thread_local! {
    static NOW: Cell<u64> = const { Cell::new(1_000_000) };
}

/// The clock of both sides.
pub(crate) fn clock() -> Clock {
    fn read() -> u64 {
        let now = NOW.get() + READING_NS;
        NOW.set(now);
        now
    }
    Clock::simulated(read)
}

/// A pause at the message with a number: of a publisher just after sending it, of a subscriber just
/// before reading it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stall {
    pub(crate) number: usize,
    pub(crate) ns: u64,
}

impl Stall {
    fn befalls(stall: Option<Self>, number: usize) {
        if let Some(stall) = stall.filter(|stall| stall.number == number) {
            NOW.set(NOW.get() + stall.ns);
        }
    }
}

/// The transport. Numbers count from 0, through the warm-up and the measured part.
#[derive(Clone, Debug)]
pub(crate) struct Tape {
    written: Arc<Mutex<Vec<Written>>>,
    sender: Option<Stall>,
    receiver: Option<Stall>,
}

/// A message and its times.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Written {
    bytes: [u8; LONGEST],
    len: usize,
    sent: u64,
    /// When it was read, by the subscriber's clock.
    pub(crate) read: u64,
}

impl Written {
    /// The intended and the actual time, as the message carries them.
    pub(crate) fn stamps(&self) -> (u64, u64) {
        let at = |start: usize| {
            u64::from_le_bytes(self.bytes[start..start + 8].try_into().expect("eight bytes"))
        };
        (at(8), at(16))
    }
}

impl Tape {
    /// Room for so many messages, with stalls of either side.
    pub(crate) fn new(messages: usize, sender: Option<Stall>, receiver: Option<Stall>) -> Self {
        let written = Arc::new(Mutex::new(Vec::with_capacity(messages)));
        Self { written, sender, receiver }
    }

    pub(crate) fn written(&self) -> MutexGuard<'_, Vec<Written>> {
        self.written.lock().unwrap()
    }

    fn write(&self, bytes: &[u8]) {
        let mut written = self.written();
        let mut message =
            Written { bytes: [0; LONGEST], len: bytes.len(), sent: NOW.get(), read: 0 };
        message.bytes[..bytes.len()].copy_from_slice(bytes);
        written.push(message);
        Stall::befalls(self.sender, written.len() - 1);
    }
}

impl Transport for Tape {
    type Publisher = Recording;
    type Subscriber = Playing;
    type Error = Infallible;

    fn name(&self) -> &'static str {
        "tape"
    }

    fn keeps_order_across_topics(&self) -> bool {
        true
    }

    fn publisher(&self, _topic: &str) -> Result<Recording, Infallible> {
        Ok(Recording(self.clone()))
    }

    fn subscriber(&self, topics: &[&str]) -> Result<Playing, Infallible> {
        let stream = Stream {
            session: SessionId(1),
            topic: topics.concat(),
            topic_id: TopicId::FIRST,
            pid: 1,
            source: "tape:1".to_owned(),
        };
        Ok(Playing { tape: self.clone(), stream, next: 0, has_joined: false, has_left: false })
    }

    /// No experiment subscribes by pattern.
    fn subscriber_of(&self, selection: &TopicSelection) -> Result<Playing, Infallible> {
        self.subscriber(&Vec::from_iter(selection.names()))
    }

    /// No experiment subscribes to what it publishes itself.
    fn subscriber_except(
        &self,
        topics: &[&str],
        _session: SessionId,
    ) -> Result<Playing, Infallible> {
        self.subscriber(topics)
    }
}

/// The publisher.
pub(crate) struct Recording(Tape);

impl Publish for Recording {
    type Claim<'a> = Blank<'a>;
    type Batch<'a> = Never;
    type TopicError = Infallible;

    fn add_topic(&mut self, _name: &str) -> Result<TopicId, Infallible> {
        Ok(TopicId::FIRST)
    }

    fn try_claim_on(&mut self, topic: TopicId, len: usize) -> Result<Blank<'_>, ClaimError> {
        self.claim_on(topic, len)
    }

    fn claim_on(&mut self, _: TopicId, len: usize) -> Result<Blank<'_>, ClaimError> {
        if len > LONGEST {
            return Err(ClaimError::TooLong { longest: LONGEST });
        }
        Ok(Blank { tape: &self.0, bytes: [0; LONGEST], len })
    }

    fn batch(&mut self) -> Never {
        Never
    }

    fn wakeup(&mut self) -> std::io::Result<std::os::fd::BorrowedFd<'_>> {
        Err(std::io::ErrorKind::Unsupported.into())
    }

    fn session(&self) -> SessionId {
        SessionId(1)
    }

    fn source(&self) -> &str {
        "tape:1"
    }

    fn longest_message(&self) -> usize {
        LONGEST
    }

    fn subscribers(&self) -> usize {
        1
    }

    fn wait_for_subscribers(&mut self, count: usize, _: Duration) -> bool {
        count <= 1
    }

    fn poll_events(&mut self, _: impl FnMut(PublisherEvent<'_>)) -> usize {
        0
    }

    fn drain(&mut self, _: Duration) -> Completion {
        Completion::default()
    }

    fn close(self, _: Duration) -> Completion {
        Completion::default()
    }
}

/// Room for a message.
pub(crate) struct Blank<'a> {
    tape: &'a Tape,
    bytes: [u8; LONGEST],
    len: usize,
}

impl Deref for Blank<'_> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl DerefMut for Blank<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[..self.len]
    }
}

impl Claim for Blank<'_> {
    fn commit(self) {
        self.tape.write(&self);
    }

    fn commit_and_claim_next_after(
        self,
        len: usize,
        reserve: impl FnOnce() -> Result<(), ClaimError>,
    ) -> Result<Self, ClaimError> {
        self.tape.write(&self);
        reserve()?;
        Ok(Self { bytes: [0; LONGEST], len, ..self })
    }
}

/// No batches: no experiment sends any.
pub(crate) struct Never;

impl Batch for Never {
    fn try_add(&mut self, _: TopicId, _: usize) -> Result<&mut [u8], ClaimError> {
        Err(ClaimError::Closed)
    }

    fn last(&mut self) -> &mut [u8] {
        &mut []
    }

    fn len(&self) -> usize {
        0
    }

    fn publish(self) -> usize {
        0
    }
}

/// The subscriber: reads each message as soon as it is there and the one before is done with.
pub(crate) struct Playing {
    tape: Tape,
    stream: Stream,
    next: usize,
    has_joined: bool,
    has_left: bool,
}

impl Playing {
    fn read(&mut self, handler: &mut impl FnMut(Event<'_>)) -> bool {
        let Some(message) = self.tape.written().get(self.next).copied() else { return false };
        let free = if self.next == 0 { 0 } else { NOW.get() };
        NOW.set(free.max(message.sent + TRANSIT_NS));
        Stall::befalls(self.tape.receiver, self.next);
        let bytes = &message.bytes[..message.len];
        handler(Event::Message(Message::new(
            bytes,
            &self.stream,
            self.next as u64,
            Lease::FOR_GOOD,
        )));
        // The reader's last look at the clock.
        self.tape.written()[self.next].read = NOW.get();
        self.next += 1;
        true
    }
}

impl Subscribe for Playing {
    type Run<'a> = NoRun;

    fn take(&mut self, _: usize) -> NoRun {
        NoRun
    }

    fn poll<F: FnMut(Event<'_>)>(&mut self, limit: usize, mut handler: F) -> usize {
        if !self.has_joined {
            self.has_joined = true;
            handler(Event::Joined(&self.stream));
            return 1;
        }
        let read = (0..limit).take_while(|_| self.read(&mut handler)).count();
        if read == 0 && !self.has_left {
            self.has_left = true;
            handler(Event::Left(&self.stream, CloseReason::Closed));
            return 1;
        }
        read
    }

    fn wait_at_most(&mut self, _work: usize, _limit: Duration) {}

    fn wakeup(&mut self) -> std::io::Result<std::os::fd::BorrowedFd<'_>> {
        Err(std::io::ErrorKind::Unsupported.into())
    }

    fn longest_wait(&self) -> Duration {
        Duration::ZERO
    }

    fn streams(&self) -> usize {
        usize::from(self.has_joined && !self.has_left)
    }
}
