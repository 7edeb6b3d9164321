//! A run of events over the network: deliveries of the subscriber's queue, in place.
//!
//! Borrows the subscriber's queue, on the subscriber's thread. The queue, and the read buffer that
//! its messages lie in, change only when the run is dropped; the conductor may receive meanwhile.

use crate::delivery_queue::{DeliveryQueue, Progress};
use crate::sessions_end::SessionsEnd;
use lanecast_base::clock::Clock;
use lanecast_protocol::receiver::Delivery;
use lanecast_transport::{Event, Gap, Lease, Message, Run, Stream};
use lanecast_wire::net::Items;
use std::cell::Cell;
use std::fmt;

/// A run of events over the network, from one read of the sockets: see [`Run`].
///
/// Made by [`Subscribe::take`](lanecast_transport::Subscribe::take). Publishers learn of the
/// consumption when it is dropped.
#[must_use = "a run that is dropped at once consumes nothing"]
pub struct NetRun<'a> {
    guard: PollGuard<'a>,
    limit: usize,
    /// Up to the last event that an iterator yielded.
    yielded: Cell<Progress>,
}

/// Reports consumption to the publishers at the end of a poll or run, also during a panic:
/// deliveries that the application got count as consumed, and publishers wait for that.
pub(crate) struct PollGuard<'a> {
    pub(crate) sessions: &'a mut SessionsEnd,
    pub(crate) queue: &'a mut DeliveryQueue,
    pub(crate) clock: &'a Clock,
    /// Whether something was delivered.
    pub(crate) delivered: bool,
}

impl Drop for PollGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        // An idle poll and an untouched run report nothing.
        if !self.delivered {
            return;
        }
        // No second read of the sockets here: the application may want to reply first. But its
        // next poll may be far off, and publishers wait for the consumption of this one.
        let (is_empty, clock) = (self.queue.is_empty(), self.clock);
        self.sessions.finish_poll(|| clock.ns(clock.ticks()), is_empty);
    }
}

impl<'a> NetRun<'a> {
    #[inline]
    pub(crate) const fn new(guard: PollGuard<'a>, limit: usize) -> Self {
        let yielded = Cell::new(guard.queue.progress());
        Self { guard, limit, yielded }
    }
}

impl Run for NetRun<'_> {
    type Events<'r>
        = NetEvents<'r>
    where
        Self: 'r;

    #[inline]
    fn iter(&self) -> NetEvents<'_> {
        let queue = &*self.guard.queue;
        let yielded = &self.yielded;
        let joins = matches!(queue.get(0), Some((Delivery::Joined { .. }, _)));
        let progress = queue.progress();
        NetEvents { queue, yielded, left: self.limit, joins, progress, items: None }
    }
}

impl<'r> IntoIterator for &'r NetRun<'_> {
    type Item = Event<'r>;
    type IntoIter = NetEvents<'r>;

    #[inline]
    fn into_iter(self) -> NetEvents<'r> {
        self.iter()
    }
}

impl Drop for NetRun<'_> {
    #[inline]
    fn drop(&mut self) {
        let yielded = self.yielded.get();
        if yielded != self.guard.queue.progress() {
            self.guard.queue.consume(yielded);
            self.guard.delivered = true;
        }
    }
}

impl fmt::Debug for NetRun<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NetRun").field("yielded", &self.yielded.get()).finish_non_exhaustive()
    }
}

/// Iterator over the events of a [`NetRun`].
pub struct NetEvents<'r> {
    queue: &'r DeliveryQueue,
    yielded: &'r Cell<Progress>,
    /// Events until the run's limit.
    left: usize,
    /// The run has joined events only: a stream is known by its number once its joined event has
    /// been consumed.
    joins: bool,
    progress: Progress,
    /// The messages of the delivery at `progress`.
    items: Option<RunItems<'r>>,
}

/// Messages of one delivery.
struct RunItems<'r> {
    items: Items<'r>,
    /// Bytes of all of them.
    length: usize,
    /// Number of the first one.
    first: u64,
    stream: &'r Stream,
}

impl<'r> Iterator for NetEvents<'r> {
    type Item = Event<'r>;

    #[inline]
    fn next(&mut self) -> Option<Event<'r>> {
        if self.left == 0 {
            return None;
        }
        loop {
            if let Some(RunItems { items, length, first, stream }) = &mut self.items {
                if let Some(item) = items.next() {
                    let number = first.wrapping_add(self.progress.messages);
                    self.progress.bytes = *length - items.rest().len();
                    self.progress.messages += 1;
                    self.left -= 1;
                    let message = Message::new(item.bytes, stream, number, Lease::FOR_GOOD);
                    return Some(Event::Message(message));
                }
                self.items = None;
                self.pass_delivery();
            }
            let Some(event) = self.next_delivery() else {
                self.left = 0;
                return None;
            };
            if let Some(event) = event {
                self.left -= 1;
                return Some(event);
            }
        }
    }
}

impl<'r> NetEvents<'r> {
    const fn pass_delivery(&mut self) {
        let deliveries = self.progress.deliveries + 1;
        self.progress = Progress { deliveries, bytes: 0, messages: 0 };
    }

    /// Goes on to the next delivery: `None` at the end of the run, and `Some(None)` if the
    /// delivery has no event of its own.
    #[inline]
    fn next_delivery(&mut self) -> Option<Option<Event<'r>>> {
        let queue = self.queue;
        let (delivery, joined) = queue.get(self.progress.deliveries)?;
        if matches!(delivery, Delivery::Joined { .. }) != self.joins {
            return None;
        }
        let stream = queue.stream_of(self.progress.deliveries);
        let event = match (delivery, stream) {
            (Delivery::Joined { .. }, _) => joined.map(Event::Joined),
            (Delivery::Message { number, bytes, .. }, Some(stream)) => {
                Some(Event::Message(Message::new(bytes, stream, *number, Lease::FOR_GOOD)))
            }
            (&Delivery::Lost { first, count, why, .. }, Some(stream)) => {
                Some(Event::Lost(Gap { stream, first, count, why }))
            }
            (Delivery::Left { why, .. }, Some(stream)) => Some(Event::Left(stream, *why)),
            (items, Some(stream)) => {
                let (first, items) = queue.items(items);
                let rest = items.get(self.progress.bytes..).unwrap_or_default();
                let (length, items) = (items.len(), Items::new(rest));
                self.items = Some(RunItems { items, length, first, stream });
                return Some(None);
            }
            (_, None) => None,
        };
        self.pass_delivery();
        Some(event)
    }
}

impl Drop for NetEvents<'_> {
    #[inline]
    fn drop(&mut self) {
        // Once for all events: only the run's drop reads it, also during a panic.
        let yielded = self.yielded.get().max(self.progress);
        self.yielded.set(yielded);
    }
}

impl fmt::Debug for NetEvents<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NetEvents").field("progress", &self.progress).finish_non_exhaustive()
    }
}
