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

/// UDP sockets of one subscriber.
#[derive(Debug)]
pub(crate) struct ReceiveSockets {
    /// Receives unicast sessions and the replies of all publishers; control frames leave by it.
    pub(crate) own: DatagramSocket,
    pub(crate) groups: Vec<(SocketAddr, DatagramSocket)>,
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
            let read = self.groups[index].1.receive(&mut buffer[..READ_BYTES]);
            if let Ok(Some(found)) = read {
                self.group_turn = index + 1;
                return Some(found);
            }
        }
        None
    }

    pub(crate) fn has_group(&self, group: SocketAddr) -> bool {
        self.groups.iter().any(|(known, _)| *known == group)
    }

    /// Joins the group of `source`, if it has one that is not joined yet.
    ///
    /// # Errors
    /// If the system has no socket for it.
    pub(crate) fn join(&mut self, context: &NetContext, source: &Source) -> io::Result<()> {
        if let (TransportKind::Rm, Some(group)) = (source.kind, source.group)
            && !self.has_group(group)
        {
            self.groups.push((group, context.session_group_socket(group)?));
        }
        Ok(())
    }

    /// Leaves the groups that are not `needed`; returns the datagrams that their sockets dropped.
    pub(crate) fn leave(&mut self, needed: impl Fn(SocketAddr) -> bool) -> u64 {
        let mut dropped = 0;
        self.groups.retain(|(group, socket)| {
            let stays = needed(*group);
            // Read before the socket closes, which takes its count along.
            dropped += if stays { 0 } else { socket.dropped() };
            stays
        });
        dropped
    }

    /// Datagrams that the system dropped at all sockets.
    pub(crate) fn dropped(&self) -> u64 {
        let groups = self.groups.iter().map(|(_, socket)| socket);
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
                let known = groups.find(|(group, _)| Some(*group) == source.group);
                known.map_or(&self.own, |(_, socket)| socket).dropped()
            }
        }
    }

    pub(crate) fn descriptors(&self, into: &mut Vec<(Descriptor, bool)>) {
        self.own.descriptors(into);
        self.groups.iter().for_each(|(_, socket)| socket.descriptors(into));
    }
}
