//! A published position, and those who sleep until it moves.
//!
//! A producer's tail and each consumer's head is a cursor. A topology is nothing but who waits for
//! whose cursor: a consumer for the producer's, or, in a pipeline, for other consumers'; the
//! producer for those of the last stage.

use crate::park_flag::{ParkFlag, Sleeper};
use lanecast_base::CachePadded;
use lanecast_base::sync::{AtomicU32, AtomicU64, Ordering};
use lanecast_os::futex;
use std::time::Duration;

/// Where a cursor stands whose owner is gone: it holds nobody up.
pub(crate) const DETACHED: u64 = u64::MAX;
/// Where one stands that holds nobody up now.
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
    /// Counts wake-ups: the word that sleepers sleep on.
    wakes: AtomicU32,
}

impl Cursor {
    pub(crate) fn new(position: u64) -> Self {
        Self { position: CachePadded::new(AtomicU64::new(position)), rest: CachePadded::default() }
    }

    /// The position, and all that was done before it was published.
    #[inline(always)]
    pub(crate) fn get(&self) -> u64 {
        // PAIRS(cursor): acquire here, release in `publish`.
        // PAIRS(claimed): acquire here, release in `advance`.
        self.position.load(Ordering::Acquire)
    }

    /// Publishes `position`, and wakes those who sleep until it moves.
    #[inline(always)]
    pub(crate) fn publish(&self, position: u64) {
        // PAIRS(cursor): release here, acquire in `get`.
        self.position.store(position, Ordering::Release);
        self.wake_sleepers();
    }

    /// Publishes `position` without a word to those who sleep, and before any later
    /// [`advance`](Self::advance) by the same thread.
    #[inline(always)]
    pub(crate) fn show(&self, position: u64) {
        self.position.store(position, Ordering::Relaxed);
    }

    /// Moves from `from` to `to`, if it is still there: a cursor with several writers. Who sees
    /// `to`, or anything later, also sees what each of them has shown before.
    #[inline(always)]
    pub(crate) fn advance(&self, from: u64, to: u64) -> bool {
        // PAIRS(claimed): release here, acquire in `get`. Readings by others in between are kept
        // in order because all of them are exchanges as well.
        let (done, failed) = (Ordering::Release, Ordering::Relaxed);
        let moved = self.position.compare_exchange(from, to, done, failed).is_ok();
        if moved {
            self.wake_sleepers();
        }
        moved
    }

    /// Wakes those who sleep, because there is something to see.
    #[inline(always)]
    pub(crate) fn wake_sleepers(&self) {
        if self.rest.park_flag.must_wake() {
            self.wake();
        }
    }

    /// Whether somebody sleeps until it moves, or may be about to.
    #[inline(always)]
    pub(crate) fn has_sleepers(&self) -> bool {
        self.rest.park_flag.has_sleepers()
    }

    #[cold]
    #[inline(never)]
    fn wake(&self) {
        // Relaxed: the futex call compares it in the kernel, and the position is what counts.
        self.rest.wakes.fetch_add(1, Ordering::Relaxed);
        futex::wake(&self.rest.wakes, u32::MAX >> 1);
    }

    /// Marks the caller asleep, who must then look again; the value of [`word`](Self::word)
    /// while nobody has woken it.
    pub(crate) fn mark(&self, sleeper: &mut Sleeper) -> u32 {
        // Relaxed: the mark is set later, by a release that whoever takes it acquires before it
        // counts the wake-up.
        let wakes = self.rest.wakes.load(Ordering::Relaxed);
        self.rest.park_flag.mark(sleeper);
        wakes
    }

    /// The word to sleep on.
    pub(crate) fn word(&self) -> &AtomicU32 {
        &self.rest.wakes
    }

    /// A waiter on this cursor has found something without sleeping.
    #[inline(always)]
    pub(crate) fn found(&self, sleeper: &mut Sleeper) {
        self.rest.park_flag.found(sleeper);
    }

    /// The waiter goes.
    pub(crate) fn forget(&self, sleeper: &mut Sleeper) {
        self.rest.park_flag.forget(sleeper);
    }
}

/// How long an end sleeps that watches more cursors than one sleep can.
const SHORT_NAP: Duration = Duration::from_millis(1);

/// Sleeps at most `limit` until somebody wakes one of `words`: those of marked cursors, with what
/// they held then. Does not sleep if there are none.
#[cold]
pub(crate) fn sleep_on_any<'a>(
    words: impl IntoIterator<Item = (&'a AtomicU32, u32)>,
    limit: Duration,
) {
    let mut words = words.into_iter();
    let Some(first) = words.next() else { return };
    let mut watched = [first; futex::WORDS_MAX];
    let mut count = 1;
    for (place, word) in watched[1..].iter_mut().zip(&mut words) {
        *place = word;
        count += 1;
    }
    let limit = if words.next().is_some() { limit.min(SHORT_NAP) } else { limit };
    futex::wait_any(&watched[..count], limit);
}
