//! The rings that an AF_XDP socket shares with the kernel.

use std::io::{Error, Result};
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use super::socket::{checked, set_option};

/// The use of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Received frames, from the kernel.
    Receive,
    /// Frames to send, to the kernel.
    Transmit,
    /// Empty frames, to the kernel.
    Fill,
    /// Sent frames, from the kernel.
    Completion,
}

/// Option that sets a ring up, and the offset that maps it.
type Numbers = (i32, libc::off_t);

impl Use {
    fn numbers(self) -> Numbers {
        match self {
            Use::Receive => (libc::XDP_RX_RING, libc::XDP_PGOFF_RX_RING),
            Use::Transmit => (libc::XDP_TX_RING, libc::XDP_PGOFF_TX_RING),
            Use::Fill => {
                let offset = libc::XDP_UMEM_PGOFF_FILL_RING as libc::off_t;
                (libc::XDP_UMEM_FILL_RING, offset)
            }
            Use::Completion => {
                let offset = libc::XDP_UMEM_PGOFF_COMPLETION_RING as libc::off_t;
                (libc::XDP_UMEM_COMPLETION_RING, offset)
            }
        }
    }
}

/// One ring, of which this program has one end and the kernel the other.
#[derive(Debug)]
pub struct Ring<T> {
    start: NonNull<u8>,
    bytes: usize,
    producer: NonNull<AtomicU32>,
    consumer: NonNull<AtomicU32>,
    entries: NonNull<T>,
    mask: u32,
    /// Position of this end.
    next: u32,
    /// Position of the other end, when it was last looked at.
    other: u32,
}

impl<T: Copy> Ring<T> {
    /// Sets up a ring of `entries`, a power of two.
    pub fn map(socket: &OwnedFd, kind: Use, entries: u32) -> Result<Self> {
        let (option, at) = kind.numbers();
        set_option(socket, option, &entries)?;
        let offsets = offsets(socket, kind)?;
        let bytes = offsets.desc as usize + entries as usize * size_of::<T>();
        let (protection, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_POPULATE);
        let (fd, anywhere) = (socket.as_raw_fd(), std::ptr::null_mut());
        // SAFETY: a new mapping, at an address that the kernel chooses.
        let start = unsafe { libc::mmap(anywhere, bytes, protection, flags, fd, at) };
        let start = NonNull::new(start.cast::<u8>()).filter(|_| start != libc::MAP_FAILED);
        let start = start.ok_or_else(Error::last_os_error)?;
        // SAFETY: the kernel's offset of its word, within the mapping.
        let producer = unsafe { start.byte_add(offsets.producer as usize) }.cast();
        // SAFETY: the same for the other word.
        let consumer = unsafe { start.byte_add(offsets.consumer as usize) }.cast();
        // SAFETY: the same for the entries, which end with the mapping.
        let first = unsafe { start.byte_add(offsets.desc as usize) }.cast();
        let (mask, next, other) = (entries - 1, 0, 0);
        Ok(Self { start, bytes, producer, consumer, entries: first, mask, next, other })
    }

    /// The next entry of the kernel.
    #[inline(always)]
    pub fn take(&mut self) -> Option<T> {
        if self.next == self.other {
            // PAIRS(bench-xdp-ring): the kernel releases its position after the entries before it.
            self.other = word(&self.producer).load(Ordering::Acquire);
            if self.next == self.other {
                return None;
            }
        }
        let place = self.place();
        // SAFETY: the kernel has written this entry, and leaves it alone until it is released.
        Some(unsafe { place.read() })
    }

    /// Returns the places of all entries that were taken.
    #[inline(always)]
    pub fn release(&self) {
        // PAIRS(bench-xdp-ring): the kernel acquires it before it writes these places again.
        word(&self.consumer).store(self.next, Ordering::Release);
    }

    /// Adds an entry for the kernel. There are never more frames than places.
    #[inline(always)]
    pub fn push(&mut self, entry: T) {
        let place = self.place();
        // SAFETY: the frame of the entry that stood here has come back, so the kernel has read it.
        unsafe { place.write(entry) };
    }

    /// Shows the kernel all entries that were pushed.
    #[inline(always)]
    pub fn publish(&self) {
        // PAIRS(bench-xdp-ring): the kernel acquires it before it reads the entries.
        word(&self.producer).store(self.next, Ordering::Release);
    }

    /// Whether the kernel has read all of them.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        // The frames come back by another ring: this only tells whether to call again.
        word(&self.consumer).load(Ordering::Relaxed) == self.next
    }

    #[inline(always)]
    fn place(&mut self) -> NonNull<T> {
        let index = (self.next & self.mask) as usize;
        self.next = self.next.wrapping_add(1);
        // SAFETY: the mask keeps the index below the number of entries.
        unsafe { self.entries.add(index) }
    }
}

#[inline(always)]
fn word(at: &NonNull<AtomicU32>) -> &AtomicU32 {
    // SAFETY: an aligned word of a mapping that the ring, which is borrowed, keeps.
    unsafe { at.as_ref() }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        // SAFETY: the mapping is this ring's alone, and nothing borrows from it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

fn offsets(socket: &OwnedFd, kind: Use) -> Result<libc::xdp_ring_offset> {
    // SAFETY: all bits zero are valid numbers.
    let mut all: libc::xdp_mmap_offsets = unsafe { std::mem::zeroed() };
    let mut length = size_of_val(&all) as libc::socklen_t;
    let (fd, to) = (socket.as_raw_fd(), (&raw mut all).cast());
    // SAFETY: `all` is writable for the given length.
    let result =
        unsafe { libc::getsockopt(fd, libc::SOL_XDP, libc::XDP_MMAP_OFFSETS, to, &mut length) };
    checked(result)?;
    Ok(match kind {
        Use::Receive => all.rx,
        Use::Transmit => all.tx,
        Use::Fill => all.fr,
        Use::Completion => all.cr,
    })
}
