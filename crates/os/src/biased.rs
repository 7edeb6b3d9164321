//! A biased lock: one thread, the owner, locks it millions of times a second for almost nothing;
//! others, the visitors, rarely, and pay for both.
//!
//! Each side stores its own word and then loads the other's, which takes a store-load fence on both
//! sides. The owner's fence is free where the kernel offers `membarrier`: a visitor makes every CPU
//! pass a barrier instead. An owner that finds an announced visitor yields to it, so a waiting
//! visitor gets the lock however busy the owner is.
//!
//! Guards must be dropped: a forgotten one blocks the other side without end.

#[cfg(all(test, loom))]
mod loom;

use crate::barrier;
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use lanecast_base::CachePadded;
use lanecast_base::sync::{
    Arc, AtomicBool, AtomicU64, Ordering, UnsafeCell, light_fence, spin_hint,
};
use std::time::{Duration, Instant};

/// Constructor of the lock; its two handles are [`Owner`] and [`Visitor`].
#[derive(Clone, Copy, Debug)]
pub struct Biased;

impl Biased {
    /// Protects `value` by a lock with an owner and a first visitor.
    ///
    /// ```
    /// use lanecast_os::biased::Biased;
    /// let (mut owner, visitor) = Biased::split(1);
    /// *owner.lock() += 1;
    /// assert_eq!(*visitor.try_lock().expect("the lock is free"), 2);
    /// ```
    pub fn split<T>(value: T) -> (Owner<T>, Visitor<T>) {
        // Decides for good whether the owner's fence is free, before the first lock.
        barrier::register();
        let shared = Arc::new(Shared {
            lock_word: CachePadded::new(AtomicU64::new(FIRST_WORD)),
            is_visited: CachePadded::new(AtomicBool::new(false)),
            value: UnsafeCell::new(value),
        });
        (Owner { shared: Arc::clone(&shared), lock_word: FIRST_WORD }, Visitor { shared })
    }
}

/// The lock word of an owner that has not come yet: an uncounted lock takes one off.
const FIRST_WORD: u64 = 2;

struct Shared<T> {
    /// Counts the owner's locks and unlocks: odd while the owner holds the lock or announces
    /// itself. Twice the number of locks, and one more inside a lock; one less inside an uncounted
    /// one. Written by the owner alone.
    lock_word: CachePadded<AtomicU64>,
    /// Whether a visitor holds the lock or has announced itself.
    is_visited: CachePadded<AtomicBool>,
    value: UnsafeCell<T>,
}

// SAFETY: at any time at most one thread holds the lock, and it alone reaches the value.
unsafe impl<T: Send> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Shared<T> {}

/// The owner's handle: its lock is nearly free. Visitors continue after it is dropped.
pub struct Owner<T> {
    shared: Arc<Shared<T>>,
    /// Copy of the shared lock word.
    lock_word: u64,
}

impl<T> Owner<T> {
    /// Locks; waits while a visitor holds the lock.
    #[inline]
    pub fn lock(&mut self) -> OwnerGuard<'_, T> {
        self.lock_by(|word| word + 1)
    }

    /// Locks for work that is not the owner's share of driving the value: a visitor that looks at
    /// [`lock_count`](Visitor::lock_count) does not see it.
    pub fn lock_uncounted(&mut self) -> OwnerGuard<'_, T> {
        // Odd as well, but the count is that of before.
        self.lock_by(|word| word - 1)
    }

    #[inline(always)]
    fn lock_by(&mut self, step: impl Fn(u64) -> u64) -> OwnerGuard<'_, T> {
        if !self.announce(&step) {
            self.lock_after_visitor(&step);
        }
        OwnerGuard { owner: self, value: PhantomData }
    }

    /// Announces the owner; returns false if a visitor was first.
    #[inline(always)]
    fn announce(&mut self, step: impl Fn(u64) -> u64) -> bool {
        // Odd even after a forgotten guard.
        self.lock_word = step(self.lock_word) | 1;
        // Relaxed: a visitor that finds the word odd does not take the lock.
        self.shared.lock_word.store(self.lock_word, Ordering::Relaxed);
        light_fence();
        // PAIRS(biased-visit): acquire here, release where a visitor unlocks.
        !self.shared.is_visited.load(Ordering::Acquire)
    }

    #[cold]
    fn lock_after_visitor(&mut self, step: impl Fn(u64) -> u64) {
        let mut spins = 0;
        loop {
            // A visitor that is announced but not yet inside goes first.
            self.unlock();
            while self.shared.is_visited.load(Ordering::Relaxed) {
                spin_or_yield(&mut spins);
            }
            if self.announce(&step) {
                return;
            }
        }
    }

    #[inline(always)]
    fn unlock(&mut self) {
        self.lock_word += 1;
        // PAIRS(biased-stay): release here, acquire where a visitor loads it.
        self.shared.lock_word.store(self.lock_word, Ordering::Release);
    }
}

/// The handle of a thread that locks rarely.
pub struct Visitor<T> {
    shared: Arc<Shared<T>>,
}

impl<T> Visitor<T> {
    /// Locks, unless the owner or another visitor holds the lock. Costs some microseconds.
    pub fn try_lock(&self) -> Option<VisitorGuard<'_, T>> {
        // This cheap load spares the owner a wait, and the CPUs a barrier.
        let is_inside = self.shared.lock_word.load(Ordering::Relaxed) % 2 == 1;
        if is_inside { None } else { self.try_lock_while(|| false) }
    }

    /// Locks, waiting for the owner and other visitors at most `limit`.
    pub fn try_lock_for(&self, limit: Duration) -> Option<VisitorGuard<'_, T>> {
        let (start, mut spins) = (Instant::now(), 0);
        self.try_lock_while(|| {
            spin_or_yield(&mut spins);
            start.elapsed() < limit
        })
    }

    /// Number of the owner's locks, and of its attempts while visitors held the lock. An unchanged
    /// count means that the owner has not come, or [uncounted](Owner::lock_uncounted) only.
    pub fn lock_count(&self) -> u64 {
        self.shared.lock_word.load(Ordering::Relaxed).div_ceil(2) - FIRST_WORD / 2
    }

    /// Locks; while the lock is taken, tries again as long as `keep_trying` returns true.
    fn try_lock_while(&self, mut keep_trying: impl FnMut() -> bool) -> Option<VisitorGuard<'_, T>> {
        let Shared { lock_word, is_visited, .. } = &*self.shared;
        // Relaxed: the fence below makes the writes of earlier visitors visible.
        while is_visited
            .compare_exchange(false, true, Ordering::Relaxed, Ordering::Relaxed)
            .is_err()
        {
            if !keep_trying() {
                return None;
            }
        }
        let guard = VisitorGuard { shared: &self.shared, value: PhantomData };
        if !barrier::heavy_fence_within_process() {
            return None; // The owner relies on barriers that the system now refuses.
        }
        // From here on the owner finds this visitor whenever it announces itself.
        // PAIRS(biased-stay): acquire here, release where the owner unlocks.
        while lock_word.load(Ordering::Acquire) % 2 == 1 {
            if !keep_trying() {
                return None;
            }
        }
        Some(guard)
    }
}

impl<T> Clone for Visitor<T> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

/// The owner's access to the value; unlocks when dropped.
pub struct OwnerGuard<'a, T> {
    owner: &'a mut Owner<T>,
    /// Send and Sync as the reference that the guard gives.
    value: PhantomData<&'a mut T>,
}

impl<T> OwnerGuard<'_, T> {
    /// Unlocks while `f` runs, for visitors, and locks again.
    #[inline]
    pub fn unlocked<R>(&mut self, f: impl FnOnce() -> R) -> R {
        struct LockAgain<'a, T>(&'a mut Owner<T>);

        // In a drop, so that the guard holds the lock after a panic as well.
        impl<T> Drop for LockAgain<'_, T> {
            #[inline(always)]
            fn drop(&mut self) {
                std::mem::forget(self.0.lock());
            }
        }

        self.owner.unlock();
        let _again = LockAgain(self.owner);
        f()
    }
}

impl<T> Deref for OwnerGuard<'_, T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the owner holds the lock, hence no other thread does.
        self.owner.shared.value.with(|value| unsafe { &*value })
    }
}

impl<T> DerefMut for OwnerGuard<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the owner holds the lock, hence no other thread does.
        self.owner.shared.value.with_mut(|value| unsafe { &mut *value })
    }
}

impl<T> Drop for OwnerGuard<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.owner.unlock();
    }
}

/// A visitor's access to the value; unlocks when dropped.
pub struct VisitorGuard<'a, T> {
    shared: &'a Shared<T>,
    /// Send and Sync as the reference that the guard gives.
    value: PhantomData<&'a mut T>,
}

impl<T> Deref for VisitorGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: this visitor holds the lock, hence no other thread does.
        self.shared.value.with(|value| unsafe { &*value })
    }
}

impl<T> DerefMut for VisitorGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this visitor holds the lock, hence no other thread does.
        self.shared.value.with_mut(|value| unsafe { &mut *value })
    }
}

impl<T> Drop for VisitorGuard<'_, T> {
    fn drop(&mut self) {
        // A visitor that gave up releases too: it passes on the writes of earlier visitors.
        // PAIRS(biased-visit): release here, acquire where the owner announces itself.
        self.shared.is_visited.store(false, Ordering::Release);
    }
}

/// Spins before the CPU is yielded: the lock is rarely held for long.
const SPINS_BEFORE_YIELD: u32 = 64;

fn spin_or_yield(spins: &mut u32) {
    *spins = spins.saturating_add(1);
    if cfg!(loom) || *spins < SPINS_BEFORE_YIELD {
        spin_hint();
    } else {
        std::thread::yield_now();
    }
}

impl<T> fmt::Debug for Owner<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Owner").field("lock_word", &self.lock_word).finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Visitor<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Visitor").field("lock_count", &self.lock_count()).finish_non_exhaustive()
    }
}

impl<T: fmt::Debug> fmt::Debug for OwnerGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        T::fmt(self, f)
    }
}

impl<T: fmt::Debug> fmt::Debug for VisitorGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        T::fmt(self, f)
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
