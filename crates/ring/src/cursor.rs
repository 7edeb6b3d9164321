//! Cursor: a published position, and the wake-up of the threads that sleep until it moves.
//!
//! A producer's tail and each consumer's head are cursors. A topology follows from the cursors that
//! each end waits for: a consumer waits for the producer's tail, or, in a pipeline, for other
//! consumers' heads; the producer waits for the heads of the last stage.

use crate::park_flag::{ParkFlag, Sleeper, UNCOVERED_PARK_TIME};
use lanecast_base::CachePadded;
use lanecast_base::sync::{AtomicU32, AtomicU64, Ordering};
use lanecast_os::futex;
use std::time::Duration;

/// Position of a cursor whose owner was dropped: it gates no other end.
pub(crate) const DETACHED: u64 = u64::MAX;
/// Position of a worker's cursor without a claimed run: it gates no other end.
pub(crate) const IDLE: u64 = u64::MAX - 1;

/// One end's published position. It has one writer, or several that [`advance`](Cursor::advance)
/// it, and any number of readers.
#[derive(Debug)]
pub(crate) struct Cursor {
    position: CachePadded<AtomicU64>,
    rest: CachePadded<Rest>,
}

#[derive(Debug, Default)]
struct Rest {
    park_flag: ParkFlag,
    /// Number of wake-ups: the word that sleepers sleep on.
    wakes: AtomicU32,
}

impl Cursor {
    pub(crate) fn new(position: u64) -> Self {
        Self { position: CachePadded::new(AtomicU64::new(position)), rest: CachePadded::default() }
    }

    /// The position; the values before it are visible.
    #[inline(always)]
    pub(crate) fn get(&self) -> u64 {
        // PAIRS(cursor): acquire here, release in `publish`.
        // PAIRS(claimed): acquire here, release in `advance`.
        self.position.load(Ordering::Acquire)
    }

    /// Publishes `position` and wakes the sleepers.
    #[inline(always)]
    pub(crate) fn publish(&self, position: u64) {
        // PAIRS(cursor): release here, acquire in `get`.
        self.position.store(position, Ordering::Release);
        self.wake_sleepers();
    }

    /// Stores `position`, which gates more than the one before, without waking sleepers; visible
    /// before any later [`advance`](Self::advance) by the same thread.
    #[inline(always)]
    pub(crate) fn show(&self, position: u64) {
        self.position.store(position, Ordering::Relaxed);
    }

    /// Moves the cursor from `from` to `to` by compare-exchange, for cursors with several writers.
    /// A thread that sees `to` or a later position also sees every earlier [`show`](Self::show).
    #[inline(always)]
    pub(crate) fn advance(&self, from: u64, to: u64) -> bool {
        // PAIRS(claimed): release here, acquire in `get`. Moves by other threads in between keep
        // the order, because all of them are exchanges as well.
        let (done, failed) = (Ordering::Release, Ordering::Relaxed);
        let moved = self.position.compare_exchange(from, to, done, failed).is_ok();
        if moved {
            self.wake_sleepers();
        }
        moved
    }

    /// Wakes the sleepers, if there are any.
    #[inline(always)]
    pub(crate) fn wake_sleepers(&self) {
        if self.rest.park_flag.must_wake() {
            self.wake();
        }
    }

    /// Whether a thread sleeps until the cursor moves, or may be about to.
    #[inline(always)]
    pub(crate) fn has_sleepers(&self) -> bool {
        self.rest.park_flag.has_sleepers()
    }

    #[cold]
    #[inline(never)]
    fn wake(&self) {
        // Relaxed: the kernel compares it in the futex call, and the position has its own order.
        self.rest.wakes.fetch_add(1, Ordering::Relaxed);
        futex::wake(&self.rest.wakes, u32::MAX >> 1);
    }

    /// Sets the park flag; the caller must then poll again.
    pub(crate) fn mark(&self, sleeper: &mut Sleeper) -> CursorMark {
        // Relaxed: the flag is set later, by a release that the waking thread acquires before it
        // counts the wake-up.
        let wakes = self.rest.wakes.load(Ordering::Relaxed);
        let is_covered = self.rest.park_flag.mark(sleeper);
        CursorMark { wakes, is_covered }
    }

    /// The word to sleep on after `mark`.
    pub(crate) fn word(&self, mark: CursorMark) -> SleepWord<'_> {
        SleepWord { word: &self.rest.wakes, mark }
    }

    /// Notes that a waiter on this cursor succeeded without a sleep.
    #[inline(always)]
    pub(crate) fn found(&self, sleeper: &mut Sleeper) {
        self.rest.park_flag.found(sleeper);
    }

    /// Withdraws the waiter's request for fences.
    pub(crate) fn forget(&self, sleeper: &mut Sleeper) {
        self.rest.park_flag.forget(sleeper);
    }
}

/// A park flag that was set on a cursor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CursorMark {
    /// Number of wake-ups before.
    wakes: u32,
    /// Whether every publisher is sure to see the flag.
    is_covered: bool,
}

/// The word of a marked cursor.
#[derive(Clone, Copy, Debug)]
pub struct SleepWord<'a> {
    word: &'a AtomicU32,
    mark: CursorMark,
}

/// Longest sleep with more cursors than one futex call can watch.
const SHORT_PARK_TIME: Duration = Duration::from_millis(1);

/// Sleeps at most `limit` until a wake-up of one of `words`. Returns at once without words.
#[cold]
pub(crate) fn sleep_on_any<'a>(words: impl IntoIterator<Item = SleepWord<'a>>, limit: Duration) {
    let mut limit = limit;
    let mut words = words.into_iter().map(|SleepWord { word, mark }| {
        if !mark.is_covered {
            limit = limit.min(UNCOVERED_PARK_TIME);
        }
        (word, mark.wakes)
    });
    let Some(first) = words.next() else { return };
    let mut watched = [first; futex::WORDS_MAX];
    let mut count = 1;
    for (place, word) in watched[1..].iter_mut().zip(&mut words) {
        *place = word;
        count += 1;
    }
    let has_more = words.next().is_some();
    let limit = if has_more { limit.min(SHORT_PARK_TIME) } else { limit };
    futex::wait_any(&watched[..count], limit);
}
