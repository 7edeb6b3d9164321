//! Discovery: the resolver of `lanecast-protocol`, and its sockets.
//!
//! Owned by the conductor's `receiver_agent`. Advertises the program's publications, and queries
//! for the topics of its subscribers: in the resolver group, at peers, and at daemons.

use crate::context::NetContext;
use crate::daemon_connections::DaemonConnections;
use crate::datagram_socket::DatagramSocket;
use crate::error::{OpenError, system};
use crate::frame_stream;
use crate::peers::Peers;
use crate::poller::Descriptor;
use crate::refused_hosts::RefusedDatagrams;
use crate::source::{Source, TransportKind};
use crate::telemetry::Telemetry;
use lanecast_base::clock::Clock;
use lanecast_os::process;
use lanecast_protocol::Nanos;
use lanecast_protocol::resolution::{
    Announcement, Resolver, ResolverEvent, ResolverSettings, SessionTransport,
};
use lanecast_transport::TopicSelection;
use lanecast_wire::net::{Frame, is_sealed, other_version};
use std::collections::VecDeque;
use std::net::SocketAddr;

/// The most datagrams that are read from a socket in one turn.
const READS_MAX: usize = 64;
const BUFFER_BYTES: usize = frame_stream::READ_BYTES;

/// Finds publishers, and advertises the program's own.
#[derive(Debug)]
pub(crate) struct Discovery {
    resolver: Resolver,
    daemon_connections: DaemonConnections,
    group: Option<SocketAddr>,
    /// Receives what comes to the group.
    receiver: Option<DatagramSocket>,
    /// Sends to the group.
    sender: DatagramSocket,
    peers: Option<Peers>,
    found: VecDeque<(Source, String)>,
    /// Transports that subscribers accept.
    accept: Vec<TransportKind>,
    /// The host, and the shared-memory domain on it; 0: none.
    domain: (u64, u64),
    buffer: Box<[u8]>,
    datagram_bytes: usize,
    /// Publishers that found no room, as far as they were reported.
    refused: u64,
    telemetry: Telemetry,
}

impl Discovery {
    /// Opens the sockets. `own` is the address of the daemon in this program.
    pub(crate) fn open(context: &NetContext, own: Option<SocketAddr>) -> Result<Self, OpenError> {
        let group = context.settings.resolver_group;
        let receiver = match group {
            Some(group) => {
                let socket = context.discovery_group_socket(group);
                Some(socket.map_err(system("join net.resolver_group"))?)
            }
            None => None,
        };
        let mut daemon_connections = context.settings.resolvers.iter();
        if context.address.is_loopback()
            && !daemon_connections.all(|daemon| daemon.ip().is_loopback())
        {
            return Err(OpenError::Setting {
                what: "net.resolvers",
                fix: "they are on other hosts, which do not reach this host's loopback: set \
                      net.interface to the address, or the network, towards them",
            });
        }
        let sender = context.discovery_socket(0).map_err(system("open a UDP socket"))?;
        let peers = Peers::open(context)?;
        let random = || process::random().map_err(system("get a random number"));
        let usual = ResolverSettings::default();
        let copies = usize::from(group.is_some()) + peers.as_ref().map_or(0, Peers::count);
        let settings = ResolverSettings {
            // Zero names no resolver.
            resolver: random()?.max(1),
            seed: random()?,
            has_group: copies > 0,
            allow_foreign: context.settings.foreign_adverts,
            // Each frame goes to the group and to every peer: the rate holds for all copies.
            bytes_rate: usual.bytes_rate / copies.max(1) as u64,
            ..usual
        };
        let accept = context.accepted().collect();
        let clock = Clock::host();
        let now = clock.ns(clock.ticks());
        let mut resolver = Resolver::new(settings, now);
        let addresses = context.settings.resolvers.iter().copied().chain(own);
        Ok(Self {
            daemon_connections: DaemonConnections::new(addresses, context, &mut resolver, now),
            resolver,
            group,
            receiver,
            sender,
            peers,
            found: VecDeque::new(),
            accept,
            domain: (context.settings.host, context.settings.domain),
            buffer: vec![0; BUFFER_BYTES].into_boxed_slice(),
            datagram_bytes: context.datagram_bytes(),
            refused: 0,
            telemetry: context.telemetry.clone(),
        })
    }

    /// Starts to advertise `source` as a publisher of `topic`.
    pub(crate) fn add_publication(&mut self, source: &Source, datagram_bytes: usize, topic: &str) {
        let announcement = Announcement {
            session: source.session,
            transport: match source.kind {
                TransportKind::Rm => SessionTransport::Multicast,
                TransportKind::Ru => SessionTransport::Unicast,
                TransportKind::Tcp => SessionTransport::Tcp,
            },
            control: source.address,
            group: source.group,
            host: self.domain.0,
            domain: self.domain.1,
            pid: source.pid,
            datagram_bytes: u16::try_from(datagram_bytes).unwrap_or(u16::MAX),
        };
        // The publisher has checked the name.
        let _ = self.resolver.publish(announcement, topic);
    }

    pub(crate) fn remove_publication(&mut self, session: u64) {
        self.resolver.unpublish(session);
    }

    /// Finds the publishers of the topics of subscriber `number`.
    pub(crate) fn add_subscription(&mut self, number: u64, topics: &TopicSelection) {
        // The subscriber has checked the names.
        topics.names().for_each(|topic| _ = self.resolver.subscribe(topic));
        if !topics.patterns().is_empty() {
            self.resolver.subscribe_pattern(number, topics);
        }
    }

    /// Reports the known publishers of the topics that the patterns of subscriber `number` match
    /// again: there is room for some that were refused.
    pub(crate) fn find_again(&mut self, number: u64) {
        self.resolver.find_again(number);
    }

    pub(crate) fn remove_subscription(&mut self, number: u64, topics: &TopicSelection) {
        topics.names().for_each(|topic| self.resolver.unsubscribe(topic));
        self.resolver.unsubscribe_pattern(number);
    }

    /// A subscriber has lost the session: the next advertisement finds it again.
    pub(crate) fn report_lost(&mut self, now: Nanos, session: u64) {
        self.resolver.session_lost(now, session);
    }

    /// Exchanges frames with all sources; returns the number of datagrams and frames received.
    pub(crate) fn do_work(&mut self, now: Nanos) -> usize {
        let mut received = self.receive(now);
        let room = self.datagram_bytes;
        while let Some(length) = self.resolver.next_transmit(now, &mut self.buffer[..room]) {
            if let Some(group) = self.group {
                // Lost frames are repeated.
                drop(self.sender.send_to(&self.buffer[..length], group));
            }
            self.peers.iter_mut().for_each(|peers| peers.send(&self.buffer[..length]));
        }
        let Self { daemon_connections, resolver, buffer, telemetry, .. } = self;
        received += daemon_connections.do_work(resolver, now, buffer, telemetry);
        while let Some(event) = self.resolver.next_event() {
            if let ResolverEvent::Found { announcement, topic } = event
                // The same host and domain: shared memory brings these messages already.
                && !self.is_reached_by_shm(&announcement)
            {
                let source = source(&announcement);
                // Checked here: a transport that is not accepted never costs a session.
                if self.accept.contains(&source.kind) {
                    self.found.push_back((source, topic.to_string()));
                }
            }
        }
        let refused = self.resolver.counters().overflowed;
        if refused != self.refused {
            self.telemetry.refused_publishers(refused - self.refused);
            self.refused = refused;
        }
        received
    }

    /// Whether the program's subscribers reach the publisher through shared memory.
    fn is_reached_by_shm(&self, announcement: &Announcement) -> bool {
        self.domain.1 != 0 && (announcement.host, announcement.domain) == self.domain
    }

    fn receive(&mut self, now: Nanos) -> usize {
        let Self { resolver, receiver, peers, buffer, telemetry, .. } = self;
        let group = receiver.as_mut().map_or(0, |receiver| {
            let refuse = |from, bytes: &[u8]| report_unread(telemetry, from, bytes);
            receive(receiver, buffer, refuse, |from, frame| resolver.on_frame(now, from, frame))
        });
        let peers = peers.as_mut().map_or(0, |peers| {
            // The list is closed: frames of other addresses are not even looked at.
            let (socket, list) = peers.receiving();
            let refuse = |from, bytes: &[u8]| {
                if list.contains(from) {
                    report_unread(telemetry, from, bytes);
                }
            };
            receive(socket, buffer, refuse, |from, frame| {
                if list.contains(from) {
                    resolver.on_frame(now, from, frame);
                }
            })
        });
        group + peers
    }

    pub(crate) fn next_found(&mut self) -> Option<(Source, String)> {
        self.found.pop_front()
    }

    pub(crate) fn next_deadline(&self, now: Nanos) -> Nanos {
        let due = self.resolver.next_deadline().unwrap_or(Nanos::MAX);
        due.min(self.daemon_connections.next_deadline(&self.resolver, now))
    }

    pub(crate) fn descriptors(&self, into: &mut Vec<(Descriptor, bool)>) {
        let receivers = self.receiver.iter().chain(self.peers.iter().map(Peers::socket));
        receivers.for_each(|receiver| receiver.descriptors(into));
        self.daemon_connections.descriptors(into);
    }
}

/// Reports bytes that are no frame of this version, if it is clear why.
fn report_unread(telemetry: &Telemetry, from: SocketAddr, bytes: &[u8]) {
    if let Some(version) = other_version(bytes) {
        telemetry.other_version(from.ip(), version);
    } else if is_sealed(bytes) {
        telemetry.count_refused(RefusedDatagrams::NoKey);
        telemetry.tell_refused(RefusedDatagrams::NoKey, from.ip());
    }
}

/// Reads datagrams from `receiver`, passes their frames to `each` and what follows them to
/// `refuse`; returns their number.
fn receive(
    receiver: &mut DatagramSocket,
    buffer: &mut [u8],
    mut refuse: impl FnMut(SocketAddr, &[u8]),
    mut each: impl FnMut(SocketAddr, &Frame<'_>),
) -> usize {
    let mut received = 0;
    // Bounded: a flood of advertisements must not hold up the sessions that this thread serves.
    while received < READS_MAX
        && let Ok(Some((length, from))) = receiver.receive(buffer)
    {
        let mut rest = &buffer[..length];
        while let Some((frame, after)) = Frame::split(rest) {
            each(from, &frame);
            rest = after;
        }
        if !rest.is_empty() {
            refuse(from, rest);
        }
        received += 1;
    }
    received
}

const fn source(announcement: &Announcement) -> Source {
    let kind = match announcement.transport {
        SessionTransport::Multicast => TransportKind::Rm,
        SessionTransport::Unicast => TransportKind::Ru,
        SessionTransport::Tcp => TransportKind::Tcp,
    };
    Source {
        kind,
        session: announcement.session,
        address: announcement.control,
        group: announcement.group,
        pid: announcement.pid,
    }
}
