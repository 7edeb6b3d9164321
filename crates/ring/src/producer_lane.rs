//! What the ends of one ring share.

use crate::cursor::Cursor;
use crate::slots::Slots;
use lanecast_base::CachePadded;
use lanecast_base::sync::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Where a stream that still goes on ends.
const OPEN: u64 = u64::MAX;

/// The longest that a waiting end sleeps before it looks again by itself.
pub(crate) const PARK_TIME_MAX: Duration = Duration::from_millis(100);

/// The ring of values that one producer writes.
pub(crate) type RingBuffer<T> = ProducerLane<Slots<T>>;

/// What one producer writes: its memory, its tail, its end.
pub(crate) struct ProducerLane<M> {
    pub(crate) slots: M,
    /// How far the producer has published.
    pub(crate) tail: Arc<Cursor>,
    /// How far it has written: ahead of the tail by less than a stride.
    written: CachePadded<AtomicU64>,
    /// The final tail, once the producer has gone.
    end: CachePadded<AtomicU64>,
    /// Whether consumers have closed it to the producer.
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

    /// Shows that everything before `position` is written, published or not.
    #[inline(always)]
    pub(crate) fn set_written(&self, position: u64) {
        // PAIRS(written): release here, acquire in `written`.
        self.written.store(position, Ordering::Release);
    }

    /// How far the producer has written, if it publishes in strides; 0 otherwise.
    pub(crate) fn written(&self) -> u64 {
        // PAIRS(written): acquire here, release in `set_written`.
        self.written.load(Ordering::Acquire)
    }

    /// Whether `position` is the end of the stream. Who sees it sees all that the producer's
    /// thread did before it closed the stream.
    #[inline]
    pub(crate) fn ends_at(&self, position: u64) -> bool {
        // PAIRS(end): acquire here, release in `close`.
        self.end.load(Ordering::Acquire) == position
    }

    /// Ends the stream at `position`, and wakes everybody who waits for anybody.
    pub(crate) fn close(&self, position: u64) {
        // PAIRS(end): release here, acquire in `ends_at`.
        self.end.store(position, Ordering::Release);
        self.wake_all();
    }

    /// Closes it to the producer, who notices when it next looks for room.
    pub(crate) fn stop_producer(&self) {
        // Relaxed: it guards no data, and whoever goes to sleep looks at it behind a fence.
        self.producer_stopped.store(true, Ordering::Relaxed);
        self.wake_all();
    }

    /// Whether consumers want nothing more.
    pub(crate) fn is_producer_stopped(&self) -> bool {
        self.producer_stopped.load(Ordering::Relaxed)
    }

    /// Wakes everybody who waits for anybody, because there is something else to see.
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
