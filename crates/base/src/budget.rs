//! Memory that is bounded for several at once: for each, for the one whose they are, and for all.

use crate::sync::{AtomicUsize, Ordering};
use std::sync::Arc;

/// So many bytes, of which [shares](Share) are taken. One may be part of a larger one.
#[derive(Debug)]
pub struct Budget {
    limit: usize,
    used: AtomicUsize,
    whole: Option<Arc<Self>>,
}

/// Bytes that were taken of a budget, and are given back when this is dropped.
#[derive(Debug)]
pub struct Share {
    of: Arc<Budget>,
    bytes: usize,
}

/// A budget has no more to give: so many bytes are its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exhausted(pub usize);

impl Budget {
    /// So many bytes.
    pub fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, used: AtomicUsize::new(0), whole: None })
    }

    /// So many bytes of this one.
    pub fn part(self: &Arc<Self>, limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, used: AtomicUsize::new(0), whole: Some(Arc::clone(self)) })
    }

    /// A share of no bytes yet.
    pub fn share(self: &Arc<Self>) -> Share {
        Share { of: Arc::clone(self), bytes: 0 }
    }

    /// Bytes that are taken.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    fn take(&self, bytes: usize) -> Result<(), Exhausted> {
        let add = |used: usize| used.checked_add(bytes).filter(|used| *used <= self.limit);
        self.used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, add)
            .map_err(|_| Exhausted(self.limit))?;
        let rest = self.whole.as_ref().map_or(Ok(()), |whole| whole.take(bytes));
        if rest.is_err() {
            self.used.fetch_sub(bytes, Ordering::Relaxed);
        }
        rest
    }

    fn give_back(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
        if let Some(whole) = &self.whole {
            whole.give_back(bytes);
        }
    }
}

impl Share {
    /// Takes so many bytes more.
    ///
    /// # Errors
    /// If the budget, or one that it is part of, has no more: with the limit of that. Then nothing
    /// has changed.
    pub fn grow(&mut self, bytes: usize) -> Result<(), Exhausted> {
        self.of.take(bytes)?;
        self.bytes += bytes;
        Ok(())
    }

    /// Gives so many bytes back.
    pub fn shrink(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        self.of.give_back(bytes);
    }

    /// Bytes that it has.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.of.give_back(self.bytes);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn each_limit_holds_and_what_was_taken_comes_back() {
        let all = Budget::new(100);
        let (one, other) = (all.part(80), all.part(80));
        let mut first = one.share();
        assert_eq!(first.grow(81), Err(Exhausted(80)));
        assert_eq!(first.grow(70), Ok(()));
        let mut second = other.share();
        assert_eq!(second.grow(40), Err(Exhausted(100)), "the other one has taken most");
        assert_eq!((other.used(), all.used()), (0, 70), "nothing is taken of one alone");
        assert_eq!(second.grow(usize::MAX), Err(Exhausted(80)));
        first.shrink(20);
        assert_eq!((first.bytes(), second.grow(40), all.used()), (50, Ok(()), 90));
        drop((first, second));
        assert_eq!((one.used(), other.used(), all.used()), (0, 0, 0));
    }
}
