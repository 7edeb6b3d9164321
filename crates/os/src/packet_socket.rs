//! Packets of an interface as they pass: packet(7).

use crate::checked;
use crate::socket::{self, Direction};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// Bytes that the kernel keeps while the program is busy.
pub const ROOM_BYTES: usize = 8 << 20;

/// A socket that receives a copy of every IP packet of an interface, or of all interfaces.
#[derive(Debug)]
pub struct PacketSocket {
    socket: Socket,
}

/// A received packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapturedPacket {
    /// Bytes in the buffer, which begin with the IP header.
    pub length: usize,
    /// Whether this host sent it. A packet over the loopback passes once in each direction.
    pub is_outgoing: bool,
    /// Whether it passed a loopback interface.
    pub is_loopback: bool,
}

impl PacketSocket {
    /// Opens a socket for the interface of this number, or for all of them; it never blocks.
    ///
    /// # Errors
    /// If the process has no right to it: it needs CAP_NET_RAW.
    pub fn open(interface: Option<u32>) -> io::Result<Self> {
        let every = (libc::ETH_P_ALL as u16).to_be();
        let kind = Type::DGRAM.cloexec().nonblocking();
        let socket = Socket::new(Domain::PACKET, kind, Some(Protocol::from(i32::from(every))))?;
        Direction::In.reserve(socket.as_fd(), ROOM_BYTES)?;
        if let Some(index) = interface {
            // SAFETY: all zero is a valid `sockaddr_ll`.
            let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
            address.sll_family = libc::AF_PACKET as u16;
            address.sll_protocol = every;
            address.sll_ifindex = index.cast_signed();
            let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
            // SAFETY: the pointer and the length describe `address`, which outlives the call.
            let bound =
                unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) };
            checked(bound)?;
        }
        Ok(Self { socket })
    }

    /// Packets that the kernel dropped since the socket was opened, because its room was full.
    ///
    /// # Errors
    /// Those of getsockopt(2).
    pub fn dropped(&self) -> io::Result<u32> {
        socket::dropped(self.socket.as_fd())
    }

    /// Receives a packet into `buffer`; `None` if there is none. Longer packets are cut.
    ///
    /// # Errors
    /// Those of recvfrom(2), for example when the interface goes down.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<CapturedPacket>> {
        // SAFETY: `MaybeUninit<u8>` has the layout of `u8`, and the kernel writes only initialised
        // bytes.
        let bytes: &mut [MaybeUninit<u8>] =
            unsafe { std::slice::from_raw_parts_mut(buffer.as_mut_ptr().cast(), buffer.len()) };
        let (length, from) = match self.socket.recv_from(bytes) {
            Ok(received) => received,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(error),
        };
        let from = link_address(&from);
        Ok(Some(CapturedPacket {
            length,
            is_outgoing: from.is_some_and(|it| it.sll_pkttype == libc::PACKET_OUTGOING),
            is_loopback: from.is_some_and(|it| it.sll_hatype == libc::ARPHRD_LOOPBACK),
        }))
    }
}

fn link_address(from: &SockAddr) -> Option<libc::sockaddr_ll> {
    let is_whole = from.len() as usize >= std::mem::offset_of!(libc::sockaddr_ll, sll_addr);
    if !is_whole || i32::from(from.family()) != libc::AF_PACKET {
        return None;
    }
    // SAFETY: `SockAddr` holds a whole `sockaddr_storage`, which is longer and aligned more
    // strictly, and whose family says that it is a `sockaddr_ll`.
    Some(unsafe { from.as_ptr().cast::<libc::sockaddr_ll>().read() })
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::time::{Duration, Instant};

    #[test]
    fn a_datagram_over_the_loopback_is_captured_in_both_directions() {
        let Ok(capture) = PacketSocket::open(None) else {
            eprintln!("SKIPPED: packet sockets need CAP_NET_RAW");
            return;
        };
        let (to, from) = (UdpSocket::bind("127.0.0.1:0"), UdpSocket::bind("127.0.0.1:0"));
        let (to, from) = (to.expect("a socket"), from.expect("a socket"));
        let mark = format!("captured by {}", std::process::id());
        from.send_to(mark.as_bytes(), to.local_addr().expect("an address")).expect("sent");
        let (mut buffer, mut seen) = (vec![0; 65_536], Vec::new());
        let start = Instant::now();
        while seen.len() < 2 {
            assert!(start.elapsed() < Duration::from_secs(30), "so far {seen:?}");
            match capture.receive(&mut buffer).expect("received") {
                Some(it) if buffer[..it.length].ends_with(mark.as_bytes()) => {
                    assert!(it.is_loopback);
                    seen.push(it.is_outgoing);
                }
                Some(_) => {}
                None => std::thread::yield_now(),
            }
        }
        seen.sort_unstable();
        assert_eq!(seen, [false, true]);
    }
}
