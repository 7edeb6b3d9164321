//! Who publishes what: the resolver and its sockets.

use crate::Kind;
use crate::daemons::Daemons;
use crate::error::{OpenError, system};
use crate::peers::Peers;
use crate::place::Place;
use crate::presence::Descriptor;
use crate::session::Source;
use lanecast_base::clock::Clock;
use lanecast_os::process;
use lanecast_os::udp::UdpSocket;
use lanecast_protocol::Nanos;
use lanecast_protocol::resolution::{
    Announcement, Resolver, ResolverEvent, ResolverSettings, SessionTransport,
};
use lanecast_wire::net::Frame;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

/// The most datagrams taken in one turn.
const READS_MAX: usize = 64;
const BUFFER_BYTES: usize = 64 << 10;

/// Tells the resolvers' group, the peers and the daemons what is published here, and asks them for
/// what is wanted.
#[derive(Debug)]
pub(crate) struct Finder {
    resolver: Resolver,
    daemons: Daemons,
    group: Option<SocketAddr>,
    /// Hears the group.
    ears: Option<Arc<UdpSocket>>,
    /// Speaks to it.
    mouth: Arc<UdpSocket>,
    peers: Option<Peers>,
    found: VecDeque<(Source, String)>,
    /// Transports by which publishers are joined.
    accept: Vec<Kind>,
    /// The host, and the domain of shared memory there; 0: none.
    home: (u64, u64),
    buffer: Box<[u8]>,
    datagram_bytes: usize,
}

impl Finder {
    /// `own` is the daemon that the program itself is.
    pub(crate) fn open(place: &Place, own: Option<SocketAddr>) -> Result<Self, OpenError> {
        let group = place.settings.resolver_group;
        let ears = match group {
            Some(group) => {
                let socket = place.group_socket(group);
                Some(Arc::new(socket.map_err(system("join net.resolver_group"))?))
            }
            None => None,
        };
        let mut daemons = place.settings.resolvers.iter();
        if place.address.is_loopback() && !daemons.all(|daemon| daemon.ip().is_loopback()) {
            return Err(OpenError::Setting {
                what: "net.resolvers",
                fix: "they are on other hosts, which do not reach this host's loopback: set \
                      net.interface to the address, or the network, towards them",
            });
        }
        let mouth = place.socket(0).map_err(system("open a UDP socket"))?;
        let peers = Peers::open(place)?;
        let random = || process::random().map_err(system("get a random number"));
        let usual = ResolverSettings::default();
        let copies = usize::from(group.is_some()) + peers.as_ref().map_or(0, Peers::count);
        let settings = ResolverSettings {
            resolver: random()?.max(1),
            seed: random()?,
            has_group: copies > 0,
            foreign: place.settings.foreign_adverts,
            bytes_rate: usual.bytes_rate / copies.max(1) as u64,
            ..usual
        };
        let clock = Clock::host();
        let now = clock.ns(clock.ticks());
        let mut resolver = Resolver::new(settings, now);
        let addresses = place.settings.resolvers.iter().copied().chain(own);
        Ok(Self {
            daemons: Daemons::new(addresses, place, &mut resolver, now),
            resolver,
            group,
            ears,
            mouth: Arc::new(mouth),
            peers,
            found: VecDeque::new(),
            accept: place.settings.accept.clone(),
            home: (place.settings.host, place.settings.domain),
            buffer: vec![0; BUFFER_BYTES].into_boxed_slice(),
            datagram_bytes: place.datagram_bytes(),
        })
    }

    /// From now on `source` is announced as a publisher of `topic`.
    pub(crate) fn publish(&mut self, source: &Source, datagram_bytes: usize, topic: &str) {
        let announcement = Announcement {
            session: source.session,
            transport: match source.kind {
                Kind::Rm => SessionTransport::Multicast,
                Kind::Ru => SessionTransport::Unicast,
                Kind::Tcp => SessionTransport::Tcp,
            },
            control: source.address,
            group: source.group,
            host: self.home.0,
            domain: self.home.1,
            pid: source.pid,
            datagram_bytes: u16::try_from(datagram_bytes).unwrap_or(u16::MAX),
        };
        // The publisher has checked the name.
        let _ = self.resolver.publish(announcement, topic);
    }

    pub(crate) fn unpublish(&mut self, session: u64) {
        self.resolver.unpublish(session);
    }

    pub(crate) fn want(&mut self, topic: &str) {
        // The subscriber has checked the name.
        let _ = self.resolver.subscribe(topic);
    }

    pub(crate) fn unwant(&mut self, topic: &str) {
        self.resolver.unsubscribe(topic);
    }

    /// The session is no longer heard: whoever still tells of it lets it be found anew.
    pub(crate) fn lost(&mut self, now: Nanos, session: u64) {
        self.resolver.session_lost(now, session);
    }

    /// One turn; returns how many datagrams and frames came.
    pub(crate) fn turn(&mut self, now: Nanos) -> usize {
        let mut heard = self.listen(now);
        let room = self.datagram_bytes;
        while let Some(length) = self.resolver.next_transmit(now, &mut self.buffer[..room]) {
            if let Some(group) = self.group {
                // What is lost is said again.
                drop(self.mouth.send_to(&self.buffer[..length], group));
            }
            self.peers.iter().for_each(|peers| peers.tell(&self.buffer[..length]));
        }
        heard += self.daemons.turn(&mut self.resolver, now, &mut self.buffer);
        while let Some(event) = self.resolver.next_event() {
            if let ResolverEvent::Found { announcement, topic } = event
                && !self.is_reached_by_memory(&announcement)
            {
                let source = source(&announcement);
                if self.accept.contains(&source.kind) {
                    self.found.push_back((source, topic.to_string()));
                }
            }
        }
        heard
    }

    /// Whether subscribers here have the publisher by shared memory already.
    fn is_reached_by_memory(&self, announcement: &Announcement) -> bool {
        self.home.1 != 0 && (announcement.host, announcement.domain) == self.home
    }

    fn listen(&mut self, now: Nanos) -> usize {
        let Self { resolver, ears, peers, buffer, .. } = self;
        let group = ears.as_ref().map_or(0, |ears| {
            hear(ears, buffer, |from, frame| resolver.on_frame(now, from, frame))
        });
        let peers = peers.as_ref().map_or(0, |peers| {
            hear(peers.socket(), buffer, |from, frame| {
                if peers.has(from) {
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
        due.min(self.daemons.next_deadline(&self.resolver, now))
    }

    pub(crate) fn descriptors(&self, into: &mut Vec<(Descriptor, bool)>) {
        let ears = self.ears.iter().chain(self.peers.iter().map(Peers::socket));
        into.extend(ears.map(|ears| (Descriptor::Udp(Arc::clone(ears)), false)));
        self.daemons.descriptors(into);
    }
}

/// Takes in what a socket has; returns how many datagrams that were.
fn hear(
    ears: &UdpSocket,
    buffer: &mut [u8],
    mut each: impl FnMut(SocketAddr, &Frame<'_>),
) -> usize {
    let mut heard = 0;
    while heard < READS_MAX
        && let Ok(Some((length, from))) = ears.receive(buffer)
    {
        let mut rest = &buffer[..length];
        while let Some((frame, after)) = Frame::split(rest) {
            each(from, &frame);
            rest = after;
        }
        heard += 1;
    }
    heard
}

const fn source(announcement: &Announcement) -> Source {
    let kind = match announcement.transport {
        SessionTransport::Multicast => Kind::Rm,
        SessionTransport::Unicast => Kind::Ru,
        SessionTransport::Tcp => Kind::Tcp,
    };
    Source {
        kind,
        session: announcement.session,
        address: announcement.control,
        group: announcement.group,
        pid: announcement.pid,
    }
}
