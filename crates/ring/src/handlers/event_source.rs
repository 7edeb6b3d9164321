//! What handlers are fed from, and the rings that offer it.

use crate::consumer::Consumer;
use crate::error::BuildError;
use crate::lanes::Lanes;
use crate::producer_lane::RingBuffer;
use crate::worker::Worker;
use std::sync::Arc;

/// An end that a handler's thread reads from.
pub trait EventSource<T>: Send {
    /// Hands over what is there, in runs, each with a word whether it is the last one for now;
    /// `handle` returns how many of the run it is done with, fewer than all if it wants no more.
    /// Returns how many were done with.
    fn take(&mut self, handle: &mut dyn FnMut(&[T], bool) -> usize) -> usize;

    /// Waits by the ring's strategy after a round that did `work`; not for long if `stop` holds.
    fn wait(&mut self, work: usize, stop: &dyn Fn() -> bool);

    /// Whether the producers are gone and everything is taken.
    fn is_closed(&self) -> bool;
}

impl<T: Send + Sync> EventSource<T> for Consumer<T> {
    fn take(&mut self, handle: &mut dyn FnMut(&[T], bool) -> usize) -> usize {
        self.drain_while(handle)
    }

    fn wait(&mut self, work: usize, stop: &dyn Fn() -> bool) {
        self.wait_unless(work, stop);
    }

    fn is_closed(&self) -> bool {
        self.is_closed()
    }
}

impl<T: Send + Sync> EventSource<T> for Lanes<Consumer<T>> {
    fn take(&mut self, handle: &mut dyn FnMut(&[T], bool) -> usize) -> usize {
        self.drain_while(handle)
    }

    fn wait(&mut self, work: usize, stop: &dyn Fn() -> bool) {
        self.wait_by(work, |lanes| lanes.sleep_unless(stop));
    }

    fn is_closed(&self) -> bool {
        self.is_closed()
    }
}

impl<T: Send + Sync> EventSource<T> for Worker<T> {
    /// One at a time: what a worker has claimed and does not handle, because it was halted, would
    /// be nobody's.
    fn take(&mut self, handle: &mut dyn FnMut(&[T], bool) -> usize) -> usize {
        self.take(1, |values| {
            handle(values, true);
        })
    }

    fn wait(&mut self, work: usize, stop: &dyn Fn() -> bool) {
        self.wait_unless(work, stop);
    }

    fn is_closed(&self) -> bool {
        self.is_closed()
    }
}

/// A ring that can be given handlers: [`Rings`] and [`MultiRings`].
pub trait HandlerRing<T>: Sized {
    /// What a handler reads from.
    type End: EventSource<T> + 'static;
    /// The producer, or all of them.
    type Producers;

    /// Another end, which follows `others`.
    ///
    /// # Errors
    /// As for [`Rings::after`].
    fn add(&mut self, others: &[&Self::End]) -> Result<Self::End, BuildError>;

    /// Ends that share the work, and follow `others`.
    ///
    /// # Errors
    /// As for [`Rings::workers_after`].
    fn share(&mut self, count: usize, others: &[&Self::End]) -> Result<Vec<Worker<T>>, BuildError>;

    /// Completes the ring; also gives what ends it.
    ///
    /// # Errors
    /// As for [`Rings::producer`].
    fn complete(self) -> Result<(Self::Producers, Box<dyn RingControl>), BuildError>;
}

/// A ring, as those see it who end it.
pub trait RingControl: Send + Sync {
    /// Closes it to producers.
    fn stop_producer(&self);
    /// Wakes everybody who waits for anybody, so that they look again.
    fn wake_all(&self);
}

/// Every producer's ring.
pub(crate) struct RingSet<T>(pub(crate) Vec<Arc<RingBuffer<T>>>);

impl<T: Send + Sync> RingControl for RingSet<T> {
    fn stop_producer(&self) {
        self.0.iter().for_each(|line| line.stop_producer());
    }

    fn wake_all(&self) {
        self.0.iter().for_each(|line| line.wake_all());
    }
}
