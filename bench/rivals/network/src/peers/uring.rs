//! UDP by io_uring: sends and receives are entries of rings, and a system call hands over several.
//!
//! The socket and both rings belong to the measured thread. Work of the kernel waits until that
//! thread calls, and a flag in shared memory says that there is some: so a receiver that spins
//! makes no system call while nothing comes.

use std::collections::VecDeque;
use std::io::Error;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};

use anyhow::{Context, Result};
use io_uring::types::{BufRingEntry, Fd};
use io_uring::{IoUring, cqueue, opcode, squeue};

use super::ringed::DatagramRing;
use super::socket::{Pair, is_harmless};
use crate::place::Place;

/// Datagrams that may be on their way out.
const OUT: u16 = 128;
/// Entries of the ring of calls: all datagrams, and the call that receives.
const ENTRIES: u32 = 256;
/// Buffers for receiving.
const IN: u16 = 256;
/// Room for a datagram.
const ROOM: usize = 2048;
/// Group of the buffers for receiving.
const GROUP: u16 = 0;
/// Mark of the call that receives; others have the number of their datagram.
const RECEIVING: u64 = u64::MAX;
const GET_EVENTS: u32 = 1;

/// A page of entries, each of which tells the kernel of a buffer.
#[repr(C, align(4096))]
struct Page([u8; 4096]);

const _: () = assert!(size_of::<Page>() >= IN as usize * size_of::<BufRingEntry>());

/// Buffers that the kernel takes for what it receives.
struct Buffers {
    /// Both are leaked until the ring is gone.
    page: NonNull<Page>,
    rooms: NonNull<u8>,
    tail: u16,
}

impl Buffers {
    fn new() -> Self {
        let rooms = vec![0_u8; usize::from(IN) * ROOM].leak();
        let page = Box::leak(Box::new(Page([0; 4096])));
        let mut buffers = Self { page: page.into(), rooms: NonNull::from(rooms).cast(), tail: 0 };
        (0..IN).for_each(|number| buffers.give(number));
        buffers
    }

    fn room(&self, number: u16) -> NonNull<u8> {
        // SAFETY: numbers are below `IN`, so the offset is within the rooms.
        unsafe { self.rooms.byte_add(usize::from(number) * ROOM) }
    }

    /// A datagram that the kernel has put into a buffer.
    fn bytes(&self, number: u16, length: usize) -> &[u8] {
        assert!(number < IN && length <= ROOM, "the kernel names a buffer");
        let room = self.room(number).as_ptr();
        // SAFETY: the kernel has handed over the buffer, and it is given back after this borrow.
        unsafe { std::slice::from_raw_parts(room, length) }
    }

    /// Gives a buffer to the kernel.
    fn give(&mut self, number: u16) {
        let entries = self.page.cast::<BufRingEntry>();
        // SAFETY: the page has `IN` entries.
        let mut place = unsafe { entries.add(usize::from(self.tail % IN)) };
        // SAFETY: there are as many places as buffers, so the kernel has read this one.
        let entry = unsafe { place.as_mut() };
        entry.set_addr(self.room(number).as_ptr() as u64);
        entry.set_len(ROOM as u32);
        entry.set_bid(number);
        self.tail = self.tail.wrapping_add(1);
        // SAFETY: the first entry of the page, where the tail is.
        let tail = unsafe { BufRingEntry::tail(entries.as_ptr()) };
        // SAFETY: an aligned word, which only this thread writes and the kernel reads.
        let tail = unsafe { AtomicU16::from_ptr(tail.cast_mut()) };
        // PAIRS(bench-uring-buffers): the kernel acquires the tail before it reads the entry.
        tail.store(self.tail, Ordering::Release);
    }
}

/// A socket whose calls go by io_uring.
pub struct Uring {
    ring: IoUring,
    socket: Pair,
    buffers: Buffers,
    /// Rooms of the datagrams that are sent, and the numbers of those that are here; the last is
    /// the next.
    out: Vec<[u8; ROOM]>,
    free: Vec<u16>,
    /// Received datagrams: buffer and length.
    arrived: VecDeque<(u16, usize)>,
    /// Whether a call that receives is under way.
    receiving: bool,
    /// Whether the kernel receives many datagrams by one call.
    many: bool,
}

impl std::fmt::Debug for Uring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Uring")
    }
}

impl Uring {
    /// Opens a socket to one other host.
    ///
    /// # Errors
    ///
    /// When the kernel has no io_uring, or not the parts that are needed here.
    pub fn new(place: &Place) -> Result<Self> {
        // One that does not wait would have the kernel fail calls instead of completing them later.
        let socket = Pair::unicast(place, true)?;
        let mut builder = IoUring::builder();
        builder.setup_single_issuer().setup_defer_taskrun().setup_taskrun_flag();
        let ring = builder.setup_cqsize(4 * ENTRIES).build(ENTRIES);
        let ring =
            ring.context("no io_uring: it needs Linux 6.1, and kernel.io_uring_disabled=0")?;
        let buffers = Buffers::new();
        let page = buffers.page.as_ptr() as u64;
        // SAFETY: the page is of that many entries, aligned, and is never freed.
        unsafe { ring.submitter().register_buf_ring_with_flags(page, IN, GROUP, 0) }
            .context("io_uring takes no buffers")?;
        Ok(Self {
            ring,
            socket,
            buffers,
            out: vec![[0; ROOM]; usize::from(OUT)],
            free: (0..OUT).rev().collect(),
            arrived: VecDeque::new(),
            receiving: false,
            many: true,
        })
    }

    fn add(&mut self, entry: &squeue::Entry) {
        let mut queue = self.ring.submission();
        // SAFETY: rooms and buffers stay where they are, and are not touched, until the completion.
        let added = unsafe { queue.push(entry) };
        assert!(added.is_ok(), "the ring has room for all datagrams and the receiving call");
    }

    /// Has the kernel receive.
    fn ask(&mut self) {
        let socket = Fd(self.socket.inward.as_raw_fd());
        let entry = if self.many {
            opcode::RecvMulti::new(socket, GROUP).build()
        } else {
            let one = opcode::Recv::new(socket, std::ptr::null_mut(), ROOM as u32);
            one.buf_group(GROUP).build().flags(squeue::Flags::BUFFER_SELECT)
        };
        self.add(&entry.user_data(RECEIVING));
        self.receiving = true;
    }

    /// Hands all calls to the kernel, and lets it complete what it can.
    fn enter(&mut self) -> Result<()> {
        let calls = self.ring.submission().len() as u32;
        // SAFETY: no argument is given beside the numbers.
        let entered =
            unsafe { self.ring.submitter().enter::<libc::sigset_t>(calls, 0, GET_EVENTS, None) };
        match entered {
            Ok(_) => Ok(()),
            Err(error) if is_harmless(&error) || error.raw_os_error() == Some(libc::EBUSY) => {
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Takes the completions that are there.
    fn reap(&mut self) -> Result<()> {
        loop {
            let Some(entry) = self.ring.completion().next() else { return Ok(()) };
            let result = usize::try_from(entry.result());
            let error = Error::from_raw_os_error(-entry.result());
            if entry.user_data() != RECEIVING {
                self.free.push(entry.user_data() as u16);
                if result.is_err() && !is_harmless(&error) {
                    return Err(error).context("cannot send");
                }
                continue;
            }
            self.receiving &= cqueue::more(entry.flags());
            if let Ok(length) = result {
                let buffer = cqueue::buffer_select(entry.flags());
                self.arrived.push_back((buffer.context("a datagram without a buffer")?, length));
            } else if self.many && error.raw_os_error() == Some(libc::EINVAL) {
                // Kernels before 6.0 receive one datagram by one call.
                self.many = false;
            } else if error.raw_os_error() != Some(libc::ENOBUFS) && !is_harmless(&error) {
                return Err(error).context("cannot receive");
            }
        }
    }
}

impl DatagramRing for Uring {
    #[inline]
    fn room(&mut self) -> Result<Option<&mut [u8]>> {
        if self.free.is_empty() {
            self.reap()?;
        }
        let Some(number) = self.free.last() else { return Ok(None) };
        Ok(Some(&mut self.out[usize::from(*number)]))
    }

    #[inline]
    fn push(&mut self, length: usize) {
        let Some(number) = self.free.pop() else { return };
        let socket = Fd(self.socket.out.as_raw_fd());
        let room = self.out[usize::from(number)].as_ptr();
        let entry = opcode::Send::new(socket, room, length as u32).build();
        self.add(&entry.user_data(number.into()));
    }

    #[inline]
    fn submit(&mut self) -> Result<bool> {
        if self.ring.submission().is_empty() {
            return Ok(true);
        }
        self.enter()?;
        Ok(self.ring.submission().is_empty())
    }

    #[inline]
    fn receive(&mut self, mut each: impl FnMut(&[u8])) -> Result<()> {
        if !self.receiving {
            self.ask();
            self.enter()?;
        } else if self.ring.submission().taskrun() {
            self.enter()?;
        }
        self.reap()?;
        while let Some((buffer, length)) = self.arrived.pop_front() {
            each(self.buffers.bytes(buffer, length));
            self.buffers.give(buffer);
        }
        Ok(())
    }
}
