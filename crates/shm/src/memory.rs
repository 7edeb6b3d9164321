//! Access to the words that a publisher and its subscribers share.
//!
//! The protocol ([`RingWriter`](crate::ring_writer::RingWriter),
//! [`RingReader`](crate::ring_reader::RingReader)) is written against this trait, so that the model
//! checker runs the same code as products, on its own memory.

use lanecast_base::sync::{AtomicU32, AtomicU64};
use lanecast_base::{CacheFlush, Position};
use lanecast_wire::shm::{FrameHeader, GateLive, RingLive, Slot};
use std::time::Duration;

/// A session's memory: the ring file (written by the publisher) and the gate (by subscribers).
pub(crate) trait Memory {
    /// Length of the ring in bytes: a power of two.
    fn window(&self) -> u64;
    /// Number of subscriber slots.
    fn slots(&self) -> usize;
    /// The publisher's words.
    fn ring(&self) -> &RingLive;
    /// The gate's words about waiting and sleeping.
    fn gate(&self) -> &GateLive;
    /// One subscriber's words; `index` is below [`slots`](Self::slots).
    fn slot(&self, index: usize) -> &Slot;
    /// Number of entries of the topic table.
    fn topics_max(&self) -> u32;
    /// The messages that are committed on `topic`.
    ///
    /// # Panics
    /// If the topic table has no such entry.
    fn count(&self, topic: u32) -> &AtomicU64;
    /// The header of the frame at `at`.
    fn frame(&self, at: Position) -> &FrameHeader;
    /// Hints that the bytes at `at` will be read soon.
    fn prefetch(&self, at: Position);
    /// Hints that the bytes at `at` will be written soon.
    fn prefetch_for_writing(&self, at: Position);
    /// Flushes the bytes from `from` on, up to `to`, if `flush` is on.
    fn flush(&self, flush: &CacheFlush, from: Position, to: Position);
    /// Makes every processor pass a barrier; returns whether this covers the light fences of the
    /// other side.
    fn heavy_fence(&self) -> bool;
    /// Sleeps while `word` holds `expected`, at most `limit`.
    fn sleep(&self, word: &AtomicU32, expected: u32, limit: Duration);
    /// Wakes the threads that sleep on `word`: an end's own, and the wake-up thread of its
    /// descriptor.
    fn wake(&self, word: &AtomicU32);
    /// Wakes the subscriber in slot `index`, whose wake word has changed.
    fn wake_slot(&self, index: usize);
}
