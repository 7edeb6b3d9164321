//! Preallocation of segments: spare segments are created ahead of need, on a thread of their own,
//! so that a change of segment does not wait for the disk. The same thread applies retention, and
//! makes lost indexes anew.

use crate::lock::lock;
use crate::recycler::Recycler;
use crate::segment::{Format, Segment};
use crate::start::Source;
use crate::storage::{Fill, Storage, StorageError, StorageResult};
use crate::writer::SegmentSupply;
use lanecast_base::sync::{AtomicU64, Ordering};
use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Bytes of both sides after which their rates are compared.
const COMPARED_BYTES: u64 = 8 << 20;

#[derive(Debug)]
struct State<S: Storage> {
    spares: VecDeque<Segment<S::File>>,
    next: u64,
    /// Error of the last attempt; the next attempt waits until the writer needs a segment.
    failure: Option<StorageError>,
    /// The last attempt has found the disk full, or no free file descriptor. Another one that runs
    /// does not make it less so.
    is_full: bool,
    /// Number of threads that wait for spare segments.
    waiting: usize,
    /// The writer waits for its next segment.
    is_writer_waiting: bool,
    /// The program waits for the next segment.
    is_hurried: bool,
    /// Requests a retention run: the writer has changed segments.
    needs_retention: bool,
    /// Segments whose indexes are to be made anew.
    lost_indexes: BTreeSet<u64>,
    is_closed: bool,
}

/// Spare segments, and the state of the thread that creates them.
#[derive(Debug)]
pub(crate) struct Preallocator<S: Storage> {
    source: Arc<Source<S>>,
    recycler: Recycler,
    format: Format,
    wanted: usize,
    state: Mutex<State<S>>,
    changed: Condvar,
    /// Free bytes of the current segment: an estimate of the time left before the next one is
    /// needed.
    left: AtomicU64,
}

impl<S: Storage> Preallocator<S> {
    /// Starts with these spare segments; `next` is the number of the first one to create.
    pub(crate) fn new(
        source: Arc<Source<S>>,
        recycler: Recycler,
        format: Format,
        wanted: usize,
        spares: VecDeque<Segment<S::File>>,
        next: u64,
    ) -> Self {
        let state = Mutex::new(State {
            spares,
            next,
            failure: None,
            is_full: false,
            waiting: 0,
            is_writer_waiting: false,
            is_hurried: false,
            needs_retention: false,
            lost_indexes: BTreeSet::new(),
            is_closed: false,
        });
        // At least one: without it the writer could not continue.
        let wanted = wanted.max(1);
        let (changed, left) = (Condvar::new(), AtomicU64::new(format.segment_bytes));
        Self { source, recycler, format, wanted, state, changed, left }
    }

    /// Body of the preallocator thread: keeps the wanted number of spare segments until
    /// [`close`](Self::close), and calls `apply_retention` and `restore_index` on request.
    pub(crate) fn run(&self, apply_retention: impl Fn(), restore_index: impl Fn(u64)) {
        let mut state = lock(&self.state);
        loop {
            if state.needs_retention {
                state.needs_retention = false;
                drop(state);
                apply_retention();
                state = lock(&self.state);
            } else if state.is_closed {
                return;
            } else if state.spares.len() >= self.wanted || state.failure.is_some() {
                // The writer may need a segment at once, so those come first.
                let Some(number) = state.lost_indexes.pop_first() else {
                    state = self.sleep(state);
                    continue;
                };
                drop(state);
                restore_index(number);
                state = lock(&self.state);
            } else {
                // Created without the lock, which the writer takes for each new segment.
                let number = state.next;
                drop(state);
                let made = self.make(number);
                state = lock(&self.state);
                state.is_hurried = false;
                match made {
                    Ok(segment) => {
                        state.next += 1;
                        state.is_full = false;
                        state.spares.push_back(segment);
                    }
                    // Kept until the writer asks: retrying at once on a full disk would spin.
                    Err(error) => {
                        state.is_full = error.may_pass();
                        state.failure = Some(error);
                    }
                }
                self.changed.notify_all();
            }
        }
    }

    fn make(&self, number: u64) -> StorageResult<Segment<S::File>> {
        // Relaxed, here and below: a stale number costs a pause or a step.
        let (before, mut start) = (self.left.load(Ordering::Relaxed), Instant::now());
        let mut throttle = |left| {
            let fill = self.rest(left, before, start);
            start = Instant::now();
            fill
        };
        Segment::make(&self.source.storage, &self.recycler, self.format, number, &mut throttle)
    }

    /// Paces a preallocation: pauses for as long as the step since `start` took, so that half of
    /// the disk's time is left to the writer, unless the rest is urgent. `before` are the writer's
    /// free bytes when the preallocation began.
    fn rest(&self, left: u64, before: u64, start: Instant) -> Fill {
        let state = lock(&self.state);
        let writer = self.left.load(Ordering::Relaxed);
        let bytes = self.format.segment_bytes;
        // The writer may have begun its next segment since.
        let wrapped = || before + bytes.saturating_sub(writer);
        let (filled, written) = (bytes - left, before.checked_sub(writer).unwrap_or_else(wrapped));
        let is_waited_for = state.is_writer_waiting || state.is_hurried || state.is_closed;
        if is_waited_for || is_late(filled, left, written, writer) {
            return Fill::Reserved;
        }
        if state.waiting > 0 {
            return Fill::AtOnce;
        }
        // A wakeup (close, or a thread that waits) ends the pause early.
        drop(self.changed.wait_timeout(state, start.elapsed()));
        Fill::Paced
    }

    fn sleep<'a>(&self, state: MutexGuard<'a, State<S>>) -> MutexGuard<'a, State<S>> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores the free bytes of the current segment.
    pub(crate) fn set_remaining(&self, bytes: u64) {
        self.left.store(bytes, Ordering::Relaxed);
    }

    /// Bytes of the segments that are made, from a place on: `left` bytes in front of the end of
    /// `segment`, which may not be made yet.
    pub(crate) fn room(&self, segment: u64, left: u64) -> u64 {
        let made = lock(&self.state).next;
        match made.checked_sub(segment + 1) {
            Some(spares) => left + spares * self.format.segment_bytes,
            None => 0,
        }
    }

    /// Whether the last attempt to make a segment has found the disk full, or no free descriptor.
    pub(crate) fn is_full(&self) -> bool {
        lock(&self.state).is_full
    }

    /// Ends the pauses of the segment that is being made.
    pub(crate) fn hurry(&self) {
        let mut state = lock(&self.state);
        if state.spares.len() < self.wanted && !std::mem::replace(&mut state.is_hurried, true) {
            self.changed.notify_all();
        }
    }

    /// Tries again to make a segment, if the last attempt has failed.
    pub(crate) fn retry(&self) {
        let mut state = lock(&self.state);
        if state.failure.take().is_some() {
            self.changed.notify_all();
        }
    }

    /// Requests a retention run: the writer has changed segments.
    pub(crate) fn request_retention(&self) {
        lock(&self.state).needs_retention = true;
        self.changed.notify_all();
    }

    /// Requests that a segment's index is made anew.
    pub(crate) fn request_index(&self, number: u64) {
        if lock(&self.state).lost_indexes.insert(number) {
            self.changed.notify_all();
        }
    }

    /// Id of the journal.
    pub(crate) const fn journal(&self) -> u64 {
        self.format.journal
    }

    /// Files of removed segments, kept for reuse.
    pub(crate) fn recycler(&self) -> &Recycler {
        &self.recycler
    }

    /// Waits until `count` segments are spare, or creating one fails.
    pub(crate) fn wait_for(&self, count: usize) -> StorageResult<()> {
        let mut state = lock(&self.state);
        state.waiting += 1;
        self.changed.notify_all();
        let mut outcome = Ok(());
        while state.spares.len() < count.min(self.wanted) && !state.is_closed {
            if let Some(failure) = &state.failure {
                outcome = Err(failure.clone());
                break;
            }
            state = self.sleep(state);
        }
        state.waiting -= 1;
        outcome
    }

    /// Ends the preallocator thread.
    pub(crate) fn close(&self) {
        lock(&self.state).is_closed = true;
        self.changed.notify_all();
    }
}

impl<S: Storage> SegmentSupply<S::File> for &Preallocator<S> {
    fn take(&mut self, number: u64) -> StorageResult<Segment<S::File>> {
        let mut state = lock(&self.state);
        // An earlier failure may be over: try again.
        state.failure = None;
        state.is_writer_waiting = true;
        let taken = loop {
            self.changed.notify_all();
            // In order of creation, which is the order of the numbers.
            if let Some(segment) = state.spares.pop_front() {
                debug_assert_eq!(segment.number, number, "segments are used in order");
                break Ok(segment);
            }
            if let Some(failure) = &state.failure {
                break Err(failure.clone());
            }
            state = self.sleep(state);
        };
        state.is_writer_waiting = false;
        taken
    }
}

/// Whether a writer that has written `written` bytes and has `free` ones left needs the next
/// segment before that is ready: `filled` bytes of it were filled in the same time, and `left` are
/// not.
fn is_late(filled: u64, left: u64, written: u64, free: u64) -> bool {
    let needed = u128::from(free) * u128::from(filled) < u128::from(left) * u128::from(written);
    filled + written >= COMPARED_BYTES && needed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_late_if_the_writer_is_faster() {
        let mib = |number: u64| number << 20;
        let late =
            |filled, left, written, free| is_late(mib(filled), mib(left), mib(written), mib(free));
        assert!(late(2, 62, 8, 56), "four times as fast");
        assert!(!late(8, 56, 2, 62), "slower");
        assert!(!late(8, 56, 0, 1), "an idle writer at the end of its segment");
        assert!(late(8, 56, 1, 2), "a slow one at the end of its segment");
        assert!(!late(1, 63, 2, 62), "too early to say");
        assert!(!late(64, 0, 64, 0), "ready");
    }
}
