//! The writing end of a lane.

use super::ByteLane;
use super::claim::{ByteBatch, ByteClaim, ClaimError};
use super::memory::{Memory, Place};
use crate::gates::Gates;
use crate::line::NAP;
use lanecast_base::{WaitStep, WaitStrategy, Waiter, spin};
use std::sync::Arc;

/// Writes messages. Dropping it publishes what is committed and tells consumers that no more come.
#[derive(Debug)]
pub struct ByteProducer {
    lane: Arc<ByteLane>,
    /// Every consumer's head.
    heads: Gates,
    /// Where the next frame goes.
    at: u64,
    /// What may be written up to, as of the last look at the heads.
    limit: u64,
    /// Committed messages that are not published yet.
    held_back: u32,
    /// Messages between two publications.
    stride: u32,
    waiter: Waiter,
}

impl ByteProducer {
    pub(super) fn new(
        lane: Arc<ByteLane>,
        heads: Gates,
        stride: u32,
        strategy: WaitStrategy,
    ) -> Self {
        let waiter = Waiter::new(strategy);
        Self { lane, heads, at: 0, limit: 0, held_back: 0, stride, waiter }
    }

    /// Room for a message of `len` bytes, or the reason why there is none now. Never blocks.
    ///
    /// # Errors
    /// See [`ClaimError`]. That consumers are gone is noticed when the room known of is used up.
    #[inline]
    pub fn try_claim(&mut self, len: usize) -> Result<ByteClaim<'_>, ClaimError> {
        let place = self.room_at(self.at, len)?;
        Ok(ByteClaim::new(self, place, len))
    }

    /// Room for a message of `len` bytes, waiting by the ring's strategy while there is none.
    ///
    /// # Errors
    /// See [`ClaimError`]; never [`ClaimError::Full`].
    #[inline]
    pub fn claim(&mut self, len: usize) -> Result<ByteClaim<'_>, ClaimError> {
        let place = match self.room_at(self.at, len) {
            Err(ClaimError::Full) => self.wait_for_room(len)?,
            result => result?,
        };
        Ok(ByteClaim::new(self, place, len))
    }

    /// Copies `message` into the ring, if there is room now.
    ///
    /// # Errors
    /// See [`ClaimError`].
    #[inline]
    pub fn offer(&mut self, message: &[u8]) -> Result<(), ClaimError> {
        let mut claim = self.try_claim(message.len())?;
        claim.copy_from_slice(message);
        claim.commit();
        Ok(())
    }

    /// Copies `message` into the ring, waiting for room.
    ///
    /// # Errors
    /// See [`ClaimError`]; never [`ClaimError::Full`].
    #[inline]
    pub fn send(&mut self, message: &[u8]) -> Result<(), ClaimError> {
        let mut claim = self.claim(message.len())?;
        claim.copy_from_slice(message);
        claim.commit();
        Ok(())
    }

    /// Starts a batch: several messages, published together.
    pub fn batch(&mut self) -> ByteBatch<'_> {
        ByteBatch::new(self)
    }

    /// Publishes what is committed and held back.
    pub fn flush(&mut self) {
        if self.held_back > 0 {
            self.publish(self.at);
        }
    }

    /// The ring's size in bytes.
    pub fn capacity(&self) -> usize {
        self.memory().capacity()
    }

    /// The longest message, in bytes.
    pub fn longest(&self) -> usize {
        self.memory().longest()
    }

    #[inline(always)]
    pub(super) fn memory(&self) -> &Memory {
        &self.lane.slots
    }

    pub(super) const fn at(&self) -> u64 {
        self.at
    }

    /// Takes the frame that ends at `end` as written.
    #[inline(always)]
    pub(super) fn commit(&mut self, end: u64) {
        if self.stride == 1 {
            self.publish(end);
        } else {
            self.hold_back(end);
        }
    }

    fn hold_back(&mut self, end: u64) {
        self.at = end;
        self.held_back += 1;
        self.lane.write_up_to(end);
        // Who sleeps does not look at what is held back.
        if self.held_back >= self.stride || self.lane.tail.is_awaited() {
            self.publish(end);
        }
    }

    /// Publishes all up to `end`.
    #[inline(always)]
    pub(super) fn publish(&mut self, end: u64) {
        self.at = end;
        self.held_back = 0;
        self.lane.tail.publish(end);
    }

    /// Where a message of `len` bytes goes whose frame is to follow `at`.
    #[inline(always)]
    pub(super) fn room_at(&mut self, at: u64, len: usize) -> Result<Place, ClaimError> {
        let longest = self.longest();
        if len > longest {
            return Err(ClaimError::TooLong { longest });
        }
        let place = self.memory().place(at, len);
        if place.end > self.limit {
            self.look_for_room(place.end)?;
        }
        if place.start != at {
            self.memory().pad(at);
        }
        Ok(place)
    }

    #[inline(never)]
    fn look_for_room(&mut self, end: u64) -> Result<(), ClaimError> {
        let slowest = self.heads.slowest().ok_or(ClaimError::Closed)?;
        self.limit = slowest + self.capacity() as u64;
        if end <= self.limit {
            return Ok(());
        }
        // Nobody makes room whose messages are held back.
        self.flush();
        Err(ClaimError::Full)
    }

    #[cold]
    fn wait_for_room(&mut self, len: usize) -> Result<Place, ClaimError> {
        loop {
            match self.waiter.next_step() {
                WaitStep::Spin(pauses) => spin(pauses),
                WaitStep::Yield => std::thread::yield_now(),
                // While the slowest stands where it did at the last look, there is no room.
                WaitStep::Park => {
                    let slowest = self.limit - self.capacity() as u64;
                    self.heads.sleep(slowest, NAP);
                }
            }
            match self.room_at(self.at, len) {
                Err(ClaimError::Full) => {}
                result => {
                    self.waiter.reset();
                    self.heads.found();
                    return result;
                }
            }
        }
    }
}

impl Drop for ByteProducer {
    fn drop(&mut self) {
        self.flush();
        self.lane.close(self.at);
    }
}
