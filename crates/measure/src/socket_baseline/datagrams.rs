//! Datagrams, to one other socket or to a group.

use super::case::Way;
use super::end::{LONGEST_SLEEP, SocketEnd, unless_busy};
use super::packing::Load;
use lanecast_os::interface::{Interface, interfaces};
use lanecast_os::udp::{GSO_SEGMENTS_MAX, GsoBatch, RECEIVE_BYTES_MAX, UdpOptions, UdpSocket};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::AsFd;

/// Multicast groups of both directions, with site-local scope: there and back.
pub(super) const GROUPS: [Ipv4Addr; 2] =
    [Ipv4Addr::new(239, 255, 76, 1), Ipv4Addr::new(239, 255, 76, 2)];
/// Approximate overhead of the system for each queued datagram, in bytes.
const BESIDE: usize = 1024;

/// An end that sends datagrams.
#[derive(Debug)]
pub(super) struct Datagrams {
    load: Load,
    /// Connected to the destination.
    out: UdpSocket,
    /// Receiving socket, if it is another one.
    group: Option<UdpSocket>,
    room_bytes: usize,
    inbox: Box<[u8]>,
}

impl Datagrams {
    /// Two sockets that send to each other.
    pub(super) fn pair(load: Load) -> io::Result<(Self, Self)> {
        let [near, far] = [open(Ipv4Addr::LOCALHOST)?, open(Ipv4Addr::LOCALHOST)?];
        let addresses = [near.local_address()?, far.local_address()?];
        Ok((Self::between(load, near, addresses[1])?, Self::between(load, far, addresses[0])?))
    }

    /// An end whose `socket` sends to that at `other`, and receives from it.
    pub(super) fn between(load: Load, socket: UdpSocket, other: SocketAddr) -> io::Result<Self> {
        socket.connect(other)?;
        Self::new(load, socket, None)
    }

    /// Each sends to a group that only the other one has joined.
    pub(super) fn groups(load: Load) -> io::Result<(Self, Self)> {
        let here = Ipv4Addr::LOCALHOST;
        let [there, back] = GROUPS.map(|group| member(group, here));
        let ((there, to_far), (back, to_near)) = (there?, back?);
        let near = Self::from_group(load, back, here, to_far)?;
        Ok((near, Self::from_group(load, there, here, to_near)?))
    }

    /// An end that receives by `member`, and sends to the group of the `other` end by the interface
    /// of the address `here`.
    pub(super) fn from_group(
        load: Load,
        member: UdpSocket,
        here: Ipv4Addr,
        other: SocketAddr,
    ) -> io::Result<Self> {
        let (out, interface) = (open(here)?, interface_of(here)?);
        out.send_multicast_by(&interface, u32::from(!interface.is_loopback))?;
        out.connect(other)?;
        Self::new(load, out, Some(member))
    }

    fn new(load: Load, out: UdpSocket, group: Option<UdpSocket>) -> io::Result<Self> {
        let inward = group.as_ref().unwrap_or(&out);
        if load.sleeps {
            // The same socket under another name: how it waits belongs to the socket.
            let twin = std::net::UdpSocket::from(inward.as_fd().try_clone_to_owned()?);
            twin.set_nonblocking(false)?;
            twin.set_read_timeout(Some(LONGEST_SLEEP))?;
        }
        let room_bytes = inward.receive_buffer_bytes()?;
        let inbox = vec![0; RECEIVE_BYTES_MAX].into_boxed_slice();
        Ok(Self { load, out, group, room_bytes, inbox })
    }

    fn send_several(&self, bytes: &[u8]) -> io::Result<usize> {
        let segment = self.load.segment;
        let mut runs = [GsoBatch { bytes: &[], segment, to: None }; GSO_SEGMENTS_MAX];
        let datagrams = runs.iter_mut().zip(bytes.chunks(segment));
        let count = datagrams.map(|(run, bytes)| run.bytes = bytes).count();
        let sent = self.out.send_batches(&runs[..count])?;
        Ok(runs[..sent].iter().map(|run| run.bytes.len()).sum())
    }
}

impl SocketEnd for Datagrams {
    #[inline]
    fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        let Load { way, segment, .. } = self.load;
        unless_busy(match way {
            Way::Segments => {
                let piece = &bytes[..bytes.len().min(self.load.piece_bytes())];
                let run = GsoBatch { bytes: piece, segment, to: None };
                self.out.send_batches(&[run]).map(|_| piece.len())
            }
            Way::Several => self.send_several(bytes),
            Way::Singly | Way::Gathered => {
                let datagram = &bytes[..bytes.len().min(segment)];
                self.out.send(datagram).map(|()| datagram.len())
            }
        })
    }

    #[inline]
    fn receive(&mut self, mut each: impl FnMut(&[u8])) -> io::Result<bool> {
        let inward = self.group.as_ref().unwrap_or(&self.out);
        // Datagrams that the system has joined again hold whole messages, too.
        let got =
            unless_busy(inward.receive_connected(&mut self.inbox).map(Option::unwrap_or_default))?;
        if got > 0 {
            each(&self.inbox[..got]);
        }
        Ok(got > 0)
    }

    fn room_bytes(&self) -> usize {
        self.room_bytes
    }

    fn window(&self) -> u64 {
        // Twice the length, as memory comes in powers of two.
        let datagrams = self.room_bytes / (2 * self.load.segment + BESIDE);
        (datagrams * (self.load.segment / self.load.size)) as u64
    }
}

/// A socket at a free port of `address`.
pub(super) fn open(address: Ipv4Addr) -> io::Result<UdpSocket> {
    let local = SocketAddr::from((address, 0));
    UdpSocket::open(&UdpOptions { local, ..UdpOptions::default() })
}

/// A socket that has joined `group` on the interface of the address `here`, and its address.
pub(super) fn member(group: Ipv4Addr, here: Ipv4Addr) -> io::Result<(UdpSocket, SocketAddr)> {
    let socket = open(group)?;
    socket.join(IpAddr::V4(group), &interface_of(here)?)?;
    let address = socket.local_address()?;
    Ok((socket, address))
}

fn interface_of(here: Ipv4Addr) -> io::Result<Interface> {
    let has_it = |it: &Interface| it.addresses.iter().any(|(address, _)| *address == here);
    let found = interfaces()?.into_iter().find(has_it);
    let what = || io::Error::new(io::ErrorKind::NotFound, format!("no interface has {here}"));
    found.ok_or_else(what)
}
