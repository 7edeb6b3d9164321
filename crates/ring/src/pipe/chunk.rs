//! Chunk: contiguous blocks; the whole of a bounded pipe, or a link of an unbounded one's chain.

use super::block::Block;
use core::alloc::Layout;
use core::marker::PhantomData;
use core::ptr::{NonNull, null_mut};
use lanecast_base::sync::{AtomicPtr, Ordering, UnsafeCell};
use std::alloc::{alloc_zeroed, dealloc, handle_alloc_error};

/// Header before the blocks.
#[derive(Debug)]
pub(super) struct Head {
    /// Number of blocks. Constant, but the model checker must see the reads.
    blocks: UnsafeCell<usize>,
    /// The next chunk, once the writer has needed it; in a ring the chunk itself.
    next: AtomicPtr<Head>,
    /// The previous chunk; accessed by the writer only.
    previous: UnsafeCell<*mut Head>,
}

/// A chunk, by the address of its head.
pub(super) struct Chunk<T> {
    head: NonNull<Head>,
    _values: PhantomData<*mut T>,
}

impl<T> Clone for Chunk<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Chunk<T> {}

impl<T> Chunk<T> {
    /// Offset of the first block.
    const FIRST: usize = size_of::<Head>().next_multiple_of(Block::<T>::ALIGN);

    const fn align() -> usize {
        if align_of::<Head>() > Block::<T>::ALIGN { align_of::<Head>() } else { Block::<T>::ALIGN }
    }

    fn layout(blocks: usize) -> Option<Layout> {
        let bytes = blocks.checked_mul(Block::<T>::BYTES)?.checked_add(Self::FIRST)?;
        Layout::from_size_align(bytes, Self::align()).ok()
    }

    /// A chunk of `blocks` blocks (at least one) without published values; `None` without memory.
    pub(super) fn try_new(blocks: usize) -> Option<Self> {
        let layout = Self::layout(blocks)?;
        // SAFETY: the layout's size is that of a head and more, and so not zero.
        let memory = unsafe { alloc_zeroed(layout) };
        let head = NonNull::new(memory.cast::<Head>())?;
        let new = Head {
            blocks: UnsafeCell::new(blocks),
            next: AtomicPtr::new(null_mut()),
            previous: UnsafeCell::new(null_mut()),
        };
        // SAFETY: the memory is new, aligned for a head, and large enough.
        unsafe { head.write(new) };
        let chunk = Self { head, _values: PhantomData };
        if cfg!(loom) {
            for index in 0..blocks {
                // SAFETY: no other thread has access to the chunk yet.
                unsafe { chunk.block(index).make() };
            }
        }
        Some(chunk)
    }

    /// As [`try_new`](Self::try_new), but aborts without memory.
    pub(super) fn new(blocks: usize) -> Self {
        Self::try_new(blocks).unwrap_or_else(|| {
            handle_alloc_error(Self::layout(blocks).unwrap_or(Layout::new::<Head>()))
        })
    }

    /// Frees the memory, without dropping values in it.
    ///
    /// # Safety
    /// Neither end uses the chunk any more.
    pub(super) unsafe fn free(self) {
        let layout = Self::layout(self.blocks()).expect("it was made with this layout");
        // SAFETY: the caller guarantees that this is the last use; the layout is that of `try_new`.
        unsafe { dealloc(self.head.cast().as_ptr(), layout) };
    }

    fn head<'a>(self) -> &'a Head {
        // SAFETY: a chunk lives while it is used, and no `&mut` to its head exists.
        unsafe { self.head.as_ref() }
    }

    fn blocks(self) -> usize {
        // SAFETY: it is never written after the start.
        self.head().blocks.with(|blocks| unsafe { *blocks })
    }

    /// The block `index`, which is below their number.
    fn block(self, index: usize) -> Block<T> {
        debug_assert!(index < self.blocks());
        let offset = Self::FIRST + index * Block::<T>::BYTES;
        // SAFETY: all blocks lie within the chunk.
        let at = unsafe { self.head.cast::<u8>().add(offset) };
        // SAFETY: here lies a block, which lives as long as the chunk.
        unsafe { Block::new(at) }
    }

    pub(super) fn first(self) -> Block<T> {
        self.block(0)
    }

    pub(super) fn last(self) -> Block<T> {
        self.block(self.blocks() - 1)
    }

    /// The next chunk, if the writer has linked one.
    pub(super) fn next(self) -> Option<Self> {
        // PAIRS(chunk): acquire here, release in `link`.
        Self::from_raw(self.head().next.load(Ordering::Acquire))
    }

    /// The previous chunk. Called by the writer only.
    pub(super) fn previous(self) -> Option<Self> {
        // SAFETY: only the writer reads and writes it.
        Self::from_raw(self.head().previous.with(|previous| unsafe { *previous }))
    }

    /// Links the new chunk `next` behind this one. Called by the writer only.
    pub(super) fn link(self, next: Self) {
        // Relaxed: the reader sees the chunk only after the link below.
        next.head().next.store(null_mut(), Ordering::Relaxed);
        // SAFETY: only the writer reads and writes it.
        next.head().previous.with_mut(|previous| unsafe { *previous = self.into_raw() });
        // PAIRS(chunk): release here, acquire in `next`: the new chunk is initialised before.
        self.head().next.store(next.into_raw(), Ordering::Release);
    }

    /// Closes a ring: this chunk becomes its own next one.
    pub(super) fn close_circle(self) {
        // Relaxed: done before any other thread has access to the chunk.
        self.head().next.store(self.into_raw(), Ordering::Relaxed);
        // SAFETY: as above.
        self.head().previous.with_mut(|previous| unsafe { *previous = self.into_raw() });
    }

    pub(super) const fn into_raw(self) -> *mut Head {
        self.head.as_ptr()
    }

    /// The chunk whose head is at `head`; none if that is null.
    pub(super) fn from_raw(head: *mut Head) -> Option<Self> {
        NonNull::new(head).map(|head| Self { head, _values: PhantomData })
    }
}
