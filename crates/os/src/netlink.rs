//! Questions to the kernel about routes and neighbours: rtnetlink(7).
//!
//! For IPv4. Answers are read with bounds, as other bytes from outside.

use crate::checked;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Longest answer, in bytes.
const ANSWER_BYTES: usize = 4096;
/// Answers to earlier questions that are passed over before an error.
const ANSWERS_MAX: usize = 16;

/// nlmsghdr.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
struct MessageHeader {
    length: u32,
    kind: u16,
    flags: u16,
    sequence: u32,
    port: u32,
}

/// rtmsg.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
struct RouteHeader {
    family: u8,
    to_prefix: u8,
    from_prefix: u8,
    service: u8,
    table: u8,
    protocol: u8,
    scope: u8,
    kind: u8,
    flags: u32,
}

/// ndmsg.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
struct NeighbourHeader {
    family: u8,
    _pad: [u8; 3],
    interface: u32,
    state: u16,
    flags: u8,
    kind: u8,
}

/// rtattr.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
struct AttributeHeader {
    length: u16,
    kind: u16,
}

/// The way to a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Index of the interface that it leaves by.
    pub interface: u32,
    /// The gateway, or the destination itself.
    pub next_hop: Ipv4Addr,
}

/// A neighbour with its hardware address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeighbourEntry {
    /// Hardware address.
    pub mac: [u8; 6],
    /// Whether the kernel has verified it of late, or need not.
    pub is_fresh: bool,
}

/// A socket for questions to the kernel, of one thread at a time.
#[derive(Debug)]
pub struct Netlink {
    socket: OwnedFd,
    sequence: u32,
    buffer: Box<[u8]>,
}

impl Netlink {
    /// Opens a socket.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn open() -> io::Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        // SAFETY: it only makes a descriptor.
        let fd = checked(unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE) })?;
        // SAFETY: the descriptor is new, and nothing else has it.
        let socket = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Self { socket, sequence: 0, buffer: vec![0; ANSWER_BYTES].into_boxed_slice() })
    }

    /// The way to `destination`; `None` if it is this host, or no single host.
    ///
    /// # Errors
    /// If there is no route, or the system refuses.
    pub fn route(&mut self, destination: Ipv4Addr) -> io::Result<Option<Route>> {
        let header =
            RouteHeader { family: libc::AF_INET as u8, to_prefix: 32, ..RouteHeader::default() };
        let answer = self.ask(libc::RTM_GETROUTE, 0, header, (libc::RTA_DST, destination))?;
        let Ok((header, attributes)) = RouteHeader::read_from_prefix(answer) else {
            return Ok(None);
        };
        let (mut interface, mut next_hop) = (None, destination);
        for (kind, value) in Attributes(attributes) {
            let word = value.first_chunk::<4>();
            match (kind, word) {
                (libc::RTA_OIF, Some(word)) => interface = Some(u32::from_le_bytes(*word)),
                (libc::RTA_GATEWAY, Some(word)) => next_hop = Ipv4Addr::from(*word),
                _ => {}
            }
        }
        let is_unicast = header.kind == libc::RTN_UNICAST;
        Ok(interface.filter(|_| is_unicast).map(|interface| Route { interface, next_hop }))
    }

    /// The neighbour `address` on `interface`; `None` if its hardware address is not known.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn neighbour(
        &mut self,
        interface: u32,
        address: Ipv4Addr,
    ) -> io::Result<Option<NeighbourEntry>> {
        let header =
            NeighbourHeader { family: libc::AF_INET as u8, interface, ..Default::default() };
        let answer = match self.ask(libc::RTM_GETNEIGH, 0, header, (libc::NDA_DST, address)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other?,
        };
        let Ok((header, attributes)) = NeighbourHeader::read_from_prefix(answer) else {
            return Ok(None);
        };
        let valid = libc::NUD_PERMANENT
            | libc::NUD_NOARP
            | libc::NUD_REACHABLE
            | libc::NUD_PROBE
            | libc::NUD_STALE
            | libc::NUD_DELAY;
        if header.state & valid == 0 {
            return Ok(None);
        }
        let fresh = libc::NUD_PERMANENT | libc::NUD_NOARP | libc::NUD_REACHABLE;
        let mac = Attributes(attributes)
            .find(|(kind, value)| *kind == libc::NDA_LLADDR && value.len() == 6)
            .and_then(|(_, value)| value.first_chunk::<6>().copied());
        Ok(mac.map(|mac| NeighbourEntry { mac, is_fresh: header.state & fresh != 0 }))
    }

    /// Has the kernel resolve or verify a neighbour's hardware address, as if it sent to it.
    ///
    /// # Errors
    /// If the process lacks CAP_NET_ADMIN, or the system refuses.
    pub fn use_neighbour(&mut self, interface: u32, address: Ipv4Addr) -> io::Result<()> {
        let header = NeighbourHeader {
            family: libc::AF_INET as u8,
            interface,
            flags: libc::NTF_USE,
            ..Default::default()
        };
        let flags = libc::NLM_F_CREATE | libc::NLM_F_ACK;
        self.ask(libc::RTM_NEWNEIGH, flags, header, (libc::NDA_DST, address)).map(drop)
    }

    /// Asks one question; returns the body of its answer, which is empty for an acknowledgement.
    fn ask<H: IntoBytes + Immutable>(
        &mut self,
        kind: u16,
        flags: i32,
        header: H,
        (attribute, address): (u16, Ipv4Addr),
    ) -> io::Result<&[u8]> {
        self.sequence = self.sequence.wrapping_add(1);
        let header_bytes = size_of::<H>();
        let length = size_of::<MessageHeader>() + header_bytes + size_of::<AttributeHeader>() + 4;
        let message = MessageHeader {
            length: length as u32,
            kind,
            flags: (libc::NLM_F_REQUEST | flags) as u16,
            sequence: self.sequence,
            port: 0,
        };
        let attribute = AttributeHeader { length: 8, kind: attribute };
        let mut question = Vec::with_capacity(length);
        question.extend_from_slice(message.as_bytes());
        question.extend_from_slice(header.as_bytes());
        question.extend_from_slice(attribute.as_bytes());
        question.extend_from_slice(&address.octets());
        let fd = self.socket.as_raw_fd();
        if crate::raw_io::send::<()>(fd, &question, 0, None) < 0 {
            return Err(io::Error::last_os_error());
        }
        for _ in 0..ANSWERS_MAX {
            let got = crate::raw_io::receive(fd, &mut self.buffer);
            let got = usize::try_from(got).map_err(|_| io::Error::last_os_error())?;
            let received = self.buffer.get(..got).unwrap_or_default();
            let Ok((header, _)) = MessageHeader::read_from_prefix(received) else { continue };
            if header.sequence != self.sequence {
                continue;
            }
            let end = (header.length as usize).min(got);
            if header.kind == libc::NLMSG_ERROR as u16 {
                let body = self.buffer.get(size_of::<MessageHeader>()..end).unwrap_or_default();
                let code =
                    body.first_chunk::<4>().map_or(-libc::EPROTO, |it| i32::from_le_bytes(*it));
                return if code == 0 { Ok(&[]) } else { Err(io::Error::from_raw_os_error(-code)) };
            }
            return Ok(self.buffer.get(size_of::<MessageHeader>()..end).unwrap_or_default());
        }
        Err(io::ErrorKind::TimedOut.into())
    }
}

/// Attributes of an answer: kind and value.
struct Attributes<'a>(&'a [u8]);

impl<'a> Iterator for Attributes<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (header, rest) = AttributeHeader::read_from_prefix(self.0).ok()?;
        let length = usize::from(header.length).checked_sub(size_of::<AttributeHeader>())?;
        let value = rest.get(..length)?;
        // Each begins at a multiple of four bytes.
        self.0 = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((header.kind, value))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn this_host_is_no_hop_away() {
        let mut netlink = Netlink::open().expect("a socket");
        assert_eq!(netlink.route(Ipv4Addr::LOCALHOST).expect("loopback has a route"), None);
        let lo = crate::interface::interfaces().expect("known");
        let lo = lo.iter().find(|it| it.is_loopback).expect("each host has one");
        let unknown = Ipv4Addr::new(203, 0, 113, 77);
        assert_eq!(netlink.neighbour(lo.index, unknown).expect("an answer"), None);
    }

    #[test]
    fn damaged_attributes_end_the_list() {
        for bytes in [&[][..], &[3, 0, 1], &[3, 0, 1, 0], &[9, 0, 1, 0, 1, 2], &[0; 64]] {
            assert_eq!(Attributes(bytes).count(), 0, "{bytes:?}");
        }
        let two = [5, 0, 1, 0, 7, 0, 0, 0, 4, 0, 2, 0];
        let all: Vec<_> = Attributes(&two).collect();
        assert_eq!(all, [(1, &[7][..]), (2, &[][..])]);
    }
}
