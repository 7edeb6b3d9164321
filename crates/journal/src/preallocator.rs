//! Segments that are ready before they are needed, and the thread that makes them.

use crate::cursor::Source;
use crate::lock;
use crate::recycler::Recycler;
use crate::segment::{Format, Segment};
use crate::storage::{Storage, StorageError, StorageResult};
use crate::writer::SegmentSource;
use lanecast_base::sync::{AtomicU64, Ordering};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

#[derive(Debug)]
struct Spares<S: Storage> {
    spares: VecDeque<Segment<S::File>>,
    next: u64,
    /// Why the last attempt failed; nobody tries again before somebody needs a segment.
    failure: Option<StorageError>,
    /// How many wait for a segment.
    waiting: usize,
    /// There may be segments to give up.
    needs_retention: bool,
    is_closed: bool,
}

/// Segments that are ready.
#[derive(Debug)]
pub(crate) struct Preallocator<S: Storage> {
    source: Arc<Source<S>>,
    recycler: Recycler,
    format: Format,
    wanted: usize,
    spares_state: Mutex<Spares<S>>,
    changed: Condvar,
    /// How many bytes the segment that is written to has left; of use to nobody but the preparer,
    /// which guesses by it how much time it has.
    left: AtomicU64,
}

impl<S: Storage> Preallocator<S> {
    /// Of these segments; `next` is the number of the first that is not among them.
    pub(crate) fn new(
        source: Arc<Source<S>>,
        recycler: Recycler,
        format: Format,
        wanted: usize,
        spares: VecDeque<Segment<S::File>>,
        next: u64,
    ) -> Self {
        let spares_state = Mutex::new(Spares {
            spares,
            next,
            failure: None,
            waiting: 0,
            needs_retention: false,
            is_closed: false,
        });
        // Without any the journal could never go on.
        let wanted = wanted.max(1);
        let (changed, left) = (Condvar::new(), AtomicU64::new(format.segment_bytes));
        Self { source, recycler, format, wanted, spares_state, changed, left }
    }

    /// Keeps as many ready as are wanted, until it is closed; calls `request_retention` when it was told to.
    /// The preparer's thread.
    pub(crate) fn run(&self, request_retention: impl Fn()) {
        let mut spares_state = lock(&self.spares_state);
        loop {
            if spares_state.needs_retention {
                spares_state.needs_retention = false;
                drop(spares_state);
                request_retention();
                spares_state = lock(&self.spares_state);
            } else if spares_state.is_closed {
                return;
            } else if spares_state.spares.len() >= self.wanted || spares_state.failure.is_some() {
                spares_state = self.sleep(spares_state);
            } else {
                let number = spares_state.next;
                drop(spares_state);
                let made = self.make(number);
                spares_state = lock(&self.spares_state);
                match made {
                    Ok(segment) => {
                        spares_state.next += 1;
                        spares_state.spares.push_back(segment);
                    }
                    Err(error) => spares_state.failure = Some(error),
                }
                self.changed.notify_all();
            }
        }
    }

    fn make(&self, number: u64) -> StorageResult<Segment<S::File>> {
        let mut start = Instant::now();
        let mut throttle = |left| {
            let is_urgent = self.rest(left, start);
            start = Instant::now();
            is_urgent
        };
        Segment::make(&self.source.storage, &self.recycler, self.format, number, &mut throttle)
    }

    /// Rests for as long as the work since `start` has taken, unless the writer is nearer to the
    /// end of its segment than the `left` bytes are to theirs, or somebody waits; whether that is
    /// so.
    fn rest(&self, left: u64, start: Instant) -> bool {
        let spares_state = lock(&self.spares_state);
        let is_urgent = spares_state.waiting > 0 || spares_state.is_closed;
        if is_urgent || left > self.left.load(Ordering::Relaxed) {
            return true;
        }
        drop(self.changed.wait_timeout(spares_state, start.elapsed()));
        false
    }

    fn sleep<'a>(&self, spares_state: MutexGuard<'a, Spares<S>>) -> MutexGuard<'a, Spares<S>> {
        self.changed.wait(spares_state).unwrap_or_else(PoisonError::into_inner)
    }

    /// The segment that is written to has so many bytes left.
    pub(crate) fn set_remaining(&self, bytes: u64) {
        self.left.store(bytes, Ordering::Relaxed);
    }

    /// There may be segments to give up.
    pub(crate) fn request_retention(&self) {
        lock(&self.spares_state).needs_retention = true;
        self.changed.notify_all();
    }

    /// Where files of segments go that are given up.
    pub(crate) fn recycler(&self) -> &Recycler {
        &self.recycler
    }

    /// Waits until `count` are ready, or until making one fails.
    pub(crate) fn wait_for(&self, count: usize) -> StorageResult<()> {
        let mut spares_state = lock(&self.spares_state);
        spares_state.waiting += 1;
        self.changed.notify_all();
        let mut outcome = Ok(());
        while spares_state.spares.len() < count.min(self.wanted) && !spares_state.is_closed {
            if let Some(failure) = &spares_state.failure {
                outcome = Err(failure.clone());
                break;
            }
            spares_state = self.sleep(spares_state);
        }
        spares_state.waiting -= 1;
        outcome
    }

    /// Lets the preparer's thread end.
    pub(crate) fn close(&self) {
        lock(&self.spares_state).is_closed = true;
        self.changed.notify_all();
    }
}

impl<S: Storage> SegmentSource<S::File> for &Preallocator<S> {
    fn take(&mut self, number: u64) -> StorageResult<Segment<S::File>> {
        let mut spares_state = lock(&self.spares_state);
        // It failed some time ago; there may be space by now.
        spares_state.failure = None;
        spares_state.waiting += 1;
        let taken = loop {
            self.changed.notify_all();
            if let Some(segment) = spares_state.spares.pop_front() {
                debug_assert_eq!(segment.number, number, "segments are used in order");
                break Ok(segment);
            }
            if let Some(failure) = &spares_state.failure {
                break Err(failure.clone());
            }
            spares_state = self.sleep(spares_state);
        };
        spares_state.waiting -= 1;
        taken
    }
}
