//! A reader's copy of one message: if the publisher evicts, only a copy is sure to stay whole.

use crate::memory::Memory;
use crate::ring_reader::RingReader;
use std::ptr::NonNull;

/// Buffer for the longest message, allocated once.
#[derive(Debug)]
pub(crate) struct CopyBuffer {
    bytes: Vec<u8>,
}

impl CopyBuffer {
    pub(crate) fn new(longest: u32) -> Self {
        Self { bytes: Vec::with_capacity(longest as usize) }
    }

    /// Copies the message of `length` bytes at `body` in `reader`'s ring; `None` if the publisher
    /// evicted the reader before the copy was complete.
    #[inline]
    pub(crate) fn copy<M: Memory>(
        &mut self,
        body: NonNull<u8>,
        length: usize,
        reader: &RingReader<M>,
    ) -> Option<&[u8]> {
        self.bytes.clear();
        self.bytes.reserve(length);
        // SAFETY: the source lies in the ring, which is mapped twice and whose window is eight
        // times the checked length; the target has space for as many bytes. Bytes that the
        // publisher overwrites meanwhile are discarded: the eviction is visible before them.
        unsafe {
            core::ptr::copy_nonoverlapping(body.as_ptr(), self.bytes.as_mut_ptr(), length);
        }
        // SAFETY: the copy has written `length` bytes.
        unsafe { self.bytes.set_len(length) };
        (!reader.is_evicted()).then_some(&self.bytes)
    }
}
