//! A subscriber's UDP sockets: its own, and one for each multicast group that it has joined.

use crate::context::NetContext;
use crate::datagram_socket::DatagramSocket;
use crate::poller::Descriptor;
use crate::source::{Source, TransportKind};
use std::io;
use std::net::SocketAddr;

/// Reads between two of the subscriber's own socket while only replies and repairs come there: each
/// is a system call in which a datagram to a group may come.
const OWN_SOCKET_INTERVAL: u32 = 16;
/// The same while groups always have something.
const OWN_SOCKET_TURN: u32 = 16;
/// The longest read of a UDP socket: a GRO run.
const READ_BYTES: usize = 64 << 10;

/// A multicast group that a subscriber has joined.
#[derive(Debug)]
pub(crate) struct JoinedGroup {
    address: SocketAddr,
    socket: DatagramSocket,
    /// Datagrams of this host do not come.
    excludes_own: bool,
}

impl JoinedGroup {
    fn open(context: &NetContext, address: SocketAddr, has_own: bool) -> io::Result<Self> {
        let socket = context.session_group_socket(address)?;
        // A system that refuses sends somewhat slower.
        let excludes_own =
            !has_own && socket.exclude_own(address.ip(), context.address).is_ok_and(|done| done);
        Ok(Self { address, socket, excludes_own })
    }

    /// Has the datagrams of this host's publishers come, as one is joined. They stay when it has
    /// left: switches need no further report.
    fn include_own(&mut self, context: &NetContext) -> io::Result<()> {
        if self.excludes_own {
            let (group, interface) = (self.address.ip(), &context.interface);
            self.socket.include_own(group, context.address, interface)?;
            self.excludes_own = false;
        }
        Ok(())
    }
}

/// UDP sockets of one subscriber.
#[derive(Debug)]
pub(crate) struct ReceiveSockets {
    /// Receives unicast sessions and the replies of all publishers; control frames leave by it.
    pub(crate) own: DatagramSocket,
    pub(crate) groups: Vec<JoinedGroup>,
    /// The group that is read first.
    group_turn: usize,
    /// The own socket beside groups had something, or may be what the reader was woken for: the
    /// next read with nothing from the groups looks there.
    own_is_due: bool,
}

impl ReceiveSockets {
    pub(crate) fn new(own: DatagramSocket) -> Self {
        Self { own, groups: Vec::new(), group_turn: 0, own_is_due: false }
    }

    /// Whether the own socket is read before the groups, in the read of this number: a group that
    /// is never empty must not hide it.
    pub(crate) fn own_is_first(&self, read: u32) -> bool {
        !self.groups.is_empty() && read.is_multiple_of(OWN_SOCKET_TURN)
    }

    /// Whether the own socket is read when the groups have nothing, in the read of this number.
    /// With all sessions joined by groups and connections it would be a wasted system call.
    pub(crate) const fn own_is_due(&self, read: u32) -> bool {
        self.own_is_due || read.is_multiple_of(OWN_SOCKET_INTERVAL)
    }

    /// Has the next read look into the own socket, too.
    pub(crate) fn look_at_own(&mut self) {
        self.own_is_due = !self.groups.is_empty();
        self.own.look_at_all();
    }

    /// Reads a datagram, or a run of them, from the own socket; returns its length and sender.
    #[inline]
    pub(crate) fn read_own(&mut self, buffer: &mut [u8]) -> Option<(usize, SocketAddr)> {
        let read = self.own.receive(&mut buffer[..READ_BYTES]).ok().flatten();
        // Repairs that wait while others are asked for pile up.
        self.own_is_due = read.is_some() && !self.groups.is_empty();
        read
    }

    /// Reads from the first group in turn that has something.
    #[inline]
    pub(crate) fn read_groups(&mut self, buffer: &mut [u8]) -> Option<(usize, SocketAddr)> {
        let count = self.groups.len();
        for step in 0..count {
            let index = (self.group_turn + step) % count;
            let read = self.groups[index].socket.receive(&mut buffer[..READ_BYTES]);
            if let Ok(Some(found)) = read {
                self.group_turn = index + 1;
                return Some(found);
            }
        }
        None
    }

    pub(crate) fn has_group(&self, group: SocketAddr) -> bool {
        self.groups.iter().any(|it| it.address == group)
    }

    /// Joins the group of `source`, if it has one that is not joined yet.
    ///
    /// Without publishers of this host, a member leaves out what the host sends to the group:
    /// sends of its own publishers to a group that it listens to would take longer.
    ///
    /// # Errors
    /// If the system has no socket for it.
    pub(crate) fn join(&mut self, context: &NetContext, source: &Source) -> io::Result<()> {
        let (TransportKind::Rm, Some(group)) = (source.kind, source.group) else { return Ok(()) };
        let is_own = source.address.ip() == context.address;
        match self.groups.iter_mut().find(|it| it.address == group) {
            None => self.groups.push(JoinedGroup::open(context, group, is_own)?),
            Some(joined) if is_own => joined.include_own(context)?,
            Some(_) => {}
        }
        Ok(())
    }

    /// Leaves the groups that are not `needed`; returns the datagrams that their sockets dropped.
    pub(crate) fn leave(&mut self, needed: impl Fn(SocketAddr) -> bool) -> u64 {
        let mut dropped = 0;
        self.groups.retain(|JoinedGroup { address, socket, .. }| {
            let stays = needed(*address);
            // Read before the socket closes, which takes its count along.
            dropped += if stays { 0 } else { socket.dropped() };
            stays
        });
        dropped
    }

    /// Datagrams that the system dropped at all sockets.
    pub(crate) fn dropped(&self) -> u64 {
        let groups = self.groups.iter().map(|it| &it.socket);
        groups.chain([&self.own]).map(DatagramSocket::dropped).sum()
    }

    /// Datagrams that the system dropped at the socket of `source`.
    pub(crate) fn dropped_for(&self, source: &Source) -> u64 {
        match source.kind {
            // A full TCP socket stops the sender instead.
            TransportKind::Tcp => 0,
            TransportKind::Ru => self.own.dropped(),
            TransportKind::Rm => {
                let mut groups = self.groups.iter();
                let known = groups.find(|it| Some(it.address) == source.group);
                known.map_or(&self.own, |it| &it.socket).dropped()
            }
        }
    }

    pub(crate) fn descriptors(&self, into: &mut Vec<(Descriptor, bool)>) {
        self.own.descriptors(into);
        self.groups.iter().for_each(|it| it.socket.descriptors(into));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::NetSettings;
    use lanecast_os::interface::interfaces;
    use lanecast_os::udp::{UdpOptions, UdpSocket};
    use std::net::Ipv4Addr;
    use std::time::{Duration, Instant};

    #[test]
    fn the_hosts_own_datagrams_come_once_a_publisher_of_the_host_is_joined() {
        let context = NetContext::new(NetSettings::default()).expect("a context");
        let own = context.address;
        assert!(own.is_loopback(), "the test sends by loopback");
        let group = SocketAddr::from(([239, 194, 7, 61], 21_993));
        let socket = context.session_socket(0).expect("a socket");
        let mut sockets = ReceiveSockets::new(socket);
        let loopback = interfaces().expect("known").into_iter().find(|it| it.is_loopback);
        let loopback = loopback.expect("a loopback interface");
        let other = Ipv4Addr::new(127, 0, 0, 2).into();
        let senders = [own, other].map(|address| {
            let local = SocketAddr::new(address, 0);
            let sender = UdpSocket::open(&UdpOptions { local, ..UdpOptions::default() });
            let sender = sender.expect("a socket");
            sender.send_multicast_by(&loopback, 0).expect("by loopback");
            sender
        });
        let source = |sender: &UdpSocket, session| Source {
            kind: TransportKind::Rm,
            session,
            address: sender.local_address().expect("bound"),
            group: Some(group),
            pid: 0,
        };
        let mut buffer = vec![0; READ_BYTES];
        // A further publisher of the host, or of another one, changes nothing.
        for (session, joined, expected) in
            [(1, 1, "x"), (2, 1, "x"), (3, 0, "ox"), (4, 1, "ox"), (5, 0, "ox")]
        {
            let source = source(&senders[joined], session);
            sockets.join(&context, &source).expect("multicast on loopback");
            senders[0].send_to(b"o", group).expect("sent");
            senders[1].send_to(b"x", group).expect("sent");
            let (start, mut got) = (Instant::now(), String::new());
            // The other host's comes last.
            while !got.ends_with('x') {
                assert!(start.elapsed() < Duration::from_secs(60), "{session}: {got}");
                if let Some((length, _)) = sockets.read_groups(&mut buffer) {
                    got.push_str(std::str::from_utf8(&buffer[..length]).expect("text"));
                }
            }
            assert_eq!(got, expected, "after session {session}");
        }
        // A group whose first publisher is of this host.
        let mut sockets = ReceiveSockets::new(context.session_socket(0).expect("a socket"));
        sockets.join(&context, &source(&senders[0], 6)).expect("multicast on loopback");
        senders[0].send_to(b"o", group).expect("sent");
        let start = Instant::now();
        while sockets.read_groups(&mut buffer).is_none() {
            assert!(start.elapsed() < Duration::from_secs(60), "it does not come");
        }
    }
}
