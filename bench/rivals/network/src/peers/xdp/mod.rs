//! Frames past the kernel's network stack: an AF_XDP socket in copy mode, without any protocol
//! above UDP.
//!
//! Both ends belong to the measured thread. A small program on the interface takes the frames of
//! this end's port; all others go on to the kernel.

mod headers;
mod program;
mod rings;
mod socket;

use std::io::Error;
use std::net::{SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;

use anyhow::{Context, Result, bail};

use super::ringed::DatagramRing;
use crate::place::Place;
use headers::{HEADERS, Headers, Interface, datagram};
use rings::{Ring, Use};

/// Frames for sending, as many for receiving, and the entries of each ring.
const FRAMES: u32 = 2048;
/// Bytes of a frame.
const FRAME: usize = 2048;
/// Frames that are handed over at once.
const MOST: usize = 64;

/// Memory of all frames, which the kernel reads and writes too.
#[derive(Debug)]
struct Memory(NonNull<u8>);

impl Memory {
    const BYTES: usize = 2 * FRAMES as usize * FRAME;

    fn new() -> Result<Self> {
        let (anywhere, protection) = (std::ptr::null_mut(), libc::PROT_READ | libc::PROT_WRITE);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
        // SAFETY: a new mapping, at an address that the kernel chooses.
        let start = unsafe { libc::mmap(anywhere, Self::BYTES, protection, flags, -1, 0) };
        let start = NonNull::new(start.cast()).filter(|_| start != libc::MAP_FAILED);
        Ok(Self(start.ok_or_else(Error::last_os_error)?))
    }

    /// Bytes of a frame that the kernel does not have.
    #[inline(always)]
    fn frame(&mut self, address: u64, length: usize) -> &mut [u8] {
        assert!(address as usize + length <= Self::BYTES, "the kernel names a frame");
        // SAFETY: the assertion keeps it within the mapping.
        let start = unsafe { self.0.byte_add(address as usize) };
        // SAFETY: the frame is this thread's until it is in a ring again, and `self` is borrowed.
        unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), length) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's alone, and nothing borrows from it any more.
        unsafe { libc::munmap(self.0.as_ptr().cast(), Self::BYTES) };
    }
}

/// The frames of one port of an interface.
#[derive(Debug)]
pub struct Xdp {
    socket: OwnedFd,
    receive: Ring<libc::xdp_desc>,
    transmit: Ring<libc::xdp_desc>,
    fill: Ring<u64>,
    completion: Ring<u64>,
    headers: Headers,
    /// Addresses of frames for sending that are here; the last is the next.
    free: Vec<u64>,
    /// Whether frames wait in the ring for another call.
    pending: bool,
    /// Keeps the program on the interface.
    _link: OwnedFd,
    /// Keeps the port from others.
    _port: UdpSocket,
    /// Behind the socket, which is closed before.
    memory: Memory,
}

impl Xdp {
    /// Opens the interface of this end, for the datagrams of the other one.
    ///
    /// # Errors
    ///
    /// Without rights, and on interfaces that have no place for such a program, as loopback.
    pub fn new(place: &Place) -> Result<Self> {
        let (waiting, beginning) = (v4(place.waiting()?)?, v4(place.beginning()?)?);
        let begins = place.role.begins();
        let (own, other) = if begins { (beginning, waiting) } else { (waiting, beginning) };
        let port = UdpSocket::bind(own).with_context(|| format!("cannot bind {own}"))?;
        let interface = Interface::of(place.local)?;
        let headers = Headers::new(interface, own, other)?;
        let (memory, socket) = (Memory::new()?, socket::open().context("no AF_XDP")?);
        socket::register(&socket, memory.0.as_ptr() as u64, Memory::BYTES, FRAME)
            .context("no memory for AF_XDP")?;
        let mut fill = Ring::map(&socket, Use::Fill, FRAMES)?;
        let completion = Ring::map(&socket, Use::Completion, FRAMES)?;
        let receive = Ring::map(&socket, Use::Receive, FRAMES)?;
        let transmit = Ring::map(&socket, Use::Transmit, FRAMES)?;
        let address = |number: u32| u64::from(number) * FRAME as u64;
        (0..FRAMES).for_each(|number| fill.push(address(number)));
        fill.publish();
        socket::bind(&socket, interface.index).context("cannot bind AF_XDP to the interface")?;
        let link = program::attach(&socket, interface.index, own.port())
            .context("cannot attach a program to the interface")?;
        Ok(Self {
            socket,
            receive,
            transmit,
            fill,
            completion,
            headers,
            free: (FRAMES..2 * FRAMES).map(address).collect(),
            pending: false,
            _link: link,
            _port: port,
            memory,
        })
    }

    fn reap(&mut self) {
        while let Some(address) = self.completion.take() {
            self.free.push(address);
        }
        self.completion.release();
    }
}

impl DatagramRing for Xdp {
    #[inline]
    fn room(&mut self) -> Result<Option<&mut [u8]>> {
        if self.free.is_empty() {
            self.reap();
        }
        let Some(address) = self.free.last() else { return Ok(None) };
        Ok(Some(&mut self.memory.frame(*address, FRAME)[HEADERS..]))
    }

    #[inline]
    fn push(&mut self, length: usize) {
        let Some(addr) = self.free.pop() else { return };
        let whole = HEADERS + length;
        self.headers.write(self.memory.frame(addr, whole), length);
        self.transmit.push(libc::xdp_desc { addr, len: whole as u32, options: 0 });
        self.pending = true;
    }

    #[inline]
    fn submit(&mut self) -> Result<bool> {
        if !self.pending {
            return Ok(true);
        }
        self.transmit.publish();
        let (fd, nothing, nobody) = (self.socket.as_raw_fd(), std::ptr::null(), std::ptr::null());
        // SAFETY: no bytes and no address are read: the call lets the kernel send what is there.
        let sent = unsafe { libc::sendto(fd, nothing, 0, libc::MSG_DONTWAIT, nobody, 0) };
        if sent < 0 {
            let error = Error::last_os_error();
            let for_now = [libc::EAGAIN, libc::EBUSY, libc::ENOBUFS, libc::EINTR];
            if !for_now.iter().any(|code| error.raw_os_error() == Some(*code)) {
                return Err(error.into());
            }
        }
        self.pending = !self.transmit.is_empty();
        Ok(!self.pending)
    }

    #[inline]
    fn receive(&mut self, mut each: impl FnMut(&[u8])) -> Result<()> {
        for count in 0..MOST {
            let Some(entry) = self.receive.take() else {
                if count == 0 {
                    return Ok(());
                }
                break;
            };
            let frame = self.memory.frame(entry.addr, entry.len as usize);
            if frame.len() >= HEADERS {
                each(datagram(frame));
            }
            // The kernel may have left room in front.
            self.fill.push(entry.addr & !(FRAME as u64 - 1));
        }
        self.receive.release();
        self.fill.publish();
        Ok(())
    }
}

fn v4(address: SocketAddr) -> Result<SocketAddrV4> {
    match address {
        SocketAddr::V4(address) => Ok(address),
        SocketAddr::V6(_) => bail!("AF_XDP is measured over IPv4"),
    }
}
