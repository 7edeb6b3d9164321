//! Event sources of handlers, and the interface of rings that provide them.

use crate::consumer::Consumer;
use crate::error::BuildError;
use crate::lanes::Lanes;
use crate::producer_lane::RingBuffer;
use crate::worker::Worker;
use std::sync::Arc;

/// A consumer or worker that a handler's thread reads from.
#[allow(unreachable_pub, reason = "a bound of a public trait, which older compilers do not see")]
pub trait EventSource<T>: Send {
    /// Passes the available messages to `handle` in runs, each with a flag whether it is the last
    /// one there is. `handle` returns the number that it has handled: fewer than all ends the call.
    /// Returns the number of messages handled.
    ///
    /// 0 means no message anywhere only after [`help_at_once`](Self::help_at_once).
    fn take(&mut self, handle: &mut dyn FnMut(&[T], bool) -> usize) -> usize;

    /// Lets the next [`take`](Self::take) look for messages that are left to other workers too: one
    /// of them may have been halted before it had handled its share.
    fn help_at_once(&mut self) {}

    /// Waits by the ring's strategy after a poll with `work` messages; not for long if `stop`
    /// holds.
    fn wait(&mut self, work: usize, stop: &dyn Fn() -> bool);

    /// Whether the producers are gone and all messages are taken.
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
    /// Takes one message at a time: messages claimed but not handled by a halted worker would be
    /// lost.
    fn take(&mut self, handle: &mut dyn FnMut(&[T], bool) -> usize) -> usize {
        self.take(1, |values| {
            handle(values, true);
        })
    }

    fn help_at_once(&mut self) {
        self.help_at_once();
    }

    fn wait(&mut self, work: usize, stop: &dyn Fn() -> bool) {
        self.wait_unless(work, stop);
    }

    fn is_closed(&self) -> bool {
        self.is_closed()
    }
}

/// A ring that accepts handlers: [`Rings`](crate::rings::Rings) and
/// [`MultiRings`](crate::rings::MultiRings).
pub trait HandlerRing<T>: Sized {
    /// Event source of a handler.
    type End: EventSource<T> + 'static;
    /// The producer, or all of them.
    type Producers;

    /// Adds an event source that follows `others`.
    ///
    /// # Errors
    /// As for [`Rings::after`].
    fn add(&mut self, others: &[&Self::End]) -> Result<Self::End, BuildError>;

    /// Adds workers that follow `others`.
    ///
    /// # Errors
    /// As for [`Rings::workers_after`].
    fn share(&mut self, count: usize, others: &[&Self::End]) -> Result<Vec<Worker<T>>, BuildError>;

    /// Completes the ring; also returns its control.
    ///
    /// # Errors
    /// As for [`Rings::producer`].
    fn complete(self) -> Result<(Self::Producers, Box<dyn RingControl>), BuildError>;
}

/// Control of a ring, to end its stream.
pub trait RingControl: Send + Sync {
    /// Stops the producers.
    fn stop_producer(&self);
    /// Wakes all waiting ends.
    fn wake_all(&self);
}

/// The rings of all producers.
pub(crate) struct RingSet<T>(pub(crate) Vec<Arc<RingBuffer<T>>>);

impl<T: Send + Sync> RingControl for RingSet<T> {
    fn stop_producer(&self) {
        self.0.iter().for_each(|ring| ring.stop_producer());
    }

    fn wake_all(&self) {
        self.0.iter().for_each(|ring| ring.wake_all());
    }
}
