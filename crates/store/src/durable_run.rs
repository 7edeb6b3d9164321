//! A run of events of a durable subscriber, which stay valid until the run is dropped.

use crate::held_events::{HeldEvents, position_after};
use lanecast_persistence::{Nanos, Receiver, ReceiverEvent};
use std::cell::Cell;

/// A run of events, returned by [`DurableSubscriber::take`](crate::DurableSubscriber::take).
///
/// As with [`lanecast_transport::Run`], the events borrow from the run, so that several can be held
/// at once, and only its drop consumes them, up to the last one that an iterator yielded. Events
/// that were not yielded come again, with the next take or poll.
#[must_use = "a run that is dropped at once consumes nothing"]
#[derive(Debug)]
pub struct DurableRun<'a> {
    held: &'a mut HeldEvents,
    /// Learns what was consumed, unless the program says so itself.
    receiver: Option<&'a mut Receiver>,
    now: Nanos,
    limit: usize,
    /// Most events that an iterator has yielded.
    yielded: Cell<usize>,
}

impl<'a> DurableRun<'a> {
    pub(crate) const fn new(
        held: &'a mut HeldEvents,
        receiver: Option<&'a mut Receiver>,
        now: Nanos,
        limit: usize,
    ) -> Self {
        Self { held, receiver, now, limit, yielded: Cell::new(0) }
    }

    /// The events, from the first one on; each call starts again.
    pub const fn iter(&self) -> DurableEvents<'_> {
        DurableEvents { held: self.held, limit: self.limit, next: 0, yielded: &self.yielded }
    }
}

impl<'r> IntoIterator for &'r DurableRun<'_> {
    type Item = ReceiverEvent<'r>;
    type IntoIter = DurableEvents<'r>;

    fn into_iter(self) -> DurableEvents<'r> {
        self.iter()
    }
}

impl Drop for DurableRun<'_> {
    fn drop(&mut self) {
        let count = self.yielded.get();
        if let Some(receiver) = &mut self.receiver {
            let events = (0..count).filter_map(|index| self.held.get(index));
            for (source, next) in events.filter_map(|event| position_after(&event)) {
                receiver.consumed(source, next, self.now);
            }
        }
        self.held.advance(count);
    }
}

/// Iterator over the events of a run. One that is forgotten has yielded nothing.
#[derive(Debug)]
pub struct DurableEvents<'r> {
    held: &'r HeldEvents,
    limit: usize,
    next: usize,
    yielded: &'r Cell<usize>,
}

impl<'r> Iterator for DurableEvents<'r> {
    type Item = ReceiverEvent<'r>;

    fn next(&mut self) -> Option<ReceiverEvent<'r>> {
        let event = self.held.get(self.next).filter(|_| self.next < self.limit)?;
        self.next += 1;
        Some(event)
    }
}

impl Drop for DurableEvents<'_> {
    fn drop(&mut self) {
        self.yielded.set(self.yielded.get().max(self.next));
    }
}
