//! Block of a pipe: as many values as fit into a cache line beside the block's word.
//!
//! ```text
//!   0        8        16                                 64
//!   +--------+--------+--------+-- - - - --+--------------+
//!   |  word  | value  | value  |           |   (unused)   |     larger values: one in a block
//!   +--------+--------+--------+-- - - - --+--------------+     of more lines
//! ```
//!
//! The word is the position up to which values of this block are published. Positions only grow, so
//! a word of the previous lap means "none yet", and blocks are never reset.

use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use lanecast_base::sync::{AtomicU64, UnsafeCell};

const LINE: usize = 64;

/// Memory of a value.
type Cell<T> = UnsafeCell<MaybeUninit<T>>;

/// A block of a chunk.
///
/// Address of a block. Its chunk outlives it: both ends of a pipe share the chunk, and only the end
/// that has left a chunk frees it.
pub(super) struct Block<T> {
    at: NonNull<u8>,
    _values: PhantomData<*mut T>,
}

impl<T> Clone for Block<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Block<T> {}

impl<T> PartialEq for Block<T> {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl<T> Block<T> {
    /// Offset of the first value.
    const FIRST: usize = size_of::<AtomicU64>().next_multiple_of(align_of::<Cell<T>>());

    /// Number of values in a block.
    pub(super) const VALUES: usize = Self::values();

    /// The distance from one block to the next.
    pub(super) const BYTES: usize =
        (Self::FIRST + Self::VALUES * size_of::<Cell<T>>()).next_multiple_of(Self::ALIGN);

    /// Alignment of a block.
    pub(super) const ALIGN: usize =
        if align_of::<Cell<T>>() > LINE { align_of::<Cell<T>>() } else { LINE };

    const fn values() -> usize {
        if cfg!(loom) {
            return 2; // Small, so that few steps cross a block.
        }
        let room = LINE.saturating_sub(Self::FIRST);
        match room.checked_div(size_of::<Cell<T>>()) {
            None => LINE, // Values without size: any number fits.
            Some(0) => 1,
            Some(count) => count,
        }
    }

    /// The block at `at`.
    ///
    /// # Safety
    /// The memory at `at` is a block's, and lives as long as the block is used.
    pub(super) const unsafe fn new(at: NonNull<u8>) -> Self {
        Self { at, _values: PhantomData }
    }

    /// Initialises zeroed memory as a block without published values.
    ///
    /// # Safety
    /// No other thread has access to the block yet.
    #[cfg_attr(not(loom), allow(clippy::unused_self, reason = "zeroes are a block already"))]
    pub(super) unsafe fn make(self) {
        #[cfg(loom)]
        {
            // SAFETY: the word lies at the beginning of the block.
            unsafe { self.at.cast::<AtomicU64>().write(AtomicU64::new(0)) };
            for slot in 0..Self::VALUES {
                let cell = self.cell(slot);
                // SAFETY: the cell lies within the block.
                unsafe { cell.write(Cell::new(MaybeUninit::uninit())) };
            }
        }
    }

    /// The word: position up to which values of this block are published.
    #[inline(always)]
    pub(super) fn word<'a>(self) -> &'a AtomicU64 {
        // SAFETY: a block begins with its word, and lives while it is used.
        unsafe { self.at.cast().as_ref() }
    }

    #[inline(always)]
    fn cell(self, slot: usize) -> NonNull<Cell<T>> {
        debug_assert!(slot < Self::VALUES);
        let offset = Self::FIRST + slot * size_of::<Cell<T>>();
        // SAFETY: all slots lie within the block.
        unsafe { self.at.add(offset) }.cast()
    }

    /// Puts `value` into an empty slot.
    ///
    /// # Safety
    /// `slot` is below [`VALUES`](Self::VALUES), and only the caller accesses it.
    #[inline(always)]
    pub(super) unsafe fn put(self, slot: usize, value: T) {
        // SAFETY: the cell lies within the block, which lives.
        let cell = unsafe { self.cell(slot).as_ref() };
        cell.with_mut(|place| {
            // SAFETY: the slot is the caller's alone.
            unsafe { place.write(MaybeUninit::new(value)) };
        });
    }

    /// Takes the value out of a slot, which is empty afterwards.
    ///
    /// # Safety
    /// `slot` is below [`VALUES`](Self::VALUES), holds a value, and only the caller accesses it.
    #[inline(always)]
    pub(super) unsafe fn take(self, slot: usize) -> T {
        // SAFETY: the cell lies within the block, which lives.
        let cell = unsafe { self.cell(slot).as_ref() };
        let value = cell.with_mut(|place| {
            // SAFETY: the slot is the caller's alone.
            unsafe { place.read() }
        });
        // SAFETY: there is a value in it.
        unsafe { value.assume_init() }
    }

    /// The block behind this one, in the same chunk.
    ///
    /// # Safety
    /// This is not the chunk's last block.
    #[inline(always)]
    pub(super) const unsafe fn next(self) -> Self {
        // SAFETY: the next block lies in the same chunk.
        let at = unsafe { self.at.add(Self::BYTES) };
        // SAFETY: as above.
        unsafe { Self::new(at) }
    }

    /// The block before this one, in the same chunk.
    ///
    /// # Safety
    /// This is not the chunk's first block.
    pub(super) const unsafe fn previous(self) -> Self {
        // SAFETY: the previous block lies in the same chunk.
        let at = unsafe { self.at.sub(Self::BYTES) };
        // SAFETY: as above.
        unsafe { Self::new(at) }
    }

    /// Hints that the block `distance` blocks behind this one will be written soon.
    #[inline(always)]
    pub(super) fn prefetch_for_writing(self, distance: usize) {
        let line = self.at.as_ptr().wrapping_add(distance * Self::BYTES);
        // The intrinsic becomes a fetch for reading, which takes the line twice, unless the whole
        // program is built for newer processors. Those without the instruction skip it.
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        // SAFETY: a hint may point anywhere.
        unsafe {
            core::arch::asm!(
                "prefetchw [{line}]",
                line = in(reg) line,
                options(nostack, preserves_flags, readonly),
            );
        }
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        let _ = line;
    }
}
