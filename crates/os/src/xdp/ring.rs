//! The rings that an AF_XDP socket shares with the kernel: see "AF_XDP" in the kernel's
//! documentation.
//!
//! Each has one producer and one consumer, of which one is the kernel. Both ends belong to the
//! thread that holds the socket or the queue.

use crate::checked;
use core::ptr::NonNull;
use lanecast_base::sync::{Arc, AtomicU32, Ordering};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// The kind of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RingKind {
    /// Received frames, from the kernel.
    Receive,
    /// Frames to send, to the kernel.
    Transmit,
    /// Empty frames for receiving, to the kernel.
    Fill,
    /// Frames that were sent, from the kernel.
    Completion,
}

impl RingKind {
    const fn option(self) -> i32 {
        match self {
            Self::Receive => libc::XDP_RX_RING,
            Self::Transmit => libc::XDP_TX_RING,
            Self::Fill => libc::XDP_UMEM_FILL_RING,
            Self::Completion => libc::XDP_UMEM_COMPLETION_RING,
        }
    }

    const fn page_offset(self) -> libc::off_t {
        match self {
            Self::Receive => libc::XDP_PGOFF_RX_RING,
            Self::Transmit => libc::XDP_PGOFF_TX_RING,
            Self::Fill => libc::XDP_UMEM_PGOFF_FILL_RING as libc::off_t,
            Self::Completion => libc::XDP_UMEM_PGOFF_COMPLETION_RING as libc::off_t,
        }
    }
}

/// A ring's memory: two positions and the entries, mapped from its socket.
#[derive(Debug)]
struct RingMemory<T> {
    start: NonNull<u8>,
    bytes: usize,
    producer: NonNull<AtomicU32>,
    consumer: NonNull<AtomicU32>,
    entries: NonNull<T>,
    mask: u32,
}

// SAFETY: plain memory shared with the kernel; positions are atomics, entries belong to one end.
unsafe impl<T: Send> Send for RingMemory<T> {}
// SAFETY: a shared reference reaches the atomics only.
unsafe impl<T: Send> Sync for RingMemory<T> {}

impl<T: Copy> RingMemory<T> {
    /// Sets up a ring of `entries`, a power of two, and maps it.
    fn map(socket: BorrowedFd<'_>, kind: RingKind, entries: u32) -> io::Result<Self> {
        crate::socket::set(socket, libc::SOL_XDP, kind.option(), &entries)?;
        let offsets = offsets(socket, kind)?;
        let bytes = offsets.desc as usize + entries as usize * size_of::<T>();
        let (protection, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_POPULATE);
        let (fd, at) = (socket.as_raw_fd(), kind.page_offset());
        // SAFETY: a new mapping, at an address that the kernel chooses.
        let start = unsafe { libc::mmap(core::ptr::null_mut(), bytes, protection, flags, fd, at) };
        let start = NonNull::new(start.cast::<u8>()).filter(|_| start != libc::MAP_FAILED);
        let start = start.ok_or_else(io::Error::last_os_error)?;
        // SAFETY: the kernel's offset of the producer's position, within the mapping.
        let producer = unsafe { start.byte_add(offsets.producer as usize) }.cast();
        // SAFETY: the same for the consumer's.
        let consumer = unsafe { start.byte_add(offsets.consumer as usize) }.cast();
        // SAFETY: the same for the entries, which end with the mapping.
        let first = unsafe { start.byte_add(offsets.desc as usize) }.cast();
        Ok(Self { start, bytes, producer, consumer, entries: first, mask: entries - 1 })
    }

    #[inline(always)]
    fn producer(&self) -> &AtomicU32 {
        // SAFETY: an aligned word of the mapping, which lives as long as `self`.
        unsafe { self.producer.as_ref() }
    }

    #[inline(always)]
    fn consumer(&self) -> &AtomicU32 {
        // SAFETY: as above.
        unsafe { self.consumer.as_ref() }
    }

    /// The entry at a position.
    #[inline(always)]
    fn entry(&self, position: u32) -> NonNull<T> {
        // SAFETY: the mask keeps the index below the number of entries.
        unsafe { self.entries.add((position & self.mask) as usize) }
    }
}

impl<T> Drop for RingMemory<T> {
    fn drop(&mut self) {
        // SAFETY: the mapping is this one's alone, and nothing borrows from it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// The layout of a ring's mapping.
fn offsets(socket: BorrowedFd<'_>, kind: RingKind) -> io::Result<libc::xdp_ring_offset> {
    // SAFETY: all bits zero are valid numbers.
    let mut all: libc::xdp_mmap_offsets = unsafe { core::mem::zeroed() };
    let mut length = size_of_val(&all) as libc::socklen_t;
    let (fd, to) = (socket.as_raw_fd(), (&raw mut all).cast());
    // SAFETY: `all` is writable for the given length.
    let result =
        unsafe { libc::getsockopt(fd, libc::SOL_XDP, libc::XDP_MMAP_OFFSETS, to, &mut length) };
    checked(result)?;
    if (length as usize) < size_of_val(&all) {
        // Kernels before 5.4, whose rings have no flags.
        return Err(io::ErrorKind::Unsupported.into());
    }
    Ok(match kind {
        RingKind::Receive => all.rx,
        RingKind::Transmit => all.tx,
        RingKind::Fill => all.fr,
        RingKind::Completion => all.cr,
    })
}

/// A ring that the kernel fills.
#[derive(Debug)]
pub(super) struct ConsumerRing<T> {
    memory: Arc<RingMemory<T>>,
    /// Position of the next entry to read.
    next: u32,
    /// The kernel's position when it was last loaded.
    until: u32,
}

impl<T: Copy> ConsumerRing<T> {
    pub(super) fn map(socket: BorrowedFd<'_>, kind: RingKind, entries: u32) -> io::Result<Self> {
        let memory = RingMemory::map(socket, kind, entries)?;
        Ok(Self { memory: Arc::new(memory), next: 0, until: 0 })
    }

    /// The number of entries, for other threads.
    pub(super) fn gauge(&self) -> RingGauge<T> {
        RingGauge(Arc::clone(&self.memory))
    }

    /// The next entry. The kernel may use its place again after [`release`](Self::release).
    #[inline(always)]
    pub(super) fn next(&mut self) -> Option<T> {
        if self.next == self.until {
            // PAIRS(xdp-ring): the kernel releases its position after the entries before it.
            self.until = self.memory.producer().load(Ordering::Acquire);
            if self.next == self.until {
                return None;
            }
        }
        let entry = self.memory.entry(self.next);
        self.next = self.next.wrapping_add(1);
        // SAFETY: the kernel has written the entry, and leaves it alone until it is released.
        Some(unsafe { entry.read() })
    }

    /// Takes back the last [`next`](Self::next).
    #[inline(always)]
    pub(super) const fn put_back(&mut self) {
        self.next = self.next.wrapping_sub(1);
    }

    /// Returns the places of all entries that were read.
    #[inline(always)]
    pub(super) fn release(&self) {
        // PAIRS(xdp-ring): the kernel acquires the position before it writes entries again.
        self.memory.consumer().store(self.next, Ordering::Release);
    }
}

/// The number of entries in a ring, as any thread sees it.
#[derive(Debug)]
pub(super) struct RingGauge<T>(Arc<RingMemory<T>>);

impl<T: Copy> RingGauge<T> {
    /// Number of entries that are not released, at about this time.
    pub(super) fn entries(&self) -> u32 {
        let released = self.0.consumer().load(Ordering::Relaxed);
        // Both positions move: never more than the ring holds.
        self.0.producer().load(Ordering::Relaxed).wrapping_sub(released).min(self.0.mask + 1)
    }
}

/// A ring that the kernel empties.
#[derive(Debug)]
pub(super) struct ProducerRing<T> {
    memory: RingMemory<T>,
    /// Position of the next entry to write.
    next: u32,
    /// The kernel's position when it was last loaded.
    consumed: u32,
}

impl<T: Copy> ProducerRing<T> {
    pub(super) fn map(socket: BorrowedFd<'_>, kind: RingKind, entries: u32) -> io::Result<Self> {
        Ok(Self { memory: RingMemory::map(socket, kind, entries)?, next: 0, consumed: 0 })
    }

    /// Whether `count` more entries fit.
    #[inline(always)]
    pub(super) fn has_room(&mut self, count: u32) -> bool {
        let size = self.memory.mask + 1;
        let fits = |consumed| self.next.wrapping_sub(consumed).saturating_add(count) <= size;
        if fits(self.consumed) {
            return true;
        }
        let consumed = self.load_consumed();
        self.consumed = consumed;
        self.next.wrapping_sub(consumed).saturating_add(count) <= size
    }

    #[inline(always)]
    fn load_consumed(&self) -> u32 {
        // PAIRS(xdp-ring): the kernel releases its position after it has read the entries.
        self.memory.consumer().load(Ordering::Acquire)
    }

    /// Adds an entry; the kernel sees it after [`submit`](Self::submit). The caller has made sure
    /// that there is room.
    #[inline(always)]
    pub(super) fn push(&mut self, entry: T) {
        debug_assert!(self.next.wrapping_sub(self.consumed) <= self.memory.mask, "room was found");
        self.write(entry);
    }

    /// Adds an entry that the kernel has taken out of this ring before, and given back. With as
    /// many places as entries there is room for it, even while the kernel's position says
    /// otherwise: it shows received frames first, and its position in the fill ring then.
    #[inline(always)]
    pub(super) fn push_returned(&mut self, entry: T) {
        self.write(entry);
    }

    #[inline(always)]
    fn write(&mut self, entry: T) {
        let place = self.memory.entry(self.next);
        self.next = self.next.wrapping_add(1);
        // SAFETY: the kernel has consumed the entry before, and does not read this one yet.
        unsafe { place.write(entry) };
    }

    /// Shows all entries to the kernel.
    #[inline(always)]
    pub(super) fn submit(&self) {
        // PAIRS(xdp-ring): the kernel acquires the position before it reads entries.
        self.memory.producer().store(self.next, Ordering::Release);
    }

    /// Number of entries that the kernel has not consumed.
    #[inline(always)]
    pub(super) fn entries(&self) -> u32 {
        self.next.wrapping_sub(self.load_consumed())
    }

    /// Whether the kernel has consumed everything.
    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.load_consumed() == self.next
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// A ring of its own memory, with the test in the kernel's place.
    fn ring(entries: u32) -> ProducerRing<u64> {
        let bytes = 16 + entries as usize * size_of::<u64>();
        let (protection, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping, at an address that the kernel chooses.
        let start = unsafe { libc::mmap(core::ptr::null_mut(), bytes, protection, flags, -1, 0) };
        let start = NonNull::new(start.cast::<u8>()).filter(|_| start != libc::MAP_FAILED);
        let start = start.expect("memory");
        // SAFETY: within the mapping, behind the producer's position.
        let consumer = unsafe { start.byte_add(8) }.cast();
        // SAFETY: the same, behind the consumer's.
        let first = unsafe { start.byte_add(16) }.cast();
        let (producer, mask) = (start.cast(), entries - 1);
        let memory = RingMemory { start, bytes, producer, consumer, entries: first, mask };
        ProducerRing { memory, next: 0, consumed: 0 }
    }

    #[test]
    fn frames_come_back_before_the_position_tells_of_their_places() {
        let mut fill = ring(4);
        for frame in 0..4 {
            assert!(fill.has_room(1));
            fill.push(frame);
        }
        fill.submit();
        assert!(!fill.has_room(1));
        // The kernel has taken all, received into three, and is about to tell how far it is.
        (0..3).for_each(|frame| fill.push_returned(frame));
        fill.submit();
        assert_eq!(fill.memory.producer().load(Ordering::Relaxed), 7);
        // SAFETY: the test alone reads and writes the entries.
        let kept = [0, 1, 2, 3].map(|place| unsafe { fill.memory.entry(place).read() });
        assert_eq!(kept, [0, 1, 2, 3], "the place of the frame that is still out is as it was");
        fill.memory.consumer().store(4, Ordering::Relaxed);
        assert!(fill.has_room(1) && !fill.has_room(2));
    }
}
