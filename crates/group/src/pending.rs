//! Events that arose outside of a poll, until the next one.
//!
//! Sending delivers a message to its own sender as well, and the application has no handler at
//! that moment. The bytes go into one buffer that is reused, so a warm queue allocates nothing.

use lanecast_membership::{Departure, Event, MemberId, MemberInfo, Order, View, ViewChange};
use std::collections::VecDeque;
use std::ops::Range;

/// Events in their order.
#[derive(Debug, Default)]
pub(crate) struct PendingEvents {
    bytes: Vec<u8>,
    events: VecDeque<PendingEvent>,
}

/// An event whose bytes lie in the buffer.
#[derive(Debug)]
enum PendingEvent {
    View(Box<(View, ViewChange)>),
    Message { from: MemberId, sequence: u64, order: Order, bytes: Range<usize> },
    Direct { from: MemberId, bytes: Range<usize> },
    Suspected(Box<MemberInfo>, Departure),
    StateRequested { to: MemberId, token: u64 },
    State(Range<usize>),
    StateLost,
    Writable,
    OtherVersion { version: u8 },
    Left,
}

impl PendingEvents {
    /// Bytes that the events take: messages may be empty.
    #[inline]
    pub(crate) fn length(&self) -> usize {
        self.bytes.len() + self.events.len() * size_of::<PendingEvent>()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    pub(crate) fn push(&mut self, event: Event<'_>) {
        let event = match event {
            Event::View(view, change) => {
                PendingEvent::View(Box::new((view.clone(), change.clone())))
            }
            Event::Message { from, sequence, order, bytes } => {
                PendingEvent::Message { from, sequence, order, bytes: self.copy(bytes) }
            }
            Event::Direct { from, bytes } => PendingEvent::Direct { from, bytes: self.copy(bytes) },
            Event::Suspected(member, why) => PendingEvent::Suspected(Box::new(member.clone()), why),
            Event::StateRequested { to, token } => PendingEvent::StateRequested { to, token },
            Event::State(bytes) => PendingEvent::State(self.copy(bytes)),
            Event::StateLost => PendingEvent::StateLost,
            Event::Writable => PendingEvent::Writable,
            Event::OtherVersion { version } => PendingEvent::OtherVersion { version },
            Event::Left => PendingEvent::Left,
            // A kind that this crate does not know cannot be kept.
            _ => return,
        };
        self.events.push_back(event);
    }

    /// Ends with `Event::Writable`: a send was refused as these events take too much memory.
    pub(crate) fn promise_room(&mut self) {
        if !matches!(self.events.back(), Some(PendingEvent::Writable)) {
            self.events.push_back(PendingEvent::Writable);
        }
    }

    fn copy(&mut self, bytes: &[u8]) -> Range<usize> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        start..self.bytes.len()
    }

    /// Gives all events to `handler`; returns their number.
    pub(crate) fn deliver(&mut self, handler: &mut impl FnMut(Event<'_>)) -> usize {
        let mut count = 0;
        // One by one, so that a handler that panics loses its own event only.
        while let Some(event) = self.events.pop_front() {
            count += 1;
            handler(match &event {
                PendingEvent::View(both) => Event::View(&both.0, &both.1),
                PendingEvent::Message { from, sequence, order, bytes } => Event::Message {
                    from: *from,
                    sequence: *sequence,
                    order: *order,
                    bytes: &self.bytes[bytes.clone()],
                },
                PendingEvent::Direct { from, bytes } => {
                    Event::Direct { from: *from, bytes: &self.bytes[bytes.clone()] }
                }
                PendingEvent::Suspected(member, why) => Event::Suspected(member, *why),
                PendingEvent::StateRequested { to, token } => {
                    Event::StateRequested { to: *to, token: *token }
                }
                PendingEvent::State(bytes) => Event::State(&self.bytes[bytes.clone()]),
                PendingEvent::StateLost => Event::StateLost,
                PendingEvent::Writable => Event::Writable,
                PendingEvent::OtherVersion { version } => Event::OtherVersion { version: *version },
                PendingEvent::Left => Event::Left,
            });
        }
        self.bytes.clear();
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_keep_their_order_and_bytes_and_the_buffer_is_reused() {
        let mut pending = PendingEvents::default();
        for round in 0..3_u64 {
            for index in 0..10 {
                let bytes = [round as u8, index];
                let (from, sequence, order) = (MemberId(7), u64::from(index), Order::Sender);
                pending.push(Event::Message { from, sequence, order, bytes: &bytes });
            }
            pending.push(Event::Writable);
            assert_eq!(pending.length(), 20 + 11 * size_of::<PendingEvent>());
            let capacity = pending.bytes.capacity();
            let mut seen = Vec::new();
            let count = pending.deliver(&mut |event| match event {
                Event::Message { sequence, bytes, .. } => seen.push((sequence, bytes.to_vec())),
                other => assert!(matches!(other, Event::Writable)),
            });
            assert_eq!(count, 11);
            let expected = (0..10).map(|index| (index, vec![round as u8, index as u8]));
            assert_eq!(seen, expected.collect::<Vec<_>>());
            assert!(pending.is_empty() && pending.bytes.capacity() == capacity);
        }
    }
}
