//! A run of events over shared memory: messages of one ring, read in place and passed by the drop.
//!
//! Borrows one image, on the subscriber's thread. The ring reader stays before the run's first
//! message while the run is held, so the publisher finds the cursor there and waits; iterators step
//! over the ring with a walk of their own.

use crate::image::Image;
use crate::numbered_stream::RUN_MESSAGES_MAX;
use crate::run_progress::{Pending, Progress};
use lanecast_base::Position;
use lanecast_transport::{Event, Run};
use std::cell::Cell;

/// A run of events over shared memory, all of one publisher: see [`Run`].
///
/// Made by [`Subscribe::take`](lanecast_transport::Subscribe::take). It covers at most a quarter of
/// the ring, so that the publisher can write the next messages meanwhile. Of a publisher that
/// evicts stalled subscribers it holds copies: at most 1,024 messages and, if several, 64 KiB.
#[must_use = "a run that is dropped at once consumes nothing"]
#[derive(Debug)]
pub struct ShmRun<'a> {
    /// `None` for a run without events.
    source: Option<Source<'a>>,
}

/// The events of a run, and the progress of its iterators.
#[derive(Debug)]
struct Source<'a> {
    image: &'a mut Image,
    pending: Pending,
    limit: usize,
    /// Position where the messages end.
    end: Cell<Position>,
    /// Up to the last event that an iterator yielded.
    yielded: Cell<Progress>,
}

impl<'a> ShmRun<'a> {
    pub(crate) const EMPTY: Self = Self { source: None };

    /// A run of at most `limit` events of `image`, which are `pending`.
    #[inline]
    pub(crate) fn new(image: &'a mut Image, pending: Pending, limit: usize) -> Self {
        let limit = limit.min(RUN_MESSAGES_MAX);
        let (start, end) = image.run_range();
        let (end, yielded) = (Cell::new(end), Cell::new(start));
        Self { source: Some(Source { image, pending, limit, end, yielded }) }
    }
}

impl Run for ShmRun<'_> {
    type Events<'r>
        = ShmEvents<'r>
    where
        Self: 'r;

    #[inline]
    fn iter(&self) -> ShmEvents<'_> {
        let Some(source) = &self.source else { return ShmEvents { inner: None } };
        let (progress, _) = source.image.run_range();
        let (left, end) = (source.limit, source.end.get());
        ShmEvents { inner: Some(Events { source, left, end, progress }) }
    }
}

impl<'r> IntoIterator for &'r ShmRun<'_> {
    type Item = Event<'r>;
    type IntoIter = ShmEvents<'r>;

    #[inline]
    fn into_iter(self) -> ShmEvents<'r> {
        self.iter()
    }
}

impl Drop for ShmRun<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(source) = &mut self.source {
            source.image.pass_run(source.pending, source.yielded.get());
        }
    }
}

/// Iterator over the events of a [`ShmRun`].
#[derive(Debug)]
pub struct ShmEvents<'r> {
    inner: Option<Events<'r>>,
}

#[derive(Debug)]
struct Events<'r> {
    source: &'r Source<'r>,
    /// Events until the run's limit.
    left: usize,
    end: Position,
    progress: Progress,
}

impl<'r> Iterator for ShmEvents<'r> {
    type Item = Event<'r>;

    #[inline(always)]
    fn next(&mut self) -> Option<Event<'r>> {
        let events = self.inner.as_mut()?;
        if events.left == 0 {
            return None;
        }
        let image = &*events.source.image;
        let event = match events.source.pending {
            Pending::InPlace => image.message_at(&mut events.progress, events.end),
            other => image.event_at(other, &mut events.progress),
        };
        if event.is_some() {
            events.left -= 1;
        } else {
            // The run ends here, for this iterator and for all later ones.
            events.left = 0;
            events.source.end.set(events.progress.walk.at());
        }
        event
    }
}

impl Drop for Events<'_> {
    #[inline]
    fn drop(&mut self) {
        // Once for all events: only the run's drop reads it, also during a panic.
        if self.progress.is_past(&self.source.yielded.get()) {
            self.source.yielded.set(self.progress);
        }
    }
}
