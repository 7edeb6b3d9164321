//! A run of matching messages, or of other events, of a subscriber with a filter.
//!
//! Borrows the subscriber, on its thread. Runs of the transport pass through: matching messages
//! stay where they are. The events of a run cannot change the negotiation of the filter, because
//! they may come again: each run ends before an answer of a publisher or a change of a stream. One
//! that stands first is noted when the run is taken, and the events it means are queued.

use crate::negotiation::Negotiations;
use crate::queued_event::QueuedEvent;
use crate::selection::Selection;
use lanecast_transport::{Event, Run};
use std::cell::Cell;
use std::collections::VecDeque;
use std::fmt;

/// A run of a subscriber with a filter over `R`, the transport's run: see [`Run`].
#[must_use = "a run that is dropped at once consumes nothing"]
#[derive(Debug)]
pub struct FilteredRun<'a, R> {
    inner: Inner<'a, R>,
}

#[derive(Debug)]
enum Inner<'a, R> {
    Messages { run: R, state: &'a Negotiations, skip: usize },
    Queue(QueueRun<'a>),
}

/// A run of queued events.
#[derive(Debug)]
struct QueueRun<'a> {
    queue: &'a mut VecDeque<QueuedEvent>,
    limit: usize,
    /// Number of events that an iterator yielded.
    yielded: Cell<usize>,
}

impl Drop for QueueRun<'_> {
    fn drop(&mut self) {
        self.queue.drain(..self.yielded.get());
    }
}

impl<'a, R: Run> FilteredRun<'a, R> {
    /// A run of at most `limit` queued events.
    pub(crate) fn of_queue(queue: &'a mut VecDeque<QueuedEvent>, limit: usize) -> Self {
        let limit = limit.min(queue.len());
        Self { inner: Inner::Queue(QueueRun { queue, limit, yielded: Cell::new(0) }) }
    }

    /// The matching messages of `run`, or the events before its first one.
    #[inline]
    pub(crate) fn new(
        run: R,
        state: &'a mut Negotiations,
        queue: &'a mut VecDeque<QueuedEvent>,
        limit: usize,
    ) -> Self {
        let (mut skip, mut events) = (0, run.iter());
        while queue.is_empty()
            && let Some(event) = events.next()
        {
            match state.select(event) {
                Selection::Message(_) => {
                    // Forgotten with the message: the run has yielded the events before it.
                    std::mem::forget(events);
                    yield_first(&run, skip);
                    return Self { inner: Inner::Messages { run, state, skip } };
                }
                Selection::Skipped => {}
                Selection::Other => {
                    state.note(event, queue);
                }
            }
            skip += 1;
        }
        drop(events);
        // The drop of the transport's run passes the events that were noted or skipped.
        drop(run);
        Self::of_queue(queue, limit)
    }
}

/// Makes `run` yield its first `count` events.
fn yield_first<R: Run>(run: &R, count: usize) {
    if count > 0 {
        run.iter().nth(count - 1);
    }
}

impl<R: Run> Run for FilteredRun<'_, R> {
    type Events<'r>
        = FilteredEvents<'r, R>
    where
        Self: 'r;

    #[inline]
    fn iter(&self) -> FilteredEvents<'_, R> {
        let inner = match &self.inner {
            Inner::Messages { run, state, skip } => {
                let mut events = run.iter();
                if *skip > 0 {
                    events.nth(*skip - 1);
                }
                let events = Some(events);
                Events::Messages(MessageEvents { run, state, events, passed: *skip })
            }
            Inner::Queue(run) => Events::Queue { run, next: 0 },
        };
        FilteredEvents { inner }
    }
}

impl<'r, R: Run> IntoIterator for &'r FilteredRun<'_, R> {
    type Item = Event<'r>;
    type IntoIter = FilteredEvents<'r, R>;

    #[inline]
    fn into_iter(self) -> FilteredEvents<'r, R> {
        self.iter()
    }
}

/// Iterator over the events of a [`FilteredRun`].
pub struct FilteredEvents<'r, R: Run + 'r> {
    inner: Events<'r, R>,
}

enum Events<'r, R: Run + 'r> {
    Messages(MessageEvents<'r, R>),
    Queue { run: &'r QueueRun<'r>, next: usize },
}

struct MessageEvents<'r, R: Run + 'r> {
    run: &'r R,
    state: &'r Negotiations,
    /// `None` once another event than a message has ended the run.
    events: Option<R::Events<'r>>,
    /// Number of the transport's events before the next one.
    passed: usize,
}

impl<'r, R: Run> MessageEvents<'r, R> {
    #[inline]
    fn next(&mut self) -> Option<Event<'r>> {
        loop {
            match self.state.select(self.events.as_mut()?.next()?) {
                Selection::Message(message) => {
                    self.passed += 1;
                    return Some(Event::Message(message));
                }
                Selection::Skipped => self.passed += 1,
                Selection::Other => {
                    // Forgotten with the event, which the next run begins with.
                    std::mem::forget(self.events.take());
                    return None;
                }
            }
        }
    }
}

impl<R: Run> Drop for MessageEvents<'_, R> {
    #[inline]
    fn drop(&mut self) {
        if self.events.is_none() {
            yield_first(self.run, self.passed);
        }
    }
}

impl<'r, R: Run> Iterator for FilteredEvents<'r, R> {
    type Item = Event<'r>;

    #[inline]
    fn next(&mut self) -> Option<Event<'r>> {
        match &mut self.inner {
            Events::Messages(events) => events.next(),
            Events::Queue { run, next } => {
                let event = run.queue.range(*next..run.limit).next()?;
                *next += 1;
                run.yielded.set(run.yielded.get().max(*next));
                Some(event.get())
            }
        }
    }
}

impl<R: Run> fmt::Debug for FilteredEvents<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FilteredEvents").finish_non_exhaustive()
    }
}
