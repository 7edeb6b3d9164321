//! A subscriber's UDP sockets: its own, and one for each multicast group that it has joined.

use crate::context::NetContext;
use crate::datagram_socket::DatagramSocket;
use crate::poller::Descriptor;
use crate::source::{Source, TransportKind};
use std::io;
use std::net::SocketAddr;

/// UDP sockets of one subscriber.
#[derive(Debug)]
pub(crate) struct ReceiveSockets {
    /// Receives unicast sessions and the replies of all publishers; control frames leave by it.
    pub(crate) own: DatagramSocket,
    pub(crate) groups: Vec<(SocketAddr, DatagramSocket)>,
}

impl ReceiveSockets {
    pub(crate) fn new(own: DatagramSocket) -> Self {
        Self { own, groups: Vec::new() }
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
