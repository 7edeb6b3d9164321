//! The façade over atomics: `core` in products, loom in the model checker.
//!
//! Two threads that each write one word and then read the other's (a sleeper and its waker)
//! need a store-load fence on both sides. [`light_fence`] and [`heavy_fence`] are an asymmetric
//! pair: the light fence, on the message path, is free where the kernel offers `membarrier`,
//! because the rare heavy fence makes every CPU pass a barrier on its behalf.
//! Source: membarrier(2), `MEMBARRIER_CMD_GLOBAL_EXPEDITED`.

#![allow(clippy::disallowed_types, reason = "this is the façade")]

#[cfg(not(loom))]
pub use core::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};
#[cfg(loom)]
pub use loom::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};

#[cfg(loom)]
pub use loom::sync::{Arc, Mutex, MutexGuard};
#[cfg(not(loom))]
pub use std::sync::{Arc, Mutex, MutexGuard};

#[cfg(not(loom))]
mod cell {
    /// A value that threads pass to one another, ordered by atomics elsewhere; the model checker
    /// reports unordered accesses.
    ///
    /// ```
    /// use lanecast_base::sync::UnsafeCell;
    /// let cell = UnsafeCell::new(7);
    /// // SAFETY: this thread alone has the cell.
    /// assert_eq!(cell.with(|value| unsafe { *value }), 7);
    /// ```
    #[derive(Debug, Default)]
    #[repr(transparent)]
    pub struct UnsafeCell<T>(core::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        /// Wraps `value`.
        pub const fn new(value: T) -> Self {
            Self(core::cell::UnsafeCell::new(value))
        }

        /// Calls `read` with a pointer to the value.
        #[inline(always)]
        pub fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
            read(self.0.get())
        }

        /// Calls `write` with a mutable pointer to the value.
        #[inline(always)]
        pub fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
            write(self.0.get())
        }
    }
}

#[cfg(not(loom))]
pub use cell::UnsafeCell;
#[cfg(loom)]
pub use loom::cell::UnsafeCell;

#[cfg(not(loom))]
mod asymmetric {
    use core::sync::atomic::{AtomicBool, Ordering, compiler_fence, fence};

    /// Whether this process is registered with the kernel, so that heavy fences of other processes
    /// reach it.
    static REGISTERED: AtomicBool = AtomicBool::new(false);

    /// Makes [`light_fence`] a compiler fence only. Called once, by the crate that registers this
    /// process with `membarrier`: from then on the kernel runs barriers here for heavy fences.
    pub fn enable_light_fences() {
        REGISTERED.store(true, Ordering::Relaxed);
    }

    /// Whether [`light_fence`] is free in this process and relies on the heavy fence of the peer.
    pub fn light_fences_enabled() -> bool {
        REGISTERED.load(Ordering::Relaxed)
    }

    /// Orders earlier stores before later loads, paired with a [`heavy_fence`] of the other thread.
    #[inline(always)]
    pub fn light_fence() {
        if REGISTERED.load(Ordering::Relaxed) {
            // PAIRS(asymmetric): the heavy fence of the other side acts here as well.
            compiler_fence(Ordering::SeqCst);
        } else {
            // PAIRS(asymmetric): a full fence on both sides where the kernel cannot help.
            fence(Ordering::SeqCst);
        }
    }

    /// The expensive fence of the pair. `barrier_everywhere` must make every registered process
    /// pass a barrier (a system call of the caller: this crate makes none).
    #[inline]
    pub fn heavy_fence(barrier_everywhere: impl FnOnce()) {
        // PAIRS(asymmetric): with `light_fence` of the other side.
        fence(Ordering::SeqCst);
        barrier_everywhere();
    }
}

#[cfg(loom)]
mod asymmetric {
    //! loom has no membarrier: both fences are full ones, which gives the same guarantee.
    use super::{Ordering, fence};
    use core::cell::Cell;

    std::thread_local! {
        static FENCES: Cell<bool> = const { Cell::new(true) };
    }

    /// Runs a model in which no thread sleeps, with light fences that do nothing, as in products:
    /// full fences would hide orderings that are missing elsewhere.
    pub fn without_light_fences<T>(model: impl FnOnce() -> T) -> T {
        FENCES.set(false);
        let result = model();
        FENCES.set(true);
        result
    }

    /// Does nothing: loom has no kernel.
    pub fn enable_light_fences() {}

    /// Always false under loom.
    pub fn light_fences_enabled() -> bool {
        false
    }

    /// A full fence, except within [`without_light_fences`].
    pub fn light_fence() {
        if FENCES.get() {
            // PAIRS(asymmetric): with `heavy_fence`.
            fence(Ordering::SeqCst);
        }
    }

    /// A full fence.
    pub fn heavy_fence(_barrier_everywhere: impl FnOnce()) {
        // PAIRS(asymmetric): with `light_fence`.
        fence(Ordering::SeqCst);
    }
}

#[cfg(loom)]
pub use asymmetric::without_light_fences;
pub use asymmetric::{enable_light_fences, heavy_fence, light_fence, light_fences_enabled};

/// Marks a spin loop for the CPU; under the model checker, lets other threads run.
#[inline(always)]
pub fn spin_hint() {
    #[cfg(not(loom))]
    core::hint::spin_loop();
    #[cfg(loom)]
    loom::thread::yield_now();
}
