//! The time of a run, its random numbers, and its future events.

use super::event::{Event, SessionChange};
use super::scenario::StoreScenario;
use crate::event_queue::EventQueue;
use crate::rng::{Millionths, SimRng};
use lanecast_protocol::{MILLISECOND, Nanos};
use std::collections::HashMap;

/// Longest time until the death of a publisher shows.
const SILENCE: Nanos = 50 * MILLISECOND;

/// A one-way connection, by the numbers of its ends.
pub(super) type Way = (u64, u64);

/// Present and future of a run.
#[derive(Debug)]
pub(super) struct Timeline {
    pub(super) now: Nanos,
    /// All draws of a run, in the order of its events.
    pub(super) rng: SimRng,
    queue: EventQueue<Event>,
    /// Arrival of the last frame on each way: frames keep their order.
    arrivals: HashMap<Way, Nanos>,
    loss: Millionths,
    delay: Nanos,
    frames: u64,
    lost: u64,
}

impl Timeline {
    /// The time 0 of a scenario.
    pub(super) fn new(scenario: &StoreScenario, rng: SimRng) -> Self {
        Self {
            now: 0,
            rng,
            queue: EventQueue::new(),
            arrivals: HashMap::new(),
            loss: scenario.loss,
            delay: scenario.delay,
            frames: 0,
            lost: 0,
        }
    }

    /// Adds an event.
    pub(super) fn add(&mut self, at: Nanos, event: Event) {
        self.queue.add(at, event);
    }

    /// Adds an event of this moment, behind those that are there.
    pub(super) fn add_now(&mut self, event: Event) {
        self.queue.add(self.now, event);
    }

    /// Adds an event after a random time of up to `most`, and a nanosecond.
    pub(super) fn add_within(&mut self, most: Nanos, event: Event) {
        let at = self.now + 1 + self.rng.up_to(most);
        self.queue.add(at, event);
    }

    /// Adds an event at a random time up to `end`.
    pub(super) fn add_by(&mut self, end: Nanos, event: Event) {
        let at = self.rng.up_to(end);
        self.queue.add(at, event);
    }

    /// Adds an event that a machine wants at a time, which may have passed.
    pub(super) fn add_due(&mut self, at: Nanos, event: Event) {
        self.queue.add(at.max(self.now + 1), event);
    }

    /// Goes on to the next event until `end`, or to `end` if there is none.
    pub(super) fn take(&mut self, end: Nanos) -> Option<Event> {
        let is_next = self.queue.next_at().is_some_and(|at| at <= end);
        let next = if is_next { self.queue.take() } else { None };
        self.now = next.as_ref().map_or(end, |(at, _)| *at);
        next.map(|(_, event)| event)
    }

    /// Nothing more is lost by chance.
    pub(super) const fn end_loss(&mut self) {
        self.loss = 0;
    }

    /// Frames that were sent, and those of them that were lost.
    pub(super) const fn counts(&self) -> (u64, u64) {
        (self.frames, self.lost)
    }

    /// Arrival of a frame that is sent now; `None` if it is lost, as all are on a way that is cut.
    pub(super) fn arrival(&mut self, way: Way, is_cut: bool) -> Option<Nanos> {
        self.frames += 1;
        if is_cut || self.rng.happens(self.loss) {
            self.lost += 1;
            return None;
        }
        let at = self.now + 1 + self.rng.up_to(self.delay);
        Some(self.behind(way, at))
    }

    /// Time at which a change of a session shows that happens now, behind all that came on its way
    /// before.
    pub(super) fn after_messages(&mut self, way: Way, change: SessionChange) -> Nanos {
        let silence = if change == SessionChange::Left { self.rng.up_to(SILENCE) } else { 0 };
        let at = self.now + 1 + silence + self.rng.up_to(self.delay);
        self.behind(way, at)
    }

    fn behind(&mut self, way: Way, at: Nanos) -> Nanos {
        let last = self.arrivals.entry(way).or_default();
        *last = (*last + 1).max(at);
        *last
    }
}

/// The way of a session's live messages to a store.
pub(super) const fn live_to_store(session: u64, store: usize) -> Way {
    (session, (1 << 32) + store as u64)
}

/// The way of a session's live messages to a receiver.
pub(super) const fn live_to_receiver(session: u64, receiver: usize) -> Way {
    (session, (1 << 33) + receiver as u64)
}
