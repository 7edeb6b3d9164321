//! A subscriber's queue of deliveries that its handler has not had yet.
//!
//! Owned by the subscriber, outside the lock of its sessions: the handler runs while the
//! conductor may enter them. Messages lie in the buffer that the socket was read into.

use crate::tcp_receiver;
use lanecast_protocol::receiver::Delivery;
use lanecast_transport::{Event, Gap, Lease, Message, Stream};
use lanecast_wire::net::Items;
use std::collections::VecDeque;
use std::sync::Arc;

/// A delivery of one session.
#[derive(Debug)]
pub(crate) struct QueuedDelivery {
    /// The session's index in the subscriber.
    pub(crate) session: u32,
    pub(crate) delivery: Delivery,
    /// Set with [`Delivery::Joined`].
    pub(crate) stream: Option<Arc<Stream>>,
}

impl QueuedDelivery {
    /// Bytes of memory: its messages, and itself.
    pub(crate) fn weight(&self) -> u64 {
        let bytes = match &self.delivery {
            Delivery::Owned { items, .. } => items.len(),
            Delivery::Message { bytes, .. } => bytes.len(),
            _ => 0,
        };
        (size_of::<Self>() + bytes) as u64
    }

    /// Copies the delivery out of `buffer`.
    pub(crate) fn into_owned(self, buffer: &[u8]) -> Self {
        let delivery = match self.delivery {
            Delivery::Borrowed { slot, first, start, end } => {
                Delivery::Owned { slot, first, items: buffer[start as usize..end as usize].into() }
            }
            other => other,
        };
        Self { delivery, ..self }
    }
}

/// Deliveries, and the read buffer that some of them point into.
#[derive(Debug)]
pub(crate) struct DeliveryQueue {
    pub(crate) buffer: Box<[u8]>,
    pub(crate) deliveries: VecDeque<QueuedDelivery>,
    /// Bytes and messages of the first delivery that the handler has had.
    consumed: usize,
    consumed_messages: u64,
    streams: JoinedStreams,
}

/// A place in the queue: the deliveries before it, and the bytes and messages of the next one that
/// are before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Progress {
    pub(crate) deliveries: usize,
    pub(crate) bytes: usize,
    pub(crate) messages: u64,
}

impl DeliveryQueue {
    pub(crate) fn new() -> Self {
        Self {
            buffer: tcp_receiver::read_buffer(),
            deliveries: VecDeque::new(),
            consumed: 0,
            consumed_messages: 0,
            streams: JoinedStreams::default(),
        }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.deliveries.is_empty()
    }

    /// Number of joined streams.
    pub(crate) fn streams(&self) -> usize {
        self.streams.count
    }

    /// The place of the next event.
    #[inline]
    pub(crate) const fn progress(&self) -> Progress {
        Progress { deliveries: 0, bytes: self.consumed, messages: self.consumed_messages }
    }

    /// The delivery of `index`, and its stream if it is a joined event.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<(&Delivery, Option<&Stream>)> {
        let queued = self.deliveries.get(index)?;
        Some((&queued.delivery, queued.stream.as_deref()))
    }

    /// The joined stream of the delivery of `index`.
    #[inline]
    pub(crate) fn stream_of(&self, index: usize) -> Option<&Stream> {
        let queued = self.deliveries.get(index)?;
        self.streams.get((queued.session, slot(&queued.delivery)))
    }

    /// The first number and the bytes of a delivery's messages.
    #[inline]
    pub(crate) fn items<'a>(&'a self, delivery: &'a Delivery) -> (u64, &'a [u8]) {
        items(&self.buffer, delivery)
    }

    /// Consumes everything before `place`.
    #[inline]
    pub(crate) fn consume(&mut self, place: Progress) {
        for _ in 0..place.deliveries {
            let Some(queued) = self.pop() else { return };
            let key = (queued.session, slot(&queued.delivery));
            match (&queued.delivery, queued.stream) {
                (Delivery::Joined { .. }, Some(stream)) => self.streams.add(key, stream),
                (Delivery::Left { .. }, _) => drop(self.streams.remove(key)),
                _ => {}
            }
        }
        (self.consumed, self.consumed_messages) = (place.bytes, place.messages);
    }

    /// Calls `handler` with at most `limit` events; returns their number. An event counts as
    /// delivered even if the handler panics.
    #[inline]
    pub(crate) fn deliver<F: FnMut(Event<'_>)>(&mut self, limit: usize, handler: &mut F) -> usize {
        let mut events = 0;
        while events < limit
            && let Some(queued) = self.deliveries.front()
        {
            // Copied: the queue's borrow has to end before a handler runs.
            let (session, slot) = (queued.session, slot(&queued.delivery));
            let (first, items) = match &queued.delivery {
                Delivery::Borrowed { .. } | Delivery::Owned { .. } => {
                    items(&self.buffer, &queued.delivery)
                }
                Delivery::Message { .. } => {
                    events += 1;
                    self.deliver_message(session, slot, handler);
                    continue;
                }
                _ => {
                    events += 1;
                    self.deliver_event(session, slot, handler);
                    continue;
                }
            };
            let Some(stream) = self.streams.get((session, slot)) else {
                self.pop();
                continue;
            };
            let consumed = (&mut self.consumed, &mut self.consumed_messages);
            let run = (items, first);
            events += deliver_items(run, consumed, limit - events, stream, handler);
            // A limit may end in the middle: the rest stays first in the queue.
            if self.consumed >= items.len() {
                self.pop();
            }
        }
        events
    }

    fn pop(&mut self) -> Option<QueuedDelivery> {
        (self.consumed, self.consumed_messages) = (0, 0);
        self.deliveries.pop_front()
    }

    /// Delivers a message that was reassembled from fragments.
    fn deliver_message<F: FnMut(Event<'_>)>(&mut self, session: u32, slot: u32, handler: &mut F) {
        // Popped before the handler runs: its panic must not deliver the message again.
        let queued = self.pop();
        let Some(stream) = self.streams.get((session, slot)) else { return };
        if let Some(QueuedDelivery { delivery: Delivery::Message { number, bytes, .. }, .. }) =
            queued
        {
            handler(Event::Message(Message::new(&bytes, stream, number, Lease::FOR_GOOD)));
        }
    }

    /// Delivers the first entry, which is not a message.
    #[cold]
    fn deliver_event<F: FnMut(Event<'_>)>(&mut self, session: u32, slot: u32, handler: &mut F) {
        // Popped before the handler runs, as every delivery.
        let Some(queued) = self.pop() else { return };
        let key = (session, slot);
        match (queued.delivery, queued.stream) {
            (Delivery::Joined { .. }, Some(stream)) => {
                self.streams.add(key, Arc::clone(&stream));
                handler(Event::Joined(&stream));
            }
            (Delivery::Lost { first, count, why, .. }, _) => {
                let Some(stream) = self.streams.get(key) else { return };
                handler(Event::Lost(Gap { stream, first, count, why }));
            }
            (Delivery::Left { why, .. }, _) => {
                // Removed first: the stream is gone even if the handler panics.
                let Some(stream) = self.streams.remove(key) else { return };
                handler(Event::Left(&stream, why));
            }
            _ => {}
        }
    }
}

/// Delivers the messages of `items`, the first of which has number `first`, but for the bytes and
/// messages `consumed`; at most `limit`.
#[inline]
fn deliver_items<F: FnMut(Event<'_>)>(
    (items, first): (&[u8], u64),
    (consumed, consumed_messages): (&mut usize, &mut u64),
    limit: usize,
    stream: &Stream,
    handler: &mut F,
) -> usize {
    let mut rest = Items::new(&items[*consumed..]);
    let mut count = 0;
    while count < limit {
        let Some(item) = rest.next() else {
            *consumed = items.len();
            break;
        };
        // Before the handler runs: its panic must not deliver the message again.
        *consumed = items.len() - rest.rest().len();
        let number = first.wrapping_add(*consumed_messages);
        *consumed_messages += 1;
        count += 1;
        handler(Event::Message(Message::new(item.bytes, stream, number, Lease::FOR_GOOD)));
    }
    count
}

fn items<'a>(buffer: &'a [u8], delivery: &'a Delivery) -> (u64, &'a [u8]) {
    match delivery {
        Delivery::Borrowed { first, start, end, .. } => {
            (*first, &buffer[*start as usize..*end as usize])
        }
        Delivery::Owned { first, items, .. } => (*first, items),
        _ => (0, &[]),
    }
}

/// Joined streams, by session and topic slot.
#[derive(Debug, Default)]
struct JoinedStreams {
    /// In the order of the sessions' indices; each with its streams by slot.
    sessions: Vec<(u32, Vec<Option<Arc<Stream>>>)>,
    count: usize,
}

impl JoinedStreams {
    /// The stream of a session's topic slot.
    #[inline]
    fn get(&self, (session, slot): (u32, u32)) -> Option<&Stream> {
        // Most subscribers have one session; a pattern may bring thousands.
        let (_, slots) = match self.sessions.first()? {
            first if first.0 == session => first,
            _ => &self.sessions[self.find(session).ok()?],
        };
        slots.get(slot as usize)?.as_deref()
    }

    fn find(&self, session: u32) -> Result<usize, usize> {
        self.sessions.binary_search_by_key(&session, |(session, _)| *session)
    }

    fn add(&mut self, (session, slot): (u32, u32), stream: Arc<Stream>) {
        let at = self.find(session).unwrap_or_else(|at| {
            self.sessions.insert(at, (session, Vec::new()));
            at
        });
        let (slots, slot) = (&mut self.sessions[at].1, slot as usize);
        if slot >= slots.len() {
            slots.resize(slot + 1, None);
        }
        self.count += usize::from(slots[slot].replace(stream).is_none());
    }

    fn remove(&mut self, (session, slot): (u32, u32)) -> Option<Arc<Stream>> {
        let at = self.find(session).ok()?;
        let slots = &mut self.sessions[at].1;
        let stream = slots.get_mut(slot as usize)?.take()?;
        self.count -= 1;
        // A session's streams end together, the last slot last or not: trimmed from the end.
        while slots.last().is_some_and(Option::is_none) {
            slots.pop();
        }
        if slots.is_empty() {
            self.sessions.remove(at);
        }
        Some(stream)
    }
}

const fn slot(delivery: &Delivery) -> u32 {
    match delivery {
        Delivery::Joined { slot }
        | Delivery::Borrowed { slot, .. }
        | Delivery::Owned { slot, .. }
        | Delivery::Message { slot, .. }
        | Delivery::Lost { slot, .. }
        | Delivery::Left { slot, .. } => *slot,
    }
}
