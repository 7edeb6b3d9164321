//! A transport inside one process, for trying the experiments: queues under a lock, with faults on
//! demand.

use crate::no_run::NoRun;
use lanecast_transport::{
    BackPressureReason, Batch, Claim, ClaimError, CloseReason, Completion, Event, Gap, Lease,
    LossReason, Message, Publish, PublisherEvent, SessionId, Stream, Subscribe, TopicId,
    TopicSelection, Transport,
};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Fate of a message, by its number.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fate {
    Arrives,
    /// Lost without a report.
    Vanishes,
    /// Never arrives; the subscriber is told.
    IsLost,
    ArrivesTwice,
    /// Damaged in its last byte.
    IsDamaged,
}

/// The transport.
#[derive(Clone)]
pub(crate) struct Memory {
    hub: Arc<Hub>,
    capacity: usize,
    fate: fn(u64) -> Fate,
}

struct Hub {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    sessions: u64,
    streams: Vec<Stream>,
    queues: Vec<Queue>,
    copied: u64,
    /// Topics whose publisher has waited for a subscriber.
    settled: Vec<String>,
}

struct Queue {
    topics: Vec<String>,
    items: VecDeque<Item>,
    open: bool,
}

enum Item {
    Joined(Stream),
    Message(Stream, u64, Vec<u8>),
    Lost(Stream, u64),
    Left(Stream, CloseReason),
}

impl Memory {
    /// Room for `capacity` messages per subscriber; `fate` decides what becomes of each.
    pub(crate) fn new(capacity: usize, fate: fn(u64) -> Fate) -> Self {
        let hub = Hub { state: Mutex::new(State::default()), changed: Condvar::new() };
        Self { hub: Arc::new(hub), capacity, fate }
    }
}

impl Memory {
    /// Messages that came by the copying calls; the others were written in place.
    pub(crate) fn copied(&self) -> u64 {
        self.hub.lock().copied
    }

    /// Whether the publisher of `topic` waits for a subscriber, and has one, within `timeout`.
    pub(crate) fn settles(&self, topic: &str, timeout: Duration) -> bool {
        let is_settled = |state: &State| state.settled.iter().any(|it| it == topic);
        self.hub.wait_until(Instant::now() + timeout, is_settled)
    }
}

impl Hub {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `ready`, at most until `deadline`; whether it is.
    fn wait_until(&self, deadline: Instant, ready: impl Fn(&State) -> bool) -> bool {
        let mut state = self.lock();
        while !ready(&state) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            state = self.changed.wait_timeout(state, left).unwrap().0;
        }
        true
    }
}

impl State {
    fn readers(&self, topic: &str) -> impl Iterator<Item = &Queue> {
        self.queues.iter().filter(move |queue| queue.wants(topic))
    }

    fn tell(&mut self, topic: &str, mut item: impl FnMut() -> Item) {
        for queue in self.queues.iter_mut().filter(|queue| queue.wants(topic)) {
            queue.items.push_back(item());
        }
    }

    fn has_room(&self, topic: &str, capacity: usize) -> bool {
        self.readers(topic).all(|queue| queue.items.len() < capacity)
    }
}

impl Queue {
    fn wants(&self, topic: &str) -> bool {
        self.open && self.topics.iter().any(|wanted| wanted == topic)
    }
}

impl Transport for Memory {
    type Publisher = MemoryPublisher;
    type Subscriber = MemorySubscriber;
    type Error = Infallible;

    fn name(&self) -> &'static str {
        "memory"
    }

    fn keeps_order_across_topics(&self) -> bool {
        true
    }

    fn publisher(&self, topic: &str) -> Result<MemoryPublisher, Infallible> {
        let mut state = self.hub.lock();
        state.sessions += 1;
        let stream = Stream {
            session: SessionId(state.sessions),
            topic: topic.to_owned(),
            topic_id: TopicId::FIRST,
            pid: std::process::id(),
            source: format!("memory:{}", state.sessions),
        };
        state.streams.push(stream.clone());
        state.tell(topic, || Item::Joined(stream.clone()));
        self.hub.changed.notify_all();
        Ok(MemoryPublisher { transport: self.clone(), stream, published: 0, back_pressured: 0 })
    }

    fn subscriber(&self, topics: &[&str]) -> Result<MemorySubscriber, Infallible> {
        let mut state = self.hub.lock();
        let topics: Vec<String> = topics.iter().map(|&topic| topic.to_owned()).collect();
        let there = state.streams.iter().filter(|stream| topics.contains(&stream.topic));
        let items = there.cloned().map(Item::Joined).collect();
        state.queues.push(Queue { topics, items, open: true });
        self.hub.changed.notify_all();
        let index = state.queues.len() - 1;
        Ok(MemorySubscriber { hub: Arc::clone(&self.hub), index, streams: 0 })
    }

    /// No experiment subscribes by pattern.
    fn subscriber_of(&self, selection: &TopicSelection) -> Result<MemorySubscriber, Infallible> {
        self.subscriber(&Vec::from_iter(selection.names()))
    }

    /// No experiment subscribes to what it publishes itself.
    fn subscriber_except(
        &self,
        topics: &[&str],
        _session: SessionId,
    ) -> Result<MemorySubscriber, Infallible> {
        self.subscriber(topics)
    }
}

pub(crate) struct MemoryPublisher {
    transport: Memory,
    stream: Stream,
    published: u64,
    back_pressured: u64,
}

impl MemoryPublisher {
    /// Number of claims that found a full window.
    pub(crate) fn back_pressured(&self) -> u64 {
        self.back_pressured
    }

    fn has_room(&mut self) -> bool {
        let has_room =
            self.transport.hub.lock().has_room(&self.stream.topic, self.transport.capacity);
        self.back_pressured += u64::from(!has_room);
        has_room
    }

    fn commit(&mut self, mut bytes: Vec<u8>) {
        let number = self.published;
        self.published += 1;
        let stream = &self.stream;
        let mut state = self.transport.hub.lock();
        let message = |bytes: &[u8]| Item::Message(stream.clone(), number, bytes.to_vec());
        match (self.transport.fate)(number) {
            Fate::Vanishes => {}
            Fate::IsLost => state.tell(&stream.topic, || Item::Lost(stream.clone(), number)),
            fate => {
                if let (Fate::IsDamaged, Some(last)) = (fate, bytes.last_mut()) {
                    *last ^= 1;
                }
                state.tell(&stream.topic, || message(&bytes));
                if matches!(fate, Fate::ArrivesTwice) {
                    state.tell(&stream.topic, || message(&bytes));
                }
            }
        }
        self.transport.hub.changed.notify_all();
    }

    fn end(&mut self) {
        let mut state = self.transport.hub.lock();
        let stream = &self.stream;
        if let Some(at) = state.streams.iter().position(|other| other.session == stream.session) {
            state.streams.remove(at);
            state.tell(&stream.topic, || Item::Left(stream.clone(), CloseReason::Closed));
            self.transport.hub.changed.notify_all();
        }
    }

    fn claimed(&mut self, len: usize) -> Result<MemoryClaim<'_>, ClaimError> {
        if len > self.longest_message() {
            return Err(ClaimError::TooLong { longest: self.longest_message() });
        }
        Ok(MemoryClaim { bytes: vec![0xee; len], publisher: self })
    }
}

const A_LONG_TIME: Duration = Duration::from_secs(3600);

impl Publish for MemoryPublisher {
    type Claim<'a> = MemoryClaim<'a>;
    type Batch<'a> = MemoryBatch<'a>;
    type TopicError = Infallible;

    fn add_topic(&mut self, _name: &str) -> Result<TopicId, Infallible> {
        Ok(TopicId::FIRST)
    }

    fn try_claim_on(&mut self, _: TopicId, len: usize) -> Result<MemoryClaim<'_>, ClaimError> {
        if !self.has_room() {
            return Err(ClaimError::BackPressured(BackPressureReason::WindowFull));
        }
        self.claimed(len)
    }

    fn claim_on(&mut self, _: TopicId, len: usize) -> Result<MemoryClaim<'_>, ClaimError> {
        if !self.has_room() {
            let (topic, capacity) = (&self.stream.topic, self.transport.capacity);
            let forever = Instant::now() + A_LONG_TIME;
            self.transport.hub.wait_until(forever, |state| state.has_room(topic, capacity));
        }
        self.claimed(len)
    }

    fn try_send_on(&mut self, topic: TopicId, bytes: &[u8]) -> Result<(), ClaimError> {
        let mut claim = self.try_claim_on(topic, bytes.len())?;
        claim.copy_from_slice(bytes);
        claim.commit();
        self.transport.hub.lock().copied += 1;
        Ok(())
    }

    fn send_on(&mut self, topic: TopicId, bytes: &[u8]) -> Result<(), ClaimError> {
        let mut claim = self.claim_on(topic, bytes.len())?;
        claim.copy_from_slice(bytes);
        claim.commit();
        self.transport.hub.lock().copied += 1;
        Ok(())
    }

    fn batch(&mut self) -> MemoryBatch<'_> {
        MemoryBatch { publisher: self, messages: Vec::new() }
    }

    fn wakeup(&mut self) -> std::io::Result<std::os::fd::BorrowedFd<'_>> {
        Err(std::io::ErrorKind::Unsupported.into())
    }

    fn session(&self) -> SessionId {
        self.stream.session
    }

    fn source(&self) -> &str {
        &self.stream.source
    }

    fn longest_message(&self) -> usize {
        4096
    }

    fn subscribers(&self) -> usize {
        self.transport.hub.lock().readers(&self.stream.topic).count()
    }

    fn wait_for_subscribers(&mut self, count: usize, timeout: Duration) -> bool {
        let topic = &self.stream.topic;
        let deadline = Instant::now() + timeout;
        let hub = &self.transport.hub;
        let is_there = hub.wait_until(deadline, |state| state.readers(topic).count() >= count);
        if is_there {
            hub.lock().settled.push(topic.clone());
            hub.changed.notify_all();
        }
        is_there
    }

    fn poll_events(&mut self, _: impl FnMut(PublisherEvent<'_>)) -> usize {
        0
    }

    fn drain(&mut self, timeout: Duration) -> Completion {
        let topic = &self.stream.topic;
        let deadline = Instant::now() + timeout;
        let empty = |state: &State| state.readers(topic).all(|queue| queue.items.is_empty());
        let mut completion = Completion::default();
        if !self.transport.hub.wait_until(deadline, empty) {
            completion.add_omitted(1);
        }
        completion
    }

    fn close(mut self, linger: Duration) -> Completion {
        let drained = self.drain(linger);
        self.end();
        drained
    }
}

impl Drop for MemoryPublisher {
    fn drop(&mut self) {
        self.end();
    }
}

pub(crate) struct MemoryClaim<'a> {
    publisher: &'a mut MemoryPublisher,
    bytes: Vec<u8>,
}

impl Deref for MemoryClaim<'_> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl DerefMut for MemoryClaim<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

impl Claim for MemoryClaim<'_> {
    fn commit(self) {
        self.publisher.commit(self.bytes);
    }

    fn commit_and_claim_next_after(
        self,
        len: usize,
        reserve: impl FnOnce() -> Result<(), ClaimError>,
    ) -> Result<Self, ClaimError> {
        self.publisher.commit(self.bytes);
        reserve()?;
        self.publisher.try_claim(len)
    }
}

pub(crate) struct MemoryBatch<'a> {
    publisher: &'a mut MemoryPublisher,
    messages: Vec<Vec<u8>>,
}

impl Batch for MemoryBatch<'_> {
    fn try_add(&mut self, _: TopicId, len: usize) -> Result<&mut [u8], ClaimError> {
        self.messages.push(vec![0xee; len]);
        Ok(self.messages.last_mut().expect("one was added above"))
    }

    fn last(&mut self) -> &mut [u8] {
        self.messages.last_mut().map_or(&mut [], Vec::as_mut_slice)
    }

    fn len(&self) -> usize {
        self.messages.len()
    }

    fn publish(self) -> usize {
        let count = self.messages.len();
        self.messages.into_iter().for_each(|bytes| self.publisher.commit(bytes));
        count
    }
}

pub(crate) struct MemorySubscriber {
    hub: Arc<Hub>,
    index: usize,
    streams: usize,
}

impl Subscribe for MemorySubscriber {
    type Run<'a> = NoRun;

    fn take(&mut self, _: usize) -> NoRun {
        NoRun
    }

    fn poll<F: FnMut(Event<'_>)>(&mut self, limit: usize, mut handler: F) -> usize {
        let items: Vec<Item> = {
            let items = &mut self.hub.lock().queues[self.index].items;
            let count = limit.min(items.len());
            items.drain(..count).collect()
        };
        self.hub.changed.notify_all();
        for item in &items {
            match item {
                Item::Joined(stream) => {
                    self.streams += 1;
                    handler(Event::Joined(stream));
                }
                Item::Message(stream, number, bytes) => {
                    let lease = Lease::FOR_GOOD;
                    handler(Event::Message(Message::new(bytes, stream, *number, lease)));
                }
                Item::Lost(stream, first) => {
                    let why = LossReason::Evicted;
                    handler(Event::Lost(Gap { stream, first: *first, count: 1, why }));
                }
                Item::Left(stream, why) => {
                    self.streams -= 1;
                    handler(Event::Left(stream, *why));
                }
            }
        }
        items.len()
    }

    fn wait_at_most(&mut self, work: usize, limit: Duration) {
        if work == 0 {
            let (deadline, index) = (Instant::now() + limit.min(self.longest_wait()), self.index);
            self.hub.wait_until(deadline, |state| !state.queues[index].items.is_empty());
        }
    }

    fn wakeup(&mut self) -> std::io::Result<std::os::fd::BorrowedFd<'_>> {
        Err(std::io::ErrorKind::Unsupported.into())
    }

    fn longest_wait(&self) -> Duration {
        Duration::from_millis(10)
    }

    fn streams(&self) -> usize {
        self.streams
    }
}

impl Drop for MemorySubscriber {
    fn drop(&mut self) {
        let queue = &mut self.hub.lock().queues[self.index];
        queue.open = false;
        queue.items.clear();
        self.hub.changed.notify_all();
    }
}
