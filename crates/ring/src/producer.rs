//! The writing end of a ring.

use crate::error::{Closed, PushError};
use crate::gating::GatingCursors;
use crate::producer_barrier::ProducerBarrier;
use crate::producer_lane::RingBuffer;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;
use lanecast_base::WaitStrategy;
use std::sync::Arc;

/// The one writer of a ring.
///
/// Dropped, it publishes what is unpublished and ends the stream: consumers read what is there
/// and then see [`Consumer::is_closed`](crate::rings::Consumer::is_closed).
///
/// Keep it in a variable of the thread that publishes: the compiler then holds its position in a
/// register. Behind a reference each push waits for the last one's position to be stored.
pub struct Producer<T> {
    /// Where the next value goes.
    pub(crate) at: u64,
    /// Where [`push`](Self::push) has to look up from writing.
    turn: u64,
    published: u64,
    /// Values between two publications.
    stride: u64,
    // What follows is never handed out by reference to code that is not inlined, nor is anything
    // above: this is what lets the position live in a register.
    line: NonNull<RingBuffer<T>>,
    /// Owned; it owns the line.
    room: NonNull<ProducerBarrier<T>>,
}

// SAFETY: it owns what it points to, and values go to other threads, which read them in place.
unsafe impl<T: Send + Sync> Send for Producer<T> {}

impl<T> Producer<T> {
    pub(crate) fn new(
        line: Arc<RingBuffer<T>>,
        gates: GatingCursors,
        stride: u64,
        strategy: WaitStrategy,
    ) -> Self {
        let pointer = NonNull::from(&*line);
        let room = Box::leak(Box::new(ProducerBarrier::new(line, gates, strategy)));
        Self { at: 0, turn: 0, published: 0, stride, line: pointer, room: NonNull::from(room) }
    }

    #[inline(always)]
    pub(crate) fn line(&self) -> &RingBuffer<T> {
        // SAFETY: the room owns the line for as long as this producer lives.
        unsafe { self.line.as_ref() }
    }

    #[inline(always)]
    pub(crate) fn room(&self) -> &ProducerBarrier<T> {
        // SAFETY: it is this producer's own until it is dropped.
        unsafe { self.room.as_ref() }
    }

    #[inline(always)]
    fn room_mut(&mut self) -> &mut ProducerBarrier<T> {
        // SAFETY: as above.
        unsafe { self.room.as_mut() }
    }

    /// Publishes `value`, or gives it back if there is no room now.
    ///
    /// # Errors
    /// See [`PushError`].
    #[inline(always)]
    pub fn try_push(&mut self, value: T) -> Result<(), PushError<T>> {
        if self.at >= self.turn && !self.look_up() {
            return Err(if self.is_closed() {
                PushError::Closed(value)
            } else {
                PushError::Full(value)
            });
        }
        self.put(value);
        Ok(())
    }

    /// Publishes `value`, waiting for room by the ring's strategy.
    ///
    /// # Errors
    /// If all consumers are gone.
    #[inline(always)]
    pub fn push(&mut self, value: T) -> Result<(), Closed<T>> {
        if self.at >= self.turn && !self.wait() {
            return Err(Closed(value));
        }
        self.put(value);
        Ok(())
    }

    /// Room for up to `count` values side by side, to be written in place; `None` if there is
    /// none now.
    ///
    /// It may be fewer: as many as are free before the end of the memory.
    #[inline(always)]
    pub fn try_claim(&mut self, count: usize) -> Option<Claim<'_, T>> {
        if self.free() < count as u64 {
            self.flush();
            let at = self.at;
            self.room_mut().look(at);
        }
        let count = self.line().slots.run(self.at, self.free().min(count as u64));
        (count > 0).then(|| Claim::new(self, count))
    }

    /// As [`try_claim`](Self::try_claim), waiting for room for at least one value.
    ///
    /// # Errors
    /// If all consumers are gone.
    #[inline(always)]
    pub fn claim(&mut self, count: usize) -> Result<Claim<'_, T>, Closed<()>> {
        if self.free() < count as u64 && !self.wait_for_room() {
            return Err(Closed(()));
        }
        let count = self.line().slots.run(self.at, self.free().min(count as u64));
        Ok(Claim::new(self, count))
    }

    /// Publishes what a stride still holds back.
    #[inline(always)]
    pub fn flush(&mut self) {
        if self.stride != 1 && self.published != self.at {
            self.publish();
        }
    }

    /// How many values fit in the ring.
    pub fn capacity(&self) -> usize {
        self.line().slots.capacity() as usize
    }

    /// Whether all consumers are gone, as far as is known: it is looked up when there is no room.
    pub fn is_closed(&self) -> bool {
        self.room().is_closed
    }

    /// How many slots are free, as far as known.
    #[inline(always)]
    fn free(&self) -> u64 {
        self.room().limit.saturating_sub(self.at)
    }

    #[inline(always)]
    fn put(&mut self, value: T) {
        // SAFETY: the slot lies before the limit, so every consumer is done with it, and none
        // looks at it again before it is published.
        let slot = unsafe { self.line().slots.write(self.at, 1) };
        slot[0] = value;
        self.pass(1);
    }

    /// Counts `count` values as written and publishes them when the stride is full.
    #[inline(always)]
    pub(crate) fn pass(&mut self, count: u64) {
        self.at += count;
        let line = self.line();
        if self.stride == 1 {
            line.tail.publish(self.at);
        } else {
            line.set_written(self.at);
            if self.at - self.published >= self.stride || line.tail.has_sleepers() {
                self.publish();
            }
        }
    }

    #[inline(always)]
    fn publish(&mut self) {
        self.published = self.at;
        self.line().tail.publish(self.at);
    }

    /// Whether there is room for a value after all.
    #[inline(always)]
    fn look_up(&mut self) -> bool {
        let at = self.at;
        if at >= self.room().limit {
            self.flush();
        }
        self.turn = self.room_mut().next(at);
        at < self.turn
    }

    /// As [`look_up`](Self::look_up), but waits for room; false if all consumers are gone.
    #[inline(always)]
    fn wait(&mut self) -> bool {
        if self.at >= self.room().limit { self.wait_for_room() } else { self.look_up() }
    }

    /// Looks for room until there is some; false if all consumers are gone.
    #[inline(always)]
    fn wait_for_room(&mut self) -> bool {
        self.flush();
        let at = self.at;
        self.turn = self.room_mut().wait(at);
        at < self.turn
    }
}

impl<T> Drop for Producer<T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.flush();
        close(self.room, self.at);
    }
}

/// Ends the stream at `at`, and gives the room back.
#[inline(never)]
fn close<T>(room: NonNull<ProducerBarrier<T>>, at: u64) {
    // SAFETY: the producer that owned it is being dropped, and made it from a box.
    let room = unsafe { Box::from_raw(room.as_ptr()) };
    room.line.close(at);
}

impl<T> core::fmt::Debug for Producer<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Producer")
            .field("at", &self.at)
            .field("stride", &self.stride)
            .field("limit", &self.room().limit)
            .field("is_closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}

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
