//! Producer lane: the memory that one producer writes, its tail, and its end; shared with all
//! consumers of the ring.

use crate::cursor::Cursor;
use crate::slots::Slots;
use lanecast_base::CachePadded;
use lanecast_base::sync::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// End position of an open stream.
const OPEN: u64 = u64::MAX;

/// Longest sleep of a waiting end before it polls again.
pub(crate) const PARK_TIME_MAX: Duration = Duration::from_millis(100);

/// The ring of values that one producer writes.
pub(crate) type RingBuffer<T> = ProducerLane<Slots<T>>;

/// Memory, tail and end of one producer.
pub(crate) struct ProducerLane<M> {
    pub(crate) slots: M,
    /// Position up to which the producer has published.
    pub(crate) tail: Arc<Cursor>,
    /// Position up to which it has written: ahead of the tail by less than a stride.
    written: CachePadded<AtomicU64>,
    /// The final tail, once the producer is gone.
    end: CachePadded<AtomicU64>,
    /// Whether consumers have stopped the producer.
    producer_stopped: AtomicBool,
    /// Every consumer's cursor, known when the ring is complete.
    pub(crate) heads: OnceLock<Box<[Arc<Cursor>]>>,
}

impl<M> ProducerLane<M> {
    pub(crate) fn new(slots: M) -> Self {
        Self {
            slots,
            tail: Arc::new(Cursor::new(0)),
            written: CachePadded::default(),
            end: CachePadded::new(AtomicU64::new(OPEN)),
            producer_stopped: AtomicBool::new(false),
            heads: OnceLock::new(),
        }
    }

    /// Stores that everything before `position` is written, published or not.
    #[inline(always)]
    pub(crate) fn set_written(&self, position: u64) {
        // PAIRS(written): release here, acquire in `written`.
        self.written.store(position, Ordering::Release);
    }

    /// Position up to which a producer with a stride has written; 0 without a stride.
    pub(crate) fn written(&self) -> u64 {
        // PAIRS(written): acquire here, release in `set_written`.
        self.written.load(Ordering::Acquire)
    }

    /// Whether `position` is the end of the stream. If so, everything that the producer's thread
    /// did before it closed the stream is visible.
    #[inline]
    pub(crate) fn ends_at(&self, position: u64) -> bool {
        // PAIRS(end): acquire here, release in `close`.
        self.end.load(Ordering::Acquire) == position
    }

    /// Ends the stream at `position` and wakes all waiting ends.
    pub(crate) fn close(&self, position: u64) {
        // PAIRS(end): release here, acquire in `ends_at`.
        self.end.store(position, Ordering::Release);
        self.wake_all();
    }

    /// Stops the producer, which sees this when it next waits for space.
    pub(crate) fn stop_producer(&self) {
        // Relaxed: it guards no data, and an end about to sleep reads it after a fence.
        self.producer_stopped.store(true, Ordering::Relaxed);
        self.wake_all();
    }

    /// Whether consumers have stopped the producer.
    pub(crate) fn is_producer_stopped(&self) -> bool {
        self.producer_stopped.load(Ordering::Relaxed)
    }

    /// Wakes all waiting ends.
    pub(crate) fn wake_all(&self) {
        self.tail.wake_sleepers();
        for head in self.heads.get().into_iter().flatten() {
            head.wake_sleepers();
        }
    }
}

impl<M> core::fmt::Debug for ProducerLane<M> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("ProducerLane").field("tail", &self.tail).finish_non_exhaustive()
    }
}
