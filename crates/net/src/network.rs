//! A context's part of the network: makes both ends, and keeps the conductor.

use crate::Kind;
use crate::desk::Desk;
use crate::echo::Echo;
use crate::error::{OpenError, check_name, system};
use crate::finder::Finder;
use crate::inbound::Inbound;
use crate::outbound::{Outbound, Way};
use crate::place::Place;
use crate::presence::Presence;
use crate::publisher::Publisher;
use crate::publishers::PublisherEnd;
use crate::registry::{DaemonSettings, ResolverDaemon};
use crate::session::Source;
use crate::settings::{Drive, Pacing, Settings, nanos};
use crate::streams::Streams;
use crate::subscriber::Subscriber;
use crate::subscribers::SubscriberEnd;
use crate::tally::Tally;
use lanecast_base::AgentRunner;
use lanecast_base::clock::Clock;
use lanecast_os::biased::Biased;
use lanecast_os::{process, tcp};
use lanecast_protocol::rng::Rng;
use lanecast_protocol::sender::{self, Distribution, Sender, SenderSettings};
use lanecast_transport::SessionId;
use std::collections::BTreeSet;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

/// The largest frame of a stream: large enough that its header is nothing.
const STREAM_FRAME_BYTES: usize = 32 << 10;
/// What repairs may take where the data has no rate of its own: a tenth of 10 Gbit/s.
const LINK_RATE: u64 = 1_250_000_000;

/// One interface, and all publishers and subscribers of the program on it. Cheap to clone.
#[derive(Clone)]
pub struct Network {
    shared: Arc<Shared>,
}

struct Shared {
    place: Arc<Place>,
    desk: Desk,
    daemon: Option<(AgentRunner, SocketAddr)>,
}

impl Network {
    /// Opens the interface, and starts the threads in the background.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(settings: Settings) -> Result<Self, OpenError> {
        let place = Arc::new(Place::new(settings)?);
        let daemon = place.settings.resolver_port.map(|port| {
            let at = SocketAddr::new(place.address, port);
            ResolverDaemon::start(&DaemonSettings::at(at))
        });
        let daemon = daemon.transpose()?;
        let own = daemon.as_ref().map(|(_, address)| *address);
        let finder = Finder::open(&place, own)?;
        let desk = Desk::open(&place.settings, finder)?;
        Ok(Self { shared: Arc::new(Shared { place, desk, daemon }) })
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.shared.place.settings
    }

    /// Where it is a daemon for others, if [`Settings::resolver_port`] says so.
    pub fn resolver_address(&self) -> Option<SocketAddr> {
        self.shared.daemon.as_ref().map(|(_, address)| *address)
    }

    /// Where ends report to the threads in the background.
    pub(crate) fn desk(&self) -> &Desk {
        &self.shared.desk
    }

    /// A publisher of `topic`, carried by `kind`.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn publisher(&self, kind: Kind, topic: &str) -> Result<Publisher, OpenError> {
        self.publisher_of(kind, SessionId(random()?), topic)
    }

    pub(crate) fn publisher_of(
        &self,
        kind: Kind,
        session: SessionId,
        topic: &str,
    ) -> Result<Publisher, OpenError> {
        check_name(topic)?;
        let place = &self.shared.place;
        let settings = &place.settings;
        let session = session.0.max(1);
        let (way, address) = self.way(kind)?;
        let group = settings.own_group(topic).unwrap_or(settings.group);
        let clock = Clock::host();
        let datagram_bytes = match kind {
            Kind::Tcp => STREAM_FRAME_BYTES.min(settings.window_bytes / 8),
            Kind::Rm | Kind::Ru => place.datagram_bytes(),
        };
        let sender = Sender::new(
            self.sender_settings((kind, group), session, datagram_bytes, random()?),
            clock.ns(clock.ticks()),
        );
        let tally = Arc::new(Tally::default());
        let loss = (settings.artificial_source_loss, Rng::new(random()?));
        let longest = sender.longest_message();
        let mut outbound = Outbound::new(
            sender,
            way,
            settings.drive != Drive::Caller,
            Arc::clone(&self.shared.desk.sending),
            loss,
            settings.publisher_wait,
            Arc::clone(&tally),
        );
        let group = (kind == Kind::Rm).then_some(group);
        let source = Source { kind, session, address, group, pid: std::process::id() };
        outbound.board = place.telemetry.publisher(&source);
        let (owner, visitor) = Biased::split(outbound);
        let seen = visitor.entries();
        self.desk().publish(PublisherEnd {
            session,
            visitor,
            tally: Arc::clone(&tally),
            seen,
            retired: None,
        });
        let told = (source, datagram_bytes);
        let mut publisher = Publisher::new(owner, self.clone(), told, longest, tally);
        lanecast_transport::Publish::add_topic(&mut publisher, topic)?;
        Ok(publisher)
    }

    fn way(&self, kind: Kind) -> Result<(Way, SocketAddr), OpenError> {
        let place = &self.shared.place;
        let port = place.settings.port;
        if kind == Kind::Tcp {
            let listener = tcp::listen(SocketAddr::new(place.address, port), 64)
                .map_err(system("listen for subscribers"))?;
            let address = listener.local_addr().map_err(system("look at a socket"))?;
            let streams = Streams::new(listener, place.tcp_options(), place.settings.receivers_max);
            return Ok((Way::Streams(streams), address));
        }
        let socket = place.socket(port).map_err(system("open a UDP socket"))?;
        let address = socket.local_address().map_err(system("look at a socket"))?;
        let echo = (kind == Kind::Rm).then(Echo::new);
        Ok((Way::Datagrams(Arc::new(socket), echo), address))
    }

    fn sender_settings(
        &self,
        (kind, group): (Kind, SocketAddr),
        session: u64,
        datagram_bytes: usize,
        seed: u64,
    ) -> SenderSettings {
        let settings = self.settings();
        SenderSettings {
            session,
            first_sequence: settings.first_sequence,
            distribution: match kind {
                Kind::Rm => Distribution::Multicast(group),
                Kind::Ru => Distribution::Unicast,
                Kind::Tcp => Distribution::Stream,
            },
            pacing: match settings.pacing {
                Pacing::Slowest => sender::Pacing::Slowest,
                Pacing::SlowestOrEject(after) => sender::Pacing::SlowestOrEject(nanos(after)),
                Pacing::Fastest => sender::Pacing::Fastest,
                Pacing::Tagged(tag) => sender::Pacing::Tagged(tag),
                Pacing::None => sender::Pacing::None,
            },
            datagram_bytes,
            window_bytes: settings.window_bytes,
            longest_message: settings.longest_message(),
            receivers_max: settings.receivers_max,
            topics_max: settings.topics_max,
            late_join: settings.late_join,
            liveness: nanos(settings.liveness),
            heartbeat: nanos(settings.heartbeat),
            data_rate: settings.data_rate,
            repair_share: settings.repair_share,
            link_rate: LINK_RATE,
            pid: std::process::id(),
            seed,
        }
    }

    /// A subscriber to all of `topics`, whatever carries them.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn subscriber(&self, topics: &[&str]) -> Result<Subscriber, OpenError> {
        if topics.is_empty() {
            return Err(OpenError::NoTopics);
        }
        topics.iter().try_for_each(|topic| check_name(topic))?;
        let place = &self.shared.place;
        let own = place.socket(0).map_err(system("open a UDP socket"))?;
        let topics: BTreeSet<String> = topics.iter().map(|topic| (*topic).to_owned()).collect();
        let chance = Rng::new(random()?);
        let presence = Arc::new(Presence::new().map_err(system("make a bell"))?);
        let sign = Arc::clone(&presence);
        let inbound = Inbound::new(Arc::clone(place), topics.clone(), own, chance, sign);
        let (owner, visitor) = Biased::split(inbound);
        let number = random()?;
        let seen = visitor.entries();
        self.desk().subscribe(SubscriberEnd {
            number,
            topics,
            visitor,
            presence: Arc::clone(&presence),
            seen,
            found: Vec::new(),
        });
        let wait = place.settings.subscriber_wait;
        Ok(Subscriber::new(owner, self.clone(), number, presence, wait))
    }
}

fn random() -> Result<u64, OpenError> {
    process::random().map_err(system("get a random number"))
}

impl Drop for Shared {
    fn drop(&mut self) {
        // Closed publishers go on repairing until their receivers have everything.
        self.desk.wait_until_settled(self.place.settings.liveness);
    }
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Network")
            .field("address", &self.shared.place.address)
            .finish_non_exhaustive()
    }
}
