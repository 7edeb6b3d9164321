//! A lock that leans towards its owner: one thread enters again and again for next to nothing,
//! others visit rarely and pay for both.
//!
//! Each side writes its own word and then reads the other's, which takes a store-load fence on
//! both sides. The owner's is free where the kernel offers `membarrier`: a visitor makes every
//! CPU pass a barrier on its behalf. An owner that finds a visitor announced steps back, so that
//! a visitor who waits gets in however busy the owner is.
//!
//! Guards must be dropped: for one that is forgotten the others wait for ever.

#[cfg(all(test, loom))]
mod loom;

use crate::barrier;
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use lanecast_base::CachePadded;
use lanecast_base::sync::{
    Arc, AtomicBool, AtomicU64, Ordering, UnsafeCell, light_fence, light_fences_enabled, spin_hint,
};
use std::time::{Duration, Instant};

/// The lock; all there is of it are its two ends.
#[derive(Clone, Copy, Debug)]
pub struct Biased;

impl Biased {
    /// Puts `value` between an owner and a first visitor.
    ///
    /// ```
    /// use lanecast_os::biased::Biased;
    /// let (mut owner, visitor) = Biased::split(1);
    /// *owner.enter() += 1;
    /// assert_eq!(*visitor.try_enter().expect("nobody is inside"), 2);
    /// ```
    pub fn split<T>(value: T) -> (Owner<T>, Visitor<T>) {
        // Decides for good whether the owner's fence is free, before anybody enters.
        barrier::register();
        let shared = Arc::new(Shared {
            lock_word: CachePadded::new(AtomicU64::new(0)),
            is_visited: CachePadded::new(AtomicBool::new(false)),
            value: UnsafeCell::new(value),
        });
        (Owner { shared: Arc::clone(&shared), lock_word: 0 }, Visitor { shared })
    }
}

struct Shared<T> {
    /// How often the owner has come and gone: odd while it is inside or knocks. It alone writes.
    lock_word: CachePadded<AtomicU64>,
    /// Whether a visitor is inside or announced.
    is_visited: CachePadded<AtomicBool>,
    value: UnsafeCell<T>,
}

// SAFETY: at any time at most one thread is inside, and it alone reaches the value.
unsafe impl<T: Send> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Shared<T> {}

/// The end for which entering is nearly free.
///
/// When it is dropped, visitors go on.
pub struct Owner<T> {
    shared: Arc<Shared<T>>,
    /// What the shared mark holds.
    lock_word: u64,
}

impl<T> Owner<T> {
    /// Goes inside; waits while a visitor is there.
    #[inline]
    pub fn lock(&mut self) -> OwnerGuard<'_, T> {
        if !self.announce() {
            self.lock_after_visitor();
        }
        OwnerGuard { owner: self, value: PhantomData }
    }

    /// Marks the owner as inside; false if a visitor is there.
    #[inline(always)]
    fn announce(&mut self) -> bool {
        self.lock_word = (self.lock_word + 1) | 1;
        // Relaxed: a visitor that finds it does not go in.
        self.shared.lock_word.store(self.lock_word, Ordering::Relaxed);
        light_fence();
        // PAIRS(biased-visit): acquire here, release where a visitor leaves.
        !self.shared.is_visited.load(Ordering::Acquire)
    }

    #[cold]
    fn lock_after_visitor(&mut self) {
        let mut spins = 0;
        loop {
            // Whoever is announced but not yet inside may go first.
            self.unlock();
            while self.shared.is_visited.load(Ordering::Relaxed) {
                spin_or_yield(&mut spins);
            }
            if self.announce() {
                return;
            }
        }
    }

    #[inline(always)]
    fn unlock(&mut self) {
        self.lock_word += 1;
        // PAIRS(biased-stay): release here, acquire where a visitor looks.
        self.shared.lock_word.store(self.lock_word, Ordering::Release);
    }
}

/// The end of those who come rarely.
pub struct Visitor<T> {
    shared: Arc<Shared<T>>,
}

impl<T> Visitor<T> {
    /// Goes inside, unless the owner or another visitor is there. It costs some microseconds.
    pub fn try_lock(&self) -> Option<VisitorGuard<'_, T>> {
        // A look that costs nothing spares the owner a wait, and the CPUs a barrier.
        let is_inside = self.shared.lock_word.load(Ordering::Relaxed) % 2 == 1;
        if is_inside { None } else { self.try_lock_while(|| false) }
    }

    /// Goes inside as soon as the owner and the other visitors let it, unless that takes longer
    /// than `limit`.
    pub fn try_lock_for(&self, limit: Duration) -> Option<VisitorGuard<'_, T>> {
        let (start, mut spins) = (Instant::now(), 0);
        self.try_lock_while(|| {
            spin_or_yield(&mut spins);
            start.elapsed() < limit
        })
    }

    /// How often the owner has entered until now, give or take its knocks while visitors were
    /// inside: if it stays the same, the owner stays away.
    pub fn lock_count(&self) -> u64 {
        self.shared.lock_word.load(Ordering::Relaxed).div_ceil(2)
    }

    /// Goes inside; where somebody is in the way, again and again while `keep_trying` says so.
    fn try_lock_while(&self, mut keep_trying: impl FnMut() -> bool) -> Option<VisitorGuard<'_, T>> {
        let Shared { lock_word, is_visited, .. } = &*self.shared;
        // Relaxed: the fence below follows. What a visitor before this one did is seen then.
        while is_visited
            .compare_exchange(false, true, Ordering::Relaxed, Ordering::Relaxed)
            .is_err()
        {
            if !keep_trying() {
                return None;
            }
        }
        let guard = VisitorGuard { shared: &self.shared, value: PhantomData };
        if !barrier::heavy_fence() && light_fences_enabled() {
            return None; // The owner relies on barriers that the system now refuses.
        }
        // From here on the owner finds this visitor whenever it knocks.
        // PAIRS(biased-stay): acquire here, release where the owner leaves.
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

/// The owner's way to the value. It lets others in when it is dropped.
pub struct OwnerGuard<'a, T> {
    owner: &'a mut Owner<T>,
    /// What it gives: so it may go where that may.
    value: PhantomData<&'a mut T>,
}

impl<T> Deref for OwnerGuard<'_, T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the owner is inside, hence nobody else is.
        self.owner.shared.value.with(|value| unsafe { &*value })
    }
}

impl<T> DerefMut for OwnerGuard<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the owner is inside, hence nobody else is.
        self.owner.shared.value.with_mut(|value| unsafe { &mut *value })
    }
}

impl<T> Drop for OwnerGuard<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.owner.unlock();
    }
}

/// A visitor's way to the value. It lets others in when it is dropped.
pub struct VisitorGuard<'a, T> {
    shared: &'a Shared<T>,
    /// What it gives: so it may go where that may.
    value: PhantomData<&'a mut T>,
}

impl<T> Deref for VisitorGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: this visitor is inside, hence nobody else is.
        self.shared.value.with(|value| unsafe { &*value })
    }
}

impl<T> DerefMut for VisitorGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this visitor is inside, hence nobody else is.
        self.shared.value.with_mut(|value| unsafe { &mut *value })
    }
}

impl<T> Drop for VisitorGuard<'_, T> {
    fn drop(&mut self) {
        // Also a visitor that was not let in hands on what those before it did.
        // PAIRS(biased-visit): release here, acquire where the owner knocks.
        self.shared.is_visited.store(false, Ordering::Release);
    }
}

/// Looks before the core is given away: whoever is inside rarely stays for long.
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
