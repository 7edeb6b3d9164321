//! A subscriber's queue of deliveries that its handler has not had yet.
//!
//! Owned by the subscriber, outside the lock of its sessions: the handler runs while the
//! conductor may enter them. Messages lie in the buffer that the socket was read into.

use lanecast_protocol::receiver::Delivery;
use lanecast_transport::{Event, Gap, Lease, Message, Stream};
use lanecast_wire::net::Items;
use std::collections::VecDeque;
use std::sync::Arc;

/// One read of a socket: a GRO run of datagrams, or more from a TCP connection.
const BUFFER_BYTES: usize = 320 << 10;

/// A delivery of one session.
#[derive(Debug)]
pub(crate) struct QueuedDelivery {
    /// The session's index in the subscriber.
    pub(crate) session: u32,
    pub(crate) delivery: Delivery,
    /// Set with [`Delivery::Joined`].
    pub(crate) stream: Option<Arc<Stream>>,
}

/// Deliveries, and the read buffer that some of them point into.
#[derive(Debug)]
pub(crate) struct DeliveryQueue {
    pub(crate) buffer: Box<[u8]>,
    pub(crate) deliveries: VecDeque<QueuedDelivery>,
    /// Bytes and messages of the first delivery that the handler has had.
    consumed: usize,
    consumed_messages: u64,
    /// Joined streams, by session and topic slot.
    streams: Vec<((u32, u32), Arc<Stream>)>,
}

impl DeliveryQueue {
    pub(crate) fn new() -> Self {
        Self {
            buffer: vec![0; BUFFER_BYTES].into_boxed_slice(),
            deliveries: VecDeque::new(),
            consumed: 0,
            consumed_messages: 0,
            streams: Vec::new(),
        }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.deliveries.is_empty()
    }

    /// Number of joined streams.
    pub(crate) fn streams(&self) -> usize {
        self.streams.len()
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
                Delivery::Borrowed { first, start, end, .. } => {
                    (*first, &self.buffer[*start as usize..*end as usize])
                }
                Delivery::Owned { first, items, .. } => (*first, &**items),
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
            let Some(stream) = stream(&self.streams, session, slot) else {
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
        let Some(stream) = stream(&self.streams, session, slot) else { return };
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
                self.streams.push((key, Arc::clone(&stream)));
                handler(Event::Joined(&stream));
            }
            (Delivery::Lost { first, count, why, .. }, _) => {
                let Some(stream) = stream(&self.streams, session, slot) else { return };
                handler(Event::Lost(Gap { stream, first, count, why }));
            }
            (Delivery::Left { why, .. }, _) => {
                let Some(at) = self.streams.iter().position(|(known, _)| *known == key) else {
                    return;
                };
                // Removed first: the stream is gone even if the handler panics.
                let (_, stream) = self.streams.swap_remove(at);
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

fn stream(streams: &[((u32, u32), Arc<Stream>)], session: u32, slot: u32) -> Option<&Stream> {
    // A scan: few streams are joined, and they lie side by side.
    let found = streams.iter().find(|(key, _)| *key == (session, slot));
    found.map(|(_, stream)| &**stream)
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
