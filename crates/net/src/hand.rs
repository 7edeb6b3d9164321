//! What a subscriber has in hand: deliveries that its handler has not had yet.

use lanecast_protocol::receiver::Delivery;
use lanecast_transport::{Event, Gap, Lease, Message, Stream};
use lanecast_wire::net::Items;
use std::collections::VecDeque;
use std::sync::Arc;

/// What the kernel hands over at once, and more for the stream transports.
const BUFFER_BYTES: usize = 320 << 10;

/// Something of one session.
#[derive(Debug)]
pub(crate) struct Item {
    /// The session, as the subscriber numbers them.
    pub(crate) session: u32,
    pub(crate) delivery: Delivery,
    /// The stream, with its `Joined`.
    pub(crate) stream: Option<Arc<Stream>>,
}

/// Deliveries, and the buffer that some of them lie in.
#[derive(Debug)]
pub(crate) struct Hand {
    pub(crate) buffer: Box<[u8]>,
    pub(crate) items: VecDeque<Item>,
    /// How far the handler has come within the first item, in bytes.
    done: usize,
    streams: Vec<((u32, u32), Arc<Stream>)>,
}

impl Hand {
    pub(crate) fn new() -> Self {
        Self {
            buffer: vec![0; BUFFER_BYTES].into_boxed_slice(),
            items: VecDeque::new(),
            done: 0,
            streams: Vec::new(),
        }
    }

    /// How many streams the handler knows of.
    pub(crate) fn streams(&self) -> usize {
        self.streams.len()
    }

    /// Hands over at most `limit` messages; returns how many messages and other events it was.
    /// A handler that panics has had its event.
    #[inline]
    pub(crate) fn deliver<F: FnMut(Event<'_>)>(
        &mut self,
        limit: usize,
        handler: &mut F,
    ) -> (usize, usize) {
        let (mut messages, mut others) = (0, 0);
        while messages + others < limit
            && let Some(item) = self.items.front()
        {
            let (session, slot) = (item.session, slot(&item.delivery));
            match &item.delivery {
                Delivery::Borrowed { start, end, .. } => {
                    let Some(stream) = stream(&self.streams, session, slot) else {
                        self.pop();
                        continue;
                    };
                    let bytes = &self.buffer[*start as usize..*end as usize];
                    let left = limit - messages - others;
                    messages += run(bytes, &mut self.done, left, stream, handler);
                    if self.done >= bytes.len() {
                        self.pop();
                    }
                }
                Delivery::Owned { items, .. } => {
                    let Some(stream) = stream(&self.streams, session, slot) else {
                        self.pop();
                        continue;
                    };
                    let left = limit - messages - others;
                    messages += run(items, &mut self.done, left, stream, handler);
                    if self.done >= items.len() {
                        self.pop();
                    }
                }
                Delivery::Message { .. } => {
                    messages += 1;
                    self.whole(session, slot, handler);
                }
                _ => {
                    others += 1;
                    self.tell(session, slot, handler);
                }
            }
        }
        (messages, others)
    }

    fn pop(&mut self) -> Option<Item> {
        self.done = 0;
        self.items.pop_front()
    }

    fn whole<F: FnMut(Event<'_>)>(&mut self, session: u32, slot: u32, handler: &mut F) {
        let item = self.pop();
        let Some(stream) = stream(&self.streams, session, slot) else { return };
        if let Some(Item { delivery: Delivery::Message { bytes, .. }, .. }) = item {
            handler(Event::Message(Message::new(&bytes, stream, Lease::FOR_GOOD)));
        }
    }

    /// Hands the first item over, which is no message.
    #[cold]
    fn tell<F: FnMut(Event<'_>)>(&mut self, session: u32, slot: u32, handler: &mut F) {
        let Some(item) = self.pop() else { return };
        let key = (session, slot);
        match (item.delivery, item.stream) {
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
                let (_, stream) = self.streams.swap_remove(at);
                handler(Event::Left(&stream, why));
            }
            _ => {}
        }
    }
}

/// Hands over the messages of `items` from `done` on.
#[inline]
fn run<F: FnMut(Event<'_>)>(
    items: &[u8],
    done: &mut usize,
    limit: usize,
    stream: &Stream,
    handler: &mut F,
) -> usize {
    let mut rest = Items::new(&items[*done..]);
    let mut count = 0;
    while count < limit {
        let Some(item) = rest.next() else {
            *done = items.len();
            break;
        };
        // Before the handler, so that its panic does not bring the message back.
        *done = items.len() - rest.rest().len();
        count += 1;
        handler(Event::Message(Message::new(item.bytes, stream, Lease::FOR_GOOD)));
    }
    count
}

fn stream(streams: &[((u32, u32), Arc<Stream>)], session: u32, slot: u32) -> Option<&Stream> {
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
