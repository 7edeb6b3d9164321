//! The writing end of a ring.

use crate::claim::Claim;
use crate::error::{Closed, PushError};
use crate::gates::Gates;
use crate::line::{Line, NAP};
use lanecast_base::{Step, WaitStrategy, Waiter};
use std::sync::Arc;

/// The one writer of a ring.
///
/// Dropped, it publishes what is unpublished and ends the stream: consumers read what is there
/// and then see [`Consumer::is_closed`](crate::rings::Consumer::is_closed).
#[derive(Debug)]
pub struct Producer<T> {
    pub(crate) line: Arc<Line<T>>,
    /// Where the next value goes.
    pub(crate) at: u64,
    /// Values may be written up to here, as far as known; 0 once all consumers are gone.
    limit: u64,
    closed: bool,
    /// Where [`push`](Self::push) has to look up: at the limit, or to fetch lines for writing.
    turn: u64,
    published: u64,
    /// Values between two publications.
    stride: u64,
    gates: Gates,
    waiter: Waiter,
}

impl<T> Producer<T> {
    pub(crate) fn new(
        line: Arc<Line<T>>,
        gates: Gates,
        stride: u64,
        strategy: WaitStrategy,
    ) -> Self {
        let limit = line.slots.capacity();
        let waiter = Waiter::new(strategy);
        Self { line, at: 0, limit, closed: false, turn: 0, published: 0, stride, gates, waiter }
    }

    /// Publishes `value`, or gives it back if there is no room now.
    ///
    /// # Errors
    /// See [`PushError`].
    #[inline(always)]
    pub fn try_push(&mut self, value: T) -> Result<(), PushError<T>> {
        if self.at >= self.turn && !self.look_up() && !self.look_for_room() {
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
        if self.at >= self.turn && !self.look_up() && !self.wait_for_room() {
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
            self.look_for_room();
        }
        let count = self.line.slots.run(self.at, self.free().min(count as u64));
        (count > 0).then(|| Claim::new(self, count))
    }

    /// As [`try_claim`](Self::try_claim), waiting for room for at least one value.
    ///
    /// # Errors
    /// If all consumers are gone.
    #[inline(always)]
    pub fn claim(&mut self, count: usize) -> Result<Claim<'_, T>, Closed<()>> {
        let is_short = self.free() < count as u64;
        if is_short && !self.look_for_room() && !self.wait_for_room() {
            return Err(Closed(()));
        }
        let count = self.line.slots.run(self.at, self.free().min(count as u64));
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
        self.line.slots.capacity() as usize
    }

    /// Whether all consumers are gone, as far as is known: it is looked up when there is no room.
    pub const fn is_closed(&self) -> bool {
        self.closed
    }

    /// How many slots are free, as far as known.
    #[inline(always)]
    const fn free(&self) -> u64 {
        self.limit.saturating_sub(self.at)
    }

    #[inline(always)]
    fn put(&mut self, value: T) {
        // SAFETY: the slot lies before the limit, so every consumer is done with it, and none
        // looks at it again before it is published.
        let slot = unsafe { self.line.slots.write(self.at, 1) };
        slot[0] = value;
        self.pass(1);
    }

    /// Counts `count` values as written and publishes them when the stride is full.
    #[inline(always)]
    pub(crate) fn pass(&mut self, count: u64) {
        self.at += count;
        if self.stride == 1 {
            self.line.tail.publish(self.at);
        } else {
            self.line.write_up_to(self.at);
            if self.at - self.published >= self.stride || self.line.tail.is_awaited() {
                self.publish();
            }
        }
    }

    #[inline(always)]
    fn publish(&mut self) {
        self.published = self.at;
        self.line.tail.publish(self.at);
    }

    /// Whether there is room for a value; now and then takes lines back from the consumers that
    /// read them a lap ago, so that writing does not wait for each.
    #[cold]
    #[inline(never)]
    fn look_up(&mut self) -> bool {
        self.turn = self.line.slots.fetch_ahead(self.at, self.limit);
        self.at < self.limit
    }

    /// Looks how far the consumers are; whether there is room for a value.
    #[cold]
    #[inline(never)]
    fn look_for_room(&mut self) -> bool {
        self.flush();
        let slowest = self.gates.slowest();
        self.closed = slowest.is_none();
        self.limit = slowest.map_or(0, |slowest| slowest + self.line.slots.capacity());
        self.at < self.limit
    }

    /// Waits until there is room for a value; false if all consumers are gone.
    #[cold]
    #[inline(never)]
    fn wait_for_room(&mut self) -> bool {
        while !self.look_for_room() {
            if self.is_closed() {
                return false;
            }
            match self.waiter.next_step() {
                Step::Spin(pauses) => lanecast_base::spin(pauses),
                Step::Yield => std::thread::yield_now(),
                Step::Park => {
                    let slowest = self.limit - self.line.slots.capacity();
                    self.gates.sleep(slowest, NAP);
                }
            }
        }
        self.waiter.reset();
        self.gates.found();
        true
    }
}

impl<T> Drop for Producer<T> {
    fn drop(&mut self) {
        self.flush();
        self.line.close(self.at);
    }
}
