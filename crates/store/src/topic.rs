//! A topic whose messages a store keeps, as its transport brings them.

use crate::former_feed::FormerFeed;
use lanecast_transport::{CloseReason, Event, Subscribe};

/// The live messages of a topic.
pub(crate) struct Topic<S> {
    pub(crate) subscriber: S,
    /// The subscriber before, which a publisher evicted, as long as it has unread events.
    pub(crate) former: Option<FormerFeed<S>>,
    /// A publisher evicted the subscriber, which is replaced at the end of the poll.
    pub(crate) was_evicted: bool,
}

impl<S: Subscribe> Topic<S> {
    pub(crate) const fn new(subscriber: S) -> Self {
        Self { subscriber, former: None, was_evicted: false }
    }

    /// Reads what lies unread in the subscriber before, and then the present one.
    pub(crate) fn poll(&mut self, limit: usize, mut handler: impl FnMut(Event<'_>)) -> usize {
        let mut work = 0;
        if let Some(former) = &mut self.former {
            work = former.poll(limit, &mut handler);
        }
        if work > 0 {
            return work;
        }
        self.former = None;
        let was_evicted = &mut self.was_evicted;
        self.subscriber.poll(limit, |event| {
            *was_evicted |= matches!(event, Event::Left(_, CloseReason::Evicted));
            handler(event);
        })
    }
}
