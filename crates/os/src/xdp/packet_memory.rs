//! Memory for frames, shared with the kernel (UMEM), and tokens of the frames in it.

use core::ptr::NonNull;
use std::io;
use std::os::fd::BorrowedFd;

/// A frame's place in the memory. It is owned by one end at a time: the kernel, by a ring, or this
/// process, by this token.
#[derive(Debug)]
pub(super) struct FrameBuffer(u64);

/// Memory of equal frames.
#[derive(Debug)]
pub(super) struct PacketMemory {
    start: NonNull<u8>,
    bytes: usize,
    frame_bytes: usize,
}

// SAFETY: the bytes of a frame are reached by its token only, which one thread has at a time.
unsafe impl Send for PacketMemory {}
// SAFETY: as above.
unsafe impl Sync for PacketMemory {}

impl PacketMemory {
    /// Reserves `frames` of `frame_bytes` each, a power of two of a page at most.
    pub(super) fn new(frames: usize, frame_bytes: usize) -> io::Result<Self> {
        let bytes = frames * frame_bytes;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
        // SAFETY: a new mapping of no file, at an address that the kernel chooses.
        let start = unsafe { libc::mmap(core::ptr::null_mut(), bytes, protection, flags, -1, 0) };
        let start = NonNull::new(start.cast::<u8>()).filter(|_| start != libc::MAP_FAILED);
        Ok(Self { start: start.ok_or_else(io::Error::last_os_error)?, bytes, frame_bytes })
    }

    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Shares the memory with the kernel, which locks it.
    pub(super) fn register(&self, socket: BorrowedFd<'_>) -> io::Result<()> {
        let option = libc::XDP_UMEM_REG;
        crate::socket::set(socket, libc::SOL_XDP, option, &self.registration())
    }

    /// Place and sizes of the memory, for the kernel.
    pub(super) fn registration(&self) -> libc::xdp_umem_reg {
        libc::xdp_umem_reg {
            addr: self.start.as_ptr() as u64,
            len: self.bytes as u64,
            chunk_size: self.frame_bytes as u32,
            headroom: 0,
            flags: 0,
            tx_metadata_len: 0,
        }
    }

    /// The token of frame `index`.
    ///
    /// # Safety
    /// There must be no other token of it, and the kernel must not have it.
    pub(super) const unsafe fn frame(&self, index: usize) -> FrameBuffer {
        FrameBuffer(index as u64 * self.frame_bytes as u64)
    }

    /// The frame that holds `address`, which the kernel has handed back.
    ///
    /// # Safety
    /// The kernel must have given up the frame, and there must be no other token of it.
    pub(super) const unsafe fn returned(&self, address: u64) -> FrameBuffer {
        FrameBuffer(address & !(self.frame_bytes as u64 - 1))
    }

    /// Bytes received at `address`; empty if they do not lie in `frame`.
    pub(super) fn received<'a>(
        &'a self,
        frame: &'a FrameBuffer,
        address: u64,
        length: u32,
    ) -> &'a [u8] {
        let (end, frame_end) = (address.saturating_add(length.into()), self.end(frame));
        if address < frame.0 || end > frame_end || frame_end > self.bytes as u64 {
            return &[];
        }
        // SAFETY: the range lies within the frame, and so within the mapping.
        let start = unsafe { self.start.add(address as usize) };
        // SAFETY: the token shows that only this process touches the frame.
        unsafe { core::slice::from_raw_parts(start.as_ptr(), length as usize) }
    }

    /// The whole frame, to be written.
    pub(super) fn bytes_mut<'a>(&'a self, frame: &'a mut FrameBuffer) -> &'a mut [u8] {
        debug_assert!(self.end(frame) <= self.bytes as u64, "tokens are of this memory");
        // SAFETY: tokens are only made for frames of the mapping.
        let start = unsafe { self.start.add(frame.0 as usize) };
        // SAFETY: the token shows that only this process touches the frame, and is borrowed.
        unsafe { core::slice::from_raw_parts_mut(start.as_ptr(), self.frame_bytes) }
    }

    const fn end(&self, frame: &FrameBuffer) -> u64 {
        frame.0 + self.frame_bytes as u64
    }
}

impl FrameBuffer {
    /// Hands the frame to the kernel: its address, for a ring.
    pub(super) fn into_address(self) -> u64 {
        self.0
    }
}

impl Drop for PacketMemory {
    fn drop(&mut self) {
        // SAFETY: the device drops it after its sockets, and no token can reach it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}
