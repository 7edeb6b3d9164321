//! Memory of a ring: slots that always hold a value. The cursors decide which end may access which
//! slots.

use core::cell::UnsafeCell;
use core::ops::Deref;
use core::ptr::NonNull;
use lanecast_base::prefetch_for_writing;

/// Size of a cache line.
const LINE_BYTES: u64 = 64;
/// Distance at which lines that consumers read a lap ago are prefetched for writing.
const AHEAD_BYTES: u64 = 1024;
/// Distance from which a reader and the writer share no cache line.
const FAR_BYTES: usize = 16 << 10;
/// Bytes prefetched at a time.
const STRETCH_BYTES: u64 = 512;

/// A power of two of slots, addressed by positions that only grow.
pub(crate) struct Slots<T> {
    raw: RawSlots<T>,
}

// SAFETY: one thread writes values and another moves or drops them, hence `Send`; several
// consumers may read one at a time, hence `Sync`. The callers of the unsafe methods below guarantee
// that no thread writes a slot that another one reads.
unsafe impl<T: Send + Sync> Sync for Slots<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Send for Slots<T> {}

impl<T> Slots<T> {
    /// `capacity` slots, a power of two, with values from `factory`.
    pub(crate) fn new(capacity: usize, mut factory: impl FnMut() -> T) -> Self {
        debug_assert!(capacity.is_power_of_two());
        let cells: Box<[_]> = (0..capacity).map(|_| UnsafeCell::new(factory())).collect();
        let first = NonNull::from(Box::leak(cells)).cast();
        Self { raw: RawSlots { first, mask: capacity as u64 - 1 } }
    }

    /// The slots' address, for an end that holds it itself.
    pub(crate) const fn raw(&self) -> RawSlots<T> {
        self.raw
    }
}

impl<T> Deref for Slots<T> {
    type Target = RawSlots<T>;
    #[inline(always)]
    fn deref(&self) -> &RawSlots<T> {
        &self.raw
    }
}

impl<T> Drop for Slots<T> {
    fn drop(&mut self) {
        let slots = NonNull::slice_from_raw_parts(self.raw.first, self.raw.capacity() as usize);
        // SAFETY: `new` leaked them from a box, and no end is left.
        drop(unsafe { Box::from_raw(slots.as_ptr()) });
    }
}

/// The address of slots, valid while they live: a copy saves a producer the way through its ring.
pub(crate) struct RawSlots<T> {
    // In a cell, so that no end's type can be narrowed: a producer of `&'static str` that passed
    // for one of `&'a str` would hand dangling references to the consumers.
    first: NonNull<UnsafeCell<T>>,
    mask: u64,
}

impl<T> Clone for RawSlots<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for RawSlots<T> {}

impl<T> RawSlots<T> {
    #[inline(always)]
    pub(crate) const fn capacity(&self) -> u64 {
        self.mask + 1
    }

    /// Number of values behind the writer from which a reader shares no cache line with it.
    pub(crate) fn far(&self) -> usize {
        (self.capacity() as usize / 4).min(FAR_BYTES / size_of::<T>().max(1))
    }

    /// Number of the `count` slots from `at` on that are contiguous.
    #[inline(always)]
    pub(crate) fn run(&self, at: u64, count: u64) -> usize {
        (self.capacity() - (at & self.mask)).min(count) as usize
    }

    #[inline(always)]
    fn pointer(&self, at: u64) -> *mut T {
        // SAFETY: the masked position is below the number of slots.
        unsafe { self.first.cast::<T>().as_ptr().add((at & self.mask) as usize) }
    }

    /// Prefetches lines behind the slot at `at` for writing, none beyond `limit`; returns the
    /// position of the next prefetch.
    #[inline]
    pub(crate) fn fetch_ahead(&self, at: u64, limit: u64) -> u64 {
        let size = size_of::<T>().max(1) as u64;
        let (stretch, ahead) = ((STRETCH_BYTES / size).max(1), AHEAD_BYTES / size);
        let end = (at + ahead + stretch).min(limit);
        let mut line = at + ahead;
        while line < end {
            prefetch_for_writing(self.pointer(line));
            line += (LINE_BYTES / size).max(1);
        }
        (at + stretch).min(limit)
    }

    /// The slots of a run, to read.
    ///
    /// # Safety
    /// `count` is at most [`run`](Self::run)'s, and no thread writes these slots meanwhile.
    #[inline(always)]
    pub(crate) unsafe fn read(&self, at: u64, count: usize) -> &[T] {
        // SAFETY: the slots exist, hold values, and are only read, as the caller promises.
        unsafe { core::slice::from_raw_parts(self.pointer(at), count) }
    }

    /// The slots of a run, to change.
    ///
    /// # Safety
    /// `count` is at most [`run`](Self::run)'s, and no other thread accesses these slots meanwhile.
    #[inline(always)]
    #[allow(clippy::mut_from_ref, reason = "the cursors give each slot to one end at a time")]
    pub(crate) unsafe fn write(&self, at: u64, count: usize) -> &mut [T] {
        // SAFETY: the slots exist, hold values, and are the caller's alone, as it promises.
        unsafe { core::slice::from_raw_parts_mut(self.pointer(at), count) }
    }
}
