//! Memory budgets: a limit shared by several [reservations](Reservation), nested as a tree (a
//! client's budget within its server's).

use crate::sync::{AtomicUsize, Ordering};
use std::sync::Arc;

/// A limit of bytes for its [reservations](Reservation); a child's reservations count in its
/// parent as well.
#[derive(Debug)]
pub struct Budget {
    limit: usize,
    used: AtomicUsize,
    parent: Option<Arc<Self>>,
}

/// Bytes reserved in a [`Budget`]; released on drop.
#[derive(Debug)]
pub struct Reservation {
    budget: Arc<Budget>,
    bytes: usize,
}

/// A budget's limit, in bytes, which a reservation would have exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exhausted(pub usize);

impl Budget {
    /// A budget of `limit` bytes.
    pub fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, used: AtomicUsize::new(0), parent: None })
    }

    /// A budget of `limit` bytes within this one.
    pub fn child(self: &Arc<Self>, limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, used: AtomicUsize::new(0), parent: Some(Arc::clone(self)) })
    }

    /// A reservation of 0 bytes, which [`Reservation::try_grow`] enlarges.
    pub fn reservation(self: &Arc<Self>) -> Reservation {
        Reservation { budget: Arc::clone(self), bytes: 0 }
    }

    /// Bytes reserved now.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    fn reserve(&self, bytes: usize) -> Result<(), Exhausted> {
        let add = |used: usize| used.checked_add(bytes).filter(|used| *used <= self.limit);
        self.used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, add)
            .map_err(|_| Exhausted(self.limit))?;
        let result = self.parent.as_ref().map_or(Ok(()), |parent| parent.reserve(bytes));
        if result.is_err() {
            self.used.fetch_sub(bytes, Ordering::Relaxed);
        }
        result
    }

    fn release(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
        if let Some(parent) = &self.parent {
            parent.release(bytes);
        }
    }
}

impl Reservation {
    /// Reserves `bytes` more.
    ///
    /// # Errors
    /// If the budget or one of its parents would exceed its limit, with that limit. The
    /// reservation is then unchanged.
    pub fn try_grow(&mut self, bytes: usize) -> Result<(), Exhausted> {
        self.budget.reserve(bytes)?;
        self.bytes += bytes;
        Ok(())
    }

    /// Releases `bytes`, at most all of them.
    pub fn shrink(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        self.budget.release(bytes);
    }

    /// Bytes reserved.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.release(self.bytes);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn each_limit_holds_and_what_was_taken_comes_back() {
        let all = Budget::new(100);
        let (one, other) = (all.child(80), all.child(80));
        let mut first = one.reservation();
        assert_eq!(first.try_grow(81), Err(Exhausted(80)));
        assert_eq!(first.try_grow(70), Ok(()));
        let mut second = other.reservation();
        assert_eq!(second.try_grow(40), Err(Exhausted(100)), "the other child has most");
        assert_eq!((other.used(), all.used()), (0, 70), "nothing stays reserved in the child");
        assert_eq!(second.try_grow(usize::MAX), Err(Exhausted(80)));
        first.shrink(20);
        assert_eq!((first.bytes(), second.try_grow(40), all.used()), (50, Ok(()), 90));
        drop((first, second));
        assert_eq!((one.used(), other.used(), all.used()), (0, 0, 0));
    }
}
