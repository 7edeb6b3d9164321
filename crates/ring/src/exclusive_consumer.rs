//! Exclusive consumer: no other consumer reads beside it, so it may change and take values.

use crate::consumer::Consumer;
use core::ops::Deref;

/// Most values that [`ExclusiveConsumer::pop`] takes before it releases them.
const RELEASE_EVERY: u64 = 64;

/// A consumer without others beside it: it may change values, and take them out.
///
/// It has all calls of a [`Consumer`].
#[derive(Debug)]
pub struct ExclusiveConsumer<T> {
    // Never lent mutably: it could be swapped for one that is not exclusive.
    pub(crate) consumer: Consumer<T>,
    release_every: u64,
}

impl<T> ExclusiveConsumer<T> {
    pub(crate) fn new(consumer: Consumer<T>) -> Self {
        let release_every = RELEASE_EVERY.min(consumer.ring.slots.capacity().div_ceil(4));
        Self { consumer, release_every }
    }

    /// As [`Consumer::drain`].
    #[inline(always)]
    pub fn drain(&mut self, max: usize, handle: impl FnMut(&[T])) -> usize {
        self.consumer.drain(max, handle)
    }

    /// As [`Consumer::wait`].
    #[inline(always)]
    pub fn wait(&mut self, work: usize) {
        self.consumer.wait(work);
    }

    /// As [`Consumer::drain`], with slices that may be changed or emptied.
    #[inline(always)]
    pub fn drain_mut(&mut self, max: usize, mut handle: impl FnMut(&mut [T])) -> usize {
        let count = self.consumer.available(max);
        self.consumer.each_run(count, |consumer, at, run| {
            // SAFETY: the run lies between the head and the limit: the producer does not write
            // there, and no other consumer reads there, because this one is exclusive.
            handle(unsafe { consumer.ring.slots.write(at, run) });
        })
    }

    /// Takes the next value, leaving the default in its slot; `None` if the ring is empty.
    ///
    /// Slots are released to the producer by the dozen, and once the ring is empty.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<T>
    where
        T: Default,
    {
        if !self.consumer.has_one(self.release_every) {
            return None;
        }
        // SAFETY: the slot lies between the head and the limit, and this consumer is exclusive.
        let slot = unsafe { self.consumer.ring.slots.write(self.consumer.at, 1) };
        self.consumer.at += 1;
        Some(core::mem::take(&mut slot[0]))
    }

    /// As [`pop`](Self::pop), but leaves the value in its slot.
    #[inline(always)]
    pub fn pop_copy(&mut self) -> Option<T>
    where
        T: Copy,
    {
        if !self.consumer.has_one(self.release_every) {
            return None;
        }
        // SAFETY: the slot lies between the head and the limit, where the producer does not write.
        let slot = unsafe { self.consumer.ring.slots.read(self.consumer.at, 1) };
        let value = slot[0];
        self.consumer.at += 1;
        Some(value)
    }
}

impl<T> Deref for ExclusiveConsumer<T> {
    type Target = Consumer<T>;
    fn deref(&self) -> &Consumer<T> {
        &self.consumer
    }
}

impl<T> AsRef<Consumer<T>> for ExclusiveConsumer<T> {
    fn as_ref(&self) -> &Consumer<T> {
        &self.consumer
    }
}
