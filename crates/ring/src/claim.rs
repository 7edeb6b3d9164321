//! Room for values, taken before they are written.

use crate::producer::Producer;
use core::ops::{Deref, DerefMut};

/// Room for some values, written in place.
///
/// Each holds what was there before. Dropped without [`commit`](Self::commit), none of them was
/// ever published.
#[derive(Debug)]
#[must_use = "without `commit` it was never there"]
pub struct Claim<'a, T> {
    producer: &'a mut Producer<T>,
    count: usize,
}

impl<'a, T> Claim<'a, T> {
    #[inline(always)]
    pub(crate) const fn new(producer: &'a mut Producer<T>, count: usize) -> Self {
        Self { producer, count }
    }

    /// Publishes all values, in one step.
    #[inline(always)]
    pub fn commit(self) {
        let count = self.count;
        self.commit_first(count);
    }

    /// Publishes the first `count` values (at most all), in one step; gives the rest back.
    #[inline(always)]
    pub fn commit_first(self, count: usize) {
        self.producer.pass(count.min(self.count) as u64);
    }
}

impl<T> Deref for Claim<'_, T> {
    type Target = [T];
    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: the slots lie before the producer's limit: they are this claim's alone.
        unsafe { self.producer.line().slots.read(self.producer.at, self.count) }
    }
}

impl<T> DerefMut for Claim<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as for `deref`.
        unsafe { self.producer.line().slots.write(self.producer.at, self.count) }
    }
}
