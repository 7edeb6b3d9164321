//! Segments that are ready before they are needed, and the thread that makes them.

use crate::cursor::Source;
use crate::lock;
use crate::segment::{Segment, Shape};
use crate::storage::{Outcome, Storage, StorageError};
use crate::unix_ns;
use crate::writer::Supply;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

#[derive(Debug)]
struct Shelf<S: Storage> {
    spares: VecDeque<Segment<S::File>>,
    next: u64,
    /// Why the last attempt failed; nobody tries again before somebody needs a segment.
    failure: Option<StorageError>,
    is_closed: bool,
}

/// Segments that are ready.
#[derive(Debug)]
pub(crate) struct Stock<S: Storage> {
    source: Arc<Source<S>>,
    shape: Shape,
    wanted: usize,
    shelf: Mutex<Shelf<S>>,
    changed: Condvar,
}

impl<S: Storage> Stock<S> {
    /// Of these segments; `next` is the number of the first that is not among them.
    pub(crate) fn new(
        source: Arc<Source<S>>,
        shape: Shape,
        wanted: usize,
        spares: VecDeque<Segment<S::File>>,
        next: u64,
    ) -> Self {
        let shelf = Shelf { spares, next, failure: None, is_closed: false };
        // Without any the journal could never go on.
        let wanted = wanted.max(1);
        Self { source, shape, wanted, shelf: Mutex::new(shelf), changed: Condvar::new() }
    }

    /// Keeps as many ready as are wanted, until it is closed: the preparer's thread.
    pub(crate) fn keep_filled(&self) {
        let mut shelf = lock(&self.shelf);
        while !shelf.is_closed {
            if shelf.spares.len() >= self.wanted || shelf.failure.is_some() {
                shelf = self.changed.wait(shelf).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let number = shelf.next;
            drop(shelf);
            let made = Segment::make(&self.source.storage, self.shape, number, unix_ns());
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

    /// Waits until `count` are ready, or until making one fails.
    pub(crate) fn wait_for(&self, count: usize) -> Outcome<()> {
        let mut shelf = lock(&self.shelf);
        while shelf.spares.len() < count.min(self.wanted) && !shelf.is_closed {
            if let Some(failure) = &shelf.failure {
                return Err(failure.clone());
            }
            shelf = self.changed.wait(shelf).unwrap_or_else(PoisonError::into_inner);
        }
        Ok(())
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
        loop {
            self.changed.notify_all();
            if let Some(segment) = shelf.spares.pop_front() {
                debug_assert_eq!(segment.number, number, "segments are used in order");
                return Ok(segment);
            }
            if let Some(failure) = &shelf.failure {
                return Err(failure.clone());
            }
            shelf = self.changed.wait(shelf).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
