//! The producer: the writing end of a ring, and its claims.

use crate::cursor::Cursor;
use crate::error::{Closed, PushError};
use crate::gating::GatingCursors;
use crate::producer_barrier::ProducerBarrier;
use crate::producer_lane::RingBuffer;
use crate::slots::RawSlots;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;
use lanecast_base::WaitStrategy;
use std::sync::Arc;

/// The only writer of a ring.
///
/// A drop publishes values that a stride holds back and ends the stream: consumers read the rest
/// and then see [`Consumer::is_closed`](crate::rings::Consumer::is_closed).
///
/// Keep it in a local variable of the publishing thread: the compiler then holds its position in a
/// register. Behind a reference each push waits until the last position is stored.
pub struct Producer<T> {
    /// Position of the next value.
    pub(crate) at: u64,
    /// Position at which [`push`](Self::push) asks the barrier again.
    check_at: u64,
    published: u64,
    /// Values between two publications.
    stride: u64,
    // No reference to any field reaches code that is not inlined, so that the position can live in
    // a register.
    /// The ring's slots and tail, so that a push loads them from here.
    slots: RawSlots<T>,
    tail: NonNull<Cursor>,
    ring: NonNull<RingBuffer<T>>,
    /// Owned; owns the ring.
    barrier: NonNull<ProducerBarrier<T>>,
}

// SAFETY: the producer owns the pointed-to values; other threads read the ring's values in place.
unsafe impl<T: Send + Sync> Send for Producer<T> {}

impl<T> Producer<T> {
    pub(crate) fn new(
        ring: Arc<RingBuffer<T>>,
        gates: GatingCursors,
        stride: u64,
        strategy: WaitStrategy,
    ) -> Self {
        let (slots, tail) = (ring.slots.raw(), NonNull::from(&*ring.tail));
        let pointer = NonNull::from(&*ring);
        let barrier = Box::leak(Box::new(ProducerBarrier::new(ring, gates, strategy)));
        Self {
            at: 0,
            check_at: 0,
            published: 0,
            stride,
            slots,
            tail,
            ring: pointer,
            barrier: NonNull::from(barrier),
        }
    }

    #[inline(always)]
    pub(crate) fn ring(&self) -> &RingBuffer<T> {
        // SAFETY: the barrier owns it for as long as this producer lives.
        unsafe { self.ring.as_ref() }
    }

    #[inline(always)]
    fn tail(&self) -> &Cursor {
        // SAFETY: the ring's, which lives as long as this producer.
        unsafe { self.tail.as_ref() }
    }

    #[inline(always)]
    pub(crate) fn barrier(&self) -> &ProducerBarrier<T> {
        // SAFETY: it is this producer's own until it is dropped.
        unsafe { self.barrier.as_ref() }
    }

    #[inline(always)]
    fn barrier_mut(&mut self) -> &mut ProducerBarrier<T> {
        // SAFETY: as above.
        unsafe { self.barrier.as_mut() }
    }

    /// Publishes `value`, or returns it if the ring is full.
    ///
    /// # Errors
    /// See [`PushError`].
    #[inline(always)]
    pub fn try_push(&mut self, value: T) -> Result<(), PushError<T>> {
        if self.at >= self.check_at && !self.next_turn() {
            return Err(if self.is_closed() {
                PushError::Closed(value)
            } else {
                PushError::Full(value)
            });
        }
        self.put(value);
        Ok(())
    }

    /// Publishes `value`, waiting for space by the ring's strategy.
    ///
    /// # Errors
    /// If all consumers are gone.
    #[inline(always)]
    pub fn push(&mut self, value: T) -> Result<(), Closed<T>> {
        if self.at >= self.check_at && !self.wait() {
            return Err(Closed(value));
        }
        self.put(value);
        Ok(())
    }

    /// Claims up to `count` contiguous slots, to be written in place; `None` if the ring is full.
    ///
    /// The claim may be smaller: as many slots as are free before the end of the memory.
    #[inline(always)]
    pub fn try_claim(&mut self, count: usize) -> Option<Claim<'_, T>> {
        if self.free() < count as u64 {
            self.flush();
            let at = self.at;
            self.barrier_mut().update(at);
        }
        let count = self.slots.run(self.at, self.free().min(count as u64));
        (count > 0).then(|| Claim::new(self, count))
    }

    /// As [`try_claim`](Self::try_claim), waiting for at least one slot.
    ///
    /// # Errors
    /// If all consumers are gone.
    #[inline(always)]
    pub fn claim(&mut self, count: usize) -> Result<Claim<'_, T>, Closed<()>> {
        if self.free() < count as u64 && !self.wait_for_space() {
            return Err(Closed(()));
        }
        let count = self.slots.run(self.at, self.free().min(count as u64));
        Ok(Claim::new(self, count))
    }

    /// Publishes the values that a stride holds back.
    #[inline(always)]
    pub fn flush(&mut self) {
        if self.stride != 1 && self.published != self.at {
            self.publish();
        }
    }

    /// Number of slots of the ring.
    pub fn capacity(&self) -> usize {
        self.slots.capacity() as usize
    }

    /// Whether all consumers are gone, as of the last time that the ring was full.
    pub fn is_closed(&self) -> bool {
        self.barrier().is_closed
    }

    /// Number of slots known to be free.
    #[inline(always)]
    fn free(&self) -> u64 {
        self.barrier().limit.saturating_sub(self.at)
    }

    #[inline(always)]
    fn put(&mut self, value: T) {
        // Loaded before the first store. With loads behind it pushes take up to twice the time on
        // AMD EPYC, by chance: the processor may hold back a load behind a store whose address it
        // does not know yet, and the address of the slot takes the position of the last push.
        let (slots, tail, at, stride) = (self.slots, self.tail, self.at, self.stride);
        // SAFETY: the slot lies before the limit: every consumer has released it, and none reads it
        // again before it is published.
        let slot = unsafe { slots.write(at, 1) };
        slot[0] = value;
        self.at = at + 1;
        if stride == 1 {
            // SAFETY: the ring's, which lives as long as this producer.
            unsafe { tail.as_ref() }.publish(at + 1);
        } else {
            self.hold_back();
        }
    }

    /// Counts `count` values as written and publishes them when the stride is full.
    #[inline(always)]
    fn pass(&mut self, count: u64) {
        self.at += count;
        if self.stride == 1 {
            self.tail().publish(self.at);
        } else {
            self.hold_back();
        }
    }

    /// Publishes what is written once the stride is full, or for consumers that sleep.
    #[inline(always)]
    fn hold_back(&mut self) {
        self.ring().set_written(self.at);
        if self.at - self.published >= self.stride || self.tail().has_sleepers() {
            self.publish();
        }
    }

    #[inline(always)]
    fn publish(&mut self) {
        self.published = self.at;
        self.tail().publish(self.at);
    }

    /// Asks the barrier for space; returns whether there is any.
    #[inline(always)]
    fn next_turn(&mut self) -> bool {
        let at = self.at;
        if at >= self.barrier().limit {
            self.flush();
        }
        self.check_at = self.barrier_mut().next(at);
        at < self.check_at
    }

    /// As [`next_turn`](Self::next_turn), but waits for room; false if all consumers are gone.
    #[inline(always)]
    fn wait(&mut self) -> bool {
        if self.at >= self.barrier().limit { self.wait_for_space() } else { self.next_turn() }
    }

    /// Waits until there is space; false if all consumers are gone.
    #[inline(always)]
    fn wait_for_space(&mut self) -> bool {
        self.flush();
        let at = self.at;
        self.check_at = self.barrier_mut().wait(at);
        at < self.check_at
    }
}

impl<T> Drop for Producer<T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.flush();
        close(self.barrier, self.at);
    }
}

/// Ends the stream at `at`, and frees the barrier.
#[inline(never)]
fn close<T>(barrier: NonNull<ProducerBarrier<T>>, at: u64) {
    // SAFETY: the producer that owned it is being dropped, and leaked it from a box.
    let barrier = unsafe { Box::from_raw(barrier.as_ptr()) };
    barrier.ring.close(at);
}

impl<T> core::fmt::Debug for Producer<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Producer")
            .field("at", &self.at)
            .field("stride", &self.stride)
            .field("limit", &self.barrier().limit)
            .field("is_closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}

/// Claimed slots, written in place.
///
/// Each slot holds its previous value. A drop without [`commit`](Self::commit) publishes none.
#[derive(Debug)]
#[must_use = "without `commit` nothing is published"]
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

    /// Publishes the first `count` values (at most all), in one step; discards the rest.
    #[inline(always)]
    pub fn commit_first(self, count: usize) {
        self.producer.pass(count.min(self.count) as u64);
    }
}

impl<T> Deref for Claim<'_, T> {
    type Target = [T];
    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: the slots lie before the producer's limit, so only this claim accesses them.
        unsafe { self.producer.slots.read(self.producer.at, self.count) }
    }
}

impl<T> DerefMut for Claim<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as for `deref`.
        unsafe { self.producer.slots.write(self.producer.at, self.count) }
    }
}

/// A ring of references that live long takes none that live shorter.
///
/// ```
/// use lanecast_ring::rings::Producer;
/// fn same(ring: Producer<&'static str>) -> Producer<&'static str> { ring }
/// ```
///
/// ```compile_fail
/// use lanecast_ring::rings::Producer;
/// fn narrowed<'a>(ring: Producer<&'static str>) -> Producer<&'a str> { ring }
/// ```
#[cfg(doctest)]
struct Invariance;
