//! A queue of the network card: the rings through which frames come back, shared by the sockets on
//! it.

use super::packet_memory::{FrameBuffer, PacketMemory};
use super::received::{RESERVE_FRAMES, Received, ReceivedShare, reclaim};
use super::ring::{ConsumerRing, ProducerRing, RingKind};
use super::{FILL_FRAMES, FRAMES_EACH, RING_FRAMES, SEND_FRAMES};
use crate::biased::Owner;
use crate::checked;
use lanecast_base::sync::{Arc, AtomicU64, Ordering};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Entries of the ring that a queue's own socket needs only to be bound.
const UNUSED_ENTRIES: u32 = 8;

/// A queue, and the socket that holds its shared rings.
#[derive(Debug)]
pub(super) struct Queue {
    /// Holds the rings; sends and receives nothing itself.
    holder: OwnedFd,
    index: u32,
    frames: Mutex<Frames>,
    _transmit: ProducerRing<libc::xdp_desc>,
}

/// Frames of a queue that no socket has.
#[derive(Debug)]
pub(super) struct Frames {
    fill: ProducerRing<u64>,
    completion: ConsumerRing<u64>,
    /// Frames for sending.
    free: Vec<FrameBuffer>,
    /// Received frames of the sockets on the queue.
    shares: Vec<ReceivedShare>,
}

impl Queue {
    /// Opens queue `index` by its `holder`, with its share of the `memory`, which the holder of the
    /// queue `first`, or else this one, has registered.
    pub(super) fn open(
        holder: OwnedFd,
        memory: &PacketMemory,
        (interface, index): (u32, u32),
        flags: u16,
        first: Option<&Self>,
    ) -> io::Result<Self> {
        let fill = ProducerRing::map(holder.as_fd(), RingKind::Fill, FILL_FRAMES)?;
        let completion = ConsumerRing::map(holder.as_fd(), RingKind::Completion, SEND_FRAMES)?;
        let transmit = ProducerRing::map(holder.as_fd(), RingKind::Transmit, UNUSED_ENTRIES)?;
        let shared = first.map(|first| first.holder.as_fd());
        bind(holder.as_fd(), interface, index, flags, shared)?;
        let mut frames = Frames { fill, completion, free: Vec::new(), shares: Vec::new() };
        let base = (index * FRAMES_EACH) as usize;
        for number in 0..FRAMES_EACH as usize {
            // SAFETY: each frame is taken once, and the ranges of queues do not overlap.
            let frame = unsafe { memory.frame(base + number) };
            if number < FILL_FRAMES as usize {
                frames.fill.push(frame.into_address());
            } else {
                frames.free.push(frame);
            }
        }
        frames.fill.submit();
        Ok(Self { holder, index, frames: Mutex::new(frames), _transmit: transmit })
    }

    /// Opens a socket of its own rings on this queue, and the share by which the queue takes frames
    /// from it once it is [added](Frames::add_share).
    pub(super) fn open_socket(&self, interface: u32) -> io::Result<(QueueSocket, ReceivedShare)> {
        let fd = socket()?;
        let receive = ConsumerRing::map(fd.as_fd(), RingKind::Receive, RING_FRAMES)?;
        let transmit = ProducerRing::map(fd.as_fd(), RingKind::Transmit, RING_FRAMES)?;
        bind(fd.as_fd(), interface, self.index, 0, Some(self.holder.as_fd()))?;
        let (receive, share) = ReceivedShare::split(receive);
        let reclaimed = Arc::clone(share.reclaimed());
        Ok((QueueSocket { fd: fd.into(), receive, transmit, reclaimed }, share))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Frames> {
        self.frames.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the driver reads and writes frames in the shared memory itself.
    pub(super) fn is_zero_copy(&self) -> bool {
        let options = crate::socket::get(self.holder.as_fd(), libc::SOL_XDP, libc::XDP_OPTIONS);
        options.is_ok_and(|options| options.cast_unsigned() & libc::XDP_OPTIONS_ZEROCOPY != 0)
    }
}

impl Frames {
    /// Adds the share of a socket that stays for as long as the queue.
    pub(super) fn add_share(&mut self, share: ReceivedShare) {
        self.shares.push(share);
    }

    /// Gives frames of received datagrams to the kernel again.
    pub(super) fn refill(&mut self, memory: &PacketMemory, used: &mut Vec<FrameBuffer>) {
        self.push_returned(used);
        self.relieve(memory);
    }

    /// Takes frames from sockets that keep many unread, if the kernel has few empty ones left.
    pub(super) fn relieve(&mut self, memory: &PacketMemory) {
        let empty = self.fill.entries();
        if empty < RESERVE_FRAMES {
            let mut reclaimed = reclaim(&self.shares, empty, memory);
            self.push_returned(&mut reclaimed);
        }
    }

    fn push_returned(&mut self, frames: &mut Vec<FrameBuffer>) {
        for frame in frames.drain(..) {
            self.fill.push_returned(frame.into_address());
        }
        self.fill.submit();
    }

    /// Moves up to `count` frames for sending into `into`.
    pub(super) fn take_free(
        &mut self,
        memory: &PacketMemory,
        count: usize,
        into: &mut Vec<FrameBuffer>,
    ) {
        while let Some(address) = self.completion.next() {
            // SAFETY: the kernel has sent the frame, and hands it back once.
            self.free.push(unsafe { memory.returned(address) });
        }
        self.completion.release();
        let rest = self.free.len().saturating_sub(count);
        into.extend(self.free.drain(rest..));
    }

    /// Takes frames for sending back that were not used.
    pub(super) fn put_back(&mut self, unused: &mut Vec<FrameBuffer>) {
        self.free.append(unused);
    }
}

/// A socket of one owner on a queue.
#[derive(Debug)]
pub(super) struct QueueSocket {
    pub(super) fd: std::sync::Arc<OwnedFd>,
    pub(super) receive: Owner<Received>,
    pub(super) transmit: ProducerRing<libc::xdp_desc>,
    /// Datagrams that were taken from the socket, unread.
    reclaimed: Arc<AtomicU64>,
}

impl QueueSocket {
    /// Datagrams that were dropped for lack of room in the ring, or of empty frames, since the
    /// kernel made the socket: owners before this one included.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped_by_kernel() + self.reclaimed.load(Ordering::Relaxed)
    }

    fn dropped_by_kernel(&self) -> u64 {
        // SAFETY: all bits zero are valid numbers.
        let mut counts: libc::xdp_statistics = unsafe { core::mem::zeroed() };
        let mut length = size_of_val(&counts) as libc::socklen_t;
        let (fd, to) = (self.fd.as_raw_fd(), (&raw mut counts).cast());
        // SAFETY: `counts` is writable for the given length.
        let result =
            unsafe { libc::getsockopt(fd, libc::SOL_XDP, libc::XDP_STATISTICS, to, &mut length) };
        if result < 0 {
            return 0;
        }
        counts.rx_dropped + counts.rx_ring_full
    }

    /// Lets the kernel send what is in the ring.
    #[inline]
    pub(super) fn kick(&self) -> io::Result<()> {
        let flags = libc::MSG_DONTWAIT;
        let sent = crate::raw_io::send::<()>(self.fd.as_raw_fd(), &[], flags, None);
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Lets a driver that waits for empty frames go on.
    pub(super) fn wake_receive(&self) {
        crate::raw_io::receive_nothing(self.fd.as_raw_fd());
    }
}

/// A socket that is bound to nothing yet.
pub(super) fn socket() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
    // SAFETY: it only makes a descriptor.
    let fd = checked(unsafe { libc::socket(libc::AF_XDP, kind, 0) })?;
    // SAFETY: the descriptor is new, and nothing else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Binds a socket to a queue, to share memory, and rings on the same queue, with `shared`.
fn bind(
    socket: BorrowedFd<'_>,
    interface: u32,
    queue: u32,
    flags: u16,
    shared: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let name = libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as u16,
        // A socket takes the options of the one that it shares with.
        sxdp_flags: if shared.is_some() { libc::XDP_SHARED_UMEM } else { flags },
        sxdp_ifindex: interface,
        sxdp_queue_id: queue,
        sxdp_shared_umem_fd: shared.map_or(0, |fd| fd.as_raw_fd().unsigned_abs()),
    };
    let (at, length) = ((&raw const name).cast(), size_of_val(&name) as libc::socklen_t);
    // SAFETY: `name` is readable for the given length.
    checked(unsafe { libc::bind(socket.as_raw_fd(), at, length) }).map(drop)
}
