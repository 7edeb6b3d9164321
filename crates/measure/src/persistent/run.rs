//! A run of events of a durable subscriber.

use super::queued_event::QueuedEvent;
use lanecast_transport::{Event, Run};
use std::cell::Cell;
use std::collections::VecDeque;

/// A run of copied events: stores hand out messages inside a call only.
#[must_use = "a run that is dropped at once consumes nothing"]
#[derive(Debug)]
pub struct StoreBackedRun<'a> {
    events: &'a mut VecDeque<QueuedEvent>,
    limit: usize,
    /// Most events that an iterator has yielded.
    yielded: Cell<usize>,
}

impl<'a> StoreBackedRun<'a> {
    pub(super) const fn new(events: &'a mut VecDeque<QueuedEvent>, limit: usize) -> Self {
        Self { events, limit, yielded: Cell::new(0) }
    }
}

impl Run for StoreBackedRun<'_> {
    type Events<'r>
        = StoreBackedEvents<'r>
    where
        Self: 'r;

    fn iter(&self) -> StoreBackedEvents<'_> {
        StoreBackedEvents {
            events: self.events,
            limit: self.limit,
            next: 0,
            yielded: &self.yielded,
        }
    }
}

impl Drop for StoreBackedRun<'_> {
    fn drop(&mut self) {
        self.events.drain(..self.yielded.get());
    }
}

/// Iterator over the events of a run.
#[derive(Debug)]
pub struct StoreBackedEvents<'r> {
    events: &'r VecDeque<QueuedEvent>,
    limit: usize,
    next: usize,
    yielded: &'r Cell<usize>,
}

impl<'r> Iterator for StoreBackedEvents<'r> {
    type Item = Event<'r>;

    fn next(&mut self) -> Option<Event<'r>> {
        let event = self.events.get(self.next).filter(|_| self.next < self.limit)?;
        self.next += 1;
        Some(event.event())
    }
}

impl Drop for StoreBackedEvents<'_> {
    fn drop(&mut self) {
        self.yielded.set(self.yielded.get().max(self.next));
    }
}
