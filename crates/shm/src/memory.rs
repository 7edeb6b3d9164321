//! The words that a publisher and its subscribers meet on.
//!
//! The protocol ([`WriteEdge`](crate::write_edge::WriteEdge),
//! [`ReadEdge`](crate::read_edge::ReadEdge)) is written against this trait, so that the model
//! checker runs the very code that products run, on memory of its own.

use lanecast_base::Position;
use lanecast_base::sync::AtomicU32;
use lanecast_wire::shm::{FrameHeader, GateLive, RingLive, Slot};
use std::time::Duration;

/// A session's memory, as both sides see it.
pub(crate) trait Memory {
    /// The ring's length in bytes: a power of two.
    fn window(&self) -> u64;
    /// How many slots there are.
    fn slots(&self) -> usize;
    /// The publisher's words.
    fn ring(&self) -> &RingLive;
    /// The words about waiting.
    fn gate(&self) -> &GateLive;
    /// One subscriber's words; `index` is below [`slots`](Self::slots).
    fn slot(&self, index: usize) -> &Slot;
    /// The header of the frame at `at`.
    fn frame(&self, at: Position) -> &FrameHeader;
    /// Hints that the bytes at `at` will be read soon.
    fn prefetch(&self, at: Position);
    /// Hints that the bytes at `at` will be written soon.
    fn prefetch_for_writing(&self, at: Position);
    /// Makes every processor pass a barrier; says whether the other side's light fences are
    /// covered by that.
    fn heavy_fence(&self) -> bool;
    /// Sleeps while `word` holds `expected`, at most `limit`.
    fn sleep(&self, word: &AtomicU32, expected: u32, limit: Duration);
    /// Wakes whoever sleeps on `word`.
    fn wake(&self, word: &AtomicU32);
}
