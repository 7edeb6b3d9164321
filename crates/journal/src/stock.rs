//! Segments that are ready before they are needed, and the thread that makes them.

use crate::cursor::Source;
use crate::lock;
use crate::reserve::Reserve;
use crate::segment::{Segment, Shape};
use crate::storage::{Outcome, Storage, StorageError};
use crate::writer::Supply;
use lanecast_base::sync::{AtomicU64, Ordering};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

#[derive(Debug)]
struct Shelf<S: Storage> {
    spares: VecDeque<Segment<S::File>>,
    next: u64,
    /// Why the last attempt failed; nobody tries again before somebody needs a segment.
    failure: Option<StorageError>,
    /// How many wait for a segment.
    waiting: usize,
    /// There may be segments to give up.
    is_untidy: bool,
    is_closed: bool,
}

/// Segments that are ready.
#[derive(Debug)]
pub(crate) struct Stock<S: Storage> {
    source: Arc<Source<S>>,
    reserve: Reserve,
    shape: Shape,
    wanted: usize,
    shelf: Mutex<Shelf<S>>,
    changed: Condvar,
    /// How many bytes the segment that is written to has left; of use to nobody but the preparer,
    /// which guesses by it how much time it has.
    left: AtomicU64,
}

impl<S: Storage> Stock<S> {
    /// Of these segments; `next` is the number of the first that is not among them.
    pub(crate) fn new(
        source: Arc<Source<S>>,
        reserve: Reserve,
        shape: Shape,
        wanted: usize,
        spares: VecDeque<Segment<S::File>>,
        next: u64,
    ) -> Self {
        let shelf = Mutex::new(Shelf {
            spares,
            next,
            failure: None,
            waiting: 0,
            is_untidy: false,
            is_closed: false,
        });
        // Without any the journal could never go on.
        let wanted = wanted.max(1);
        let (changed, left) = (Condvar::new(), AtomicU64::new(shape.segment_bytes));
        Self { source, reserve, shape, wanted, shelf, changed, left }
    }

    /// Keeps as many ready as are wanted, until it is closed; calls `tidy` when it was told to.
    /// The preparer's thread.
    pub(crate) fn keep_filled(&self, tidy: impl Fn()) {
        let mut shelf = lock(&self.shelf);
        loop {
            if shelf.is_untidy {
                shelf.is_untidy = false;
                drop(shelf);
                tidy();
                shelf = lock(&self.shelf);
            } else if shelf.is_closed {
                return;
            } else if shelf.spares.len() >= self.wanted || shelf.failure.is_some() {
                shelf = self.sleep(shelf);
            } else {
                let number = shelf.next;
                drop(shelf);
                let made = self.make(number);
                shelf = lock(&self.shelf);
                match made {
                    Ok(segment) => {
                        shelf.next += 1;
                        shelf.spares.push_back(segment);
                    }
                    Err(error) => shelf.failure = Some(error),
                }
                self.changed.notify_all();
            }
        }
    }

    fn make(&self, number: u64) -> Outcome<Segment<S::File>> {
        let mut start = Instant::now();
        let mut pace = |left| {
            let is_urgent = self.rest(left, start);
            start = Instant::now();
            is_urgent
        };
        Segment::make(&self.source.storage, &self.reserve, self.shape, number, &mut pace)
    }

    /// Rests for as long as the work since `start` has taken, unless the writer is nearer to the
    /// end of its segment than the `left` bytes are to theirs, or somebody waits; whether that is
    /// so.
    fn rest(&self, left: u64, start: Instant) -> bool {
        let shelf = lock(&self.shelf);
        let is_urgent = shelf.waiting > 0 || shelf.is_closed;
        if is_urgent || left > self.left.load(Ordering::Relaxed) {
            return true;
        }
        drop(self.changed.wait_timeout(shelf, start.elapsed()));
        false
    }

    fn sleep<'a>(&self, shelf: MutexGuard<'a, Shelf<S>>) -> MutexGuard<'a, Shelf<S>> {
        self.changed.wait(shelf).unwrap_or_else(PoisonError::into_inner)
    }

    /// The segment that is written to has so many bytes left.
    pub(crate) fn note_left(&self, bytes: u64) {
        self.left.store(bytes, Ordering::Relaxed);
    }

    /// There may be segments to give up.
    pub(crate) fn tidy(&self) {
        lock(&self.shelf).is_untidy = true;
        self.changed.notify_all();
    }

    /// Where files of segments go that are given up.
    pub(crate) fn reserve(&self) -> &Reserve {
        &self.reserve
    }

    /// Waits until `count` are ready, or until making one fails.
    pub(crate) fn wait_for(&self, count: usize) -> Outcome<()> {
        let mut shelf = lock(&self.shelf);
        shelf.waiting += 1;
        self.changed.notify_all();
        let mut outcome = Ok(());
        while shelf.spares.len() < count.min(self.wanted) && !shelf.is_closed {
            if let Some(failure) = &shelf.failure {
                outcome = Err(failure.clone());
                break;
            }
            shelf = self.sleep(shelf);
        }
        shelf.waiting -= 1;
        outcome
    }

    /// Lets the preparer's thread end.
    pub(crate) fn close(&self) {
        lock(&self.shelf).is_closed = true;
        self.changed.notify_all();
    }
}

impl<S: Storage> Supply<S::File> for &Stock<S> {
    fn take(&mut self, number: u64) -> Outcome<Segment<S::File>> {
        let mut shelf = lock(&self.shelf);
        // It failed some time ago; there may be space by now.
        shelf.failure = None;
        shelf.waiting += 1;
        let taken = loop {
            self.changed.notify_all();
            if let Some(segment) = shelf.spares.pop_front() {
                debug_assert_eq!(segment.number, number, "segments are used in order");
                break Ok(segment);
            }
            if let Some(failure) = &shelf.failure {
                break Err(failure.clone());
            }
            shelf = self.sleep(shelf);
        };
        shelf.waiting -= 1;
        taken
    }
}
