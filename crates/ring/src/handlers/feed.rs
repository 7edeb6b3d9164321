//! What handlers are fed from, and the rings that offer it.

use super::post::Alarm;
use crate::consumer::Consumer;
use crate::error::BuildError;
use crate::lanes::Lanes;
use crate::line::Line;
use crate::multi::MultiRings;
use crate::producer::Producer;
use crate::rings::Rings;
use crate::worker::Worker;
use std::sync::Arc;

/// An end that a handler's thread reads from.
pub trait Feed<T>: Send {
    /// Hands over what is there, in runs, each with a word whether it is the last one for now;
    /// `handle` returns how many of the run it is done with, fewer than all if it wants no more.
    /// Returns how many were done with.
    fn take(&mut self, handle: &mut dyn FnMut(&[T], bool) -> usize) -> usize;

    /// Waits by the ring's strategy after a round that did `work`; not for long if `stop` holds.
    fn wait(&mut self, work: usize, stop: &dyn Fn() -> bool);

    /// Whether the producers are gone and everything is taken.
    fn is_closed(&self) -> bool;
}

impl<T: Send + Sync> Feed<T> for Consumer<T> {
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

impl<T: Send + Sync> Feed<T> for Lanes<Consumer<T>> {
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

impl<T: Send + Sync> Feed<T> for Worker<T> {
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
pub trait Plan<T>: Sized {
    /// What a handler reads from.
    type End: Feed<T> + 'static;
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
    fn complete(self) -> Result<(Self::Producers, Box<dyn Alarm>), BuildError>;
}

impl<T: Send + Sync + 'static> Plan<T> for Rings<T> {
    type End = Consumer<T>;
    type Producers = Producer<T>;

    fn add(&mut self, others: &[&Consumer<T>]) -> Result<Consumer<T>, BuildError> {
        self.after(others)
    }

    fn share(
        &mut self,
        count: usize,
        others: &[&Consumer<T>],
    ) -> Result<Vec<Worker<T>>, BuildError> {
        self.workers_after(count, others)
    }

    fn complete(self) -> Result<(Producer<T>, Box<dyn Alarm>), BuildError> {
        let producer = self.producer()?;
        let lines = Lines(vec![Arc::clone(&producer.room().line)]);
        Ok((producer, Box::new(lines)))
    }
}

impl<T: Send + Sync + 'static> Plan<T> for MultiRings<T> {
    type End = Lanes<Consumer<T>>;
    type Producers = Vec<Producer<T>>;

    fn add(&mut self, others: &[&Self::End]) -> Result<Self::End, BuildError> {
        self.after(others)
    }

    fn share(&mut self, count: usize, others: &[&Self::End]) -> Result<Vec<Worker<T>>, BuildError> {
        self.workers_after(count, others)
    }

    fn complete(self) -> Result<(Vec<Producer<T>>, Box<dyn Alarm>), BuildError> {
        let producers = self.producers()?;
        let lines = producers.iter().map(|producer| Arc::clone(&producer.room().line)).collect();
        Ok((producers, Box::new(Lines(lines))))
    }
}

/// Every producer's ring.
struct Lines<T>(Vec<Arc<Line<T>>>);

impl<T: Send + Sync> Alarm for Lines<T> {
    fn refuse(&self) {
        self.0.iter().for_each(|line| line.refuse());
    }

    fn wake_all(&self) {
        self.0.iter().for_each(|line| line.wake_all());
    }
}
