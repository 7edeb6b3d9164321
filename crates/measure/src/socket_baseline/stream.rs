//! A stream, written message by message or many at once.

use super::end::{LONGEST_SLEEP, SocketEnd, unless_busy};
use super::packing::Load;
use lanecast_os::event::wait_readable;
use lanecast_os::tcp::{self, TcpOptions};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// Bytes of one read.
const READ_BYTES: usize = 1 << 18;
/// Time limit of a connection within this host.
const PATIENCE: Duration = Duration::from_secs(10);

/// An end of a stream.
#[derive(Debug)]
pub(super) struct Stream {
    stream: TcpStream,
    size: usize,
    inbox: Box<[u8]>,
    /// Bytes in it: less than a message between two receives.
    filled: usize,
}

impl Stream {
    /// Both ends of a connection.
    pub(super) fn pair(load: Load) -> io::Result<(Self, Self)> {
        let listener = listen(Ipv4Addr::LOCALHOST)?;
        let near = tcp::connect(None, listener.local_addr()?)?;
        Ok((Self::new(load, near)?, Self::accepted(load, &listener)?))
    }

    /// The end that has called the listener at `address`.
    pub(super) fn calling(load: Load, address: SocketAddr) -> io::Result<Self> {
        let stream = tcp::connect(None, address)?;
        Self::new(load, stream)
    }

    /// The end of the one connection that the listener is to accept.
    pub(super) fn accepted(load: Load, listener: &TcpListener) -> io::Result<Self> {
        Self::new(load, accepted(listener)?)
    }

    fn new(load: Load, stream: TcpStream) -> io::Result<Self> {
        tcp::tune(&stream, &TcpOptions::default())?;
        stream.set_nonblocking(!load.sleeps)?;
        stream.set_read_timeout(Some(LONGEST_SLEEP))?;
        // Two ends that are both full must not wait for each other.
        stream.set_write_timeout(Some(LONGEST_SLEEP))?;
        let inbox = vec![0; READ_BYTES.max(2 * load.size)].into_boxed_slice();
        Ok(Self { stream, size: load.size, inbox, filled: 0 })
    }
}

/// A listener at a free port of `address`.
pub(super) fn listen(address: Ipv4Addr) -> io::Result<TcpListener> {
    tcp::listen(SocketAddr::from((address, 0)), 1)
}

fn accepted(listener: &TcpListener) -> io::Result<TcpStream> {
    let start = Instant::now();
    loop {
        match listener.accept() {
            Ok((stream, _)) => return Ok(stream),
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
            Err(error) if start.elapsed() > PATIENCE => return Err(error),
            Err(_) => wait_readable([listener.as_fd()], Some(LONGEST_SLEEP)),
        };
    }
}

impl SocketEnd for Stream {
    #[inline]
    fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        unless_busy((&self.stream).write(bytes))
    }

    #[inline]
    fn receive(&mut self, mut each: impl FnMut(&[u8])) -> io::Result<bool> {
        let got = unless_busy((&self.stream).read(&mut self.inbox[self.filled..]))?;
        self.filled += got;
        let whole = self.filled / self.size * self.size;
        if whole > 0 {
            each(&self.inbox[..whole]);
            self.inbox.copy_within(whole..self.filled, 0);
            self.filled -= whole;
        }
        Ok(whole > 0)
    }

    /// The size of one read: the system grows its own buffer.
    fn room_bytes(&self) -> usize {
        self.inbox.len()
    }

    /// A stream has flow control of its own.
    fn window(&self) -> u64 {
        u64::MAX
    }
}
