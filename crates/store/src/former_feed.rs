//! A subscription whose place another has taken.

use lanecast_transport::{Event, Subscribe};

/// Most events that are read of one. More than that lie unread in no window; those that go on to
/// come reach the new subscription as well.
const EVENTS_MAX: usize = 1 << 18;

/// A subscription that a publisher has evicted, until all that lay unread in it was read: the ends
/// of other sessions are told nowhere else.
#[derive(Debug)]
pub(crate) struct FormerFeed<S> {
    subscriber: S,
    /// Events that may still be read.
    left: usize,
}

impl<S: Subscribe> FormerFeed<S> {
    pub(crate) const fn new(subscriber: S) -> Self {
        Self { subscriber, left: EVENTS_MAX }
    }

    /// Reads at most `limit` events; returns the amount of work, 0 if everything was read and the
    /// feed can go.
    pub(crate) fn poll(&mut self, limit: usize, handler: impl FnMut(Event<'_>)) -> usize {
        if self.left == 0 {
            return 0;
        }
        let work = self.subscriber.poll(limit, handler);
        self.left = self.left.saturating_sub(work);
        work
    }
}
