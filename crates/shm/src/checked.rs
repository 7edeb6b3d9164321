//! A reader's own copy of one message: of a publisher that evicts, nothing else is whole for sure.

use crate::memory::Memory;
use crate::read_edge::ReadEdge;
use std::ptr::NonNull;

/// Room for the longest message; taken once.
#[derive(Debug)]
pub(crate) struct Checked {
    bytes: Vec<u8>,
}

impl Checked {
    pub(crate) fn new(longest: u32) -> Self {
        Self { bytes: Vec::with_capacity(longest as usize) }
    }

    /// Copies the message of `length` bytes at `body`, which lies in `edge`'s ring; `None` if the
    /// publisher had taken the reader's place away before the copy was complete.
    #[inline]
    pub(crate) fn copy<M: Memory>(
        &mut self,
        body: NonNull<u8>,
        length: usize,
        edge: &ReadEdge<M>,
    ) -> Option<&[u8]> {
        self.bytes.clear();
        self.bytes.reserve(length);
        // SAFETY: the source lies in the ring, which is mapped twice and whose window is eight
        // times the checked length; the target has room for as many bytes. Bytes that the
        // publisher writes meanwhile are not looked at: the eviction comes before them.
        unsafe {
            core::ptr::copy_nonoverlapping(body.as_ptr(), self.bytes.as_mut_ptr(), length);
        }
        // SAFETY: so many bytes have just been written.
        unsafe { self.bytes.set_len(length) };
        (!edge.is_evicted()).then_some(&self.bytes)
    }
}
