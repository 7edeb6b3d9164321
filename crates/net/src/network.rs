//! A network: opens publishers and subscribers on one interface.

use crate::conductor_handle::ConductorHandle;
use crate::context::NetContext;
use crate::counters::PublisherStatus;
use crate::error::{OpenError, check_name, system};
use crate::multicast_loopback::MulticastLoopback;
use crate::owner_state::OwnerState;
use crate::peer_socket::PeerKind;
use crate::publisher::Publisher;
use crate::receive_sessions::ReceiveSessions;
use crate::receive_share;
use crate::receiver_agent::{StandIn, SubscriberEntry};
use crate::refused_hosts::RefusedDatagramsReport;
use crate::refused_topics::RefusedTopics;
use crate::send_session::{SendSession, SendTransport};
use crate::sender_agent::PublisherEntry;
use crate::sessions_end::{ServedSessions, SessionsEnd};
use crate::settings::{DeliverySettings, NetSettings, Pacing, ThreadingMode, nanos};
use crate::source::{Source, TransportKind};
use crate::stand_in_pacing::StandInPacing;
use crate::subscriber::Subscriber;
use crate::tcp_sender::TcpSender;
use lanecast_base::clock::Clock;
use lanecast_os::biased::Biased;
use lanecast_os::xdp::XdpMode;
use lanecast_os::{process, tcp};
use lanecast_protocol::fec::FecSettings;
use lanecast_protocol::rng::Rng;
use lanecast_protocol::sender::{self, Distribution, Sender, SenderSettings};
use lanecast_transport::{Publish, SessionId, TopicSelection, Transport};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// The largest frame of a TCP session: large enough that its header costs nothing.
const STREAM_FRAME_BYTES: usize = 32 << 10;
/// Link rate assumed for the repair budget of sessions without a data rate: 10 Gbit/s.
const LINK_RATE: u64 = 1_250_000_000;
/// TCP connections that may wait to be accepted.
const ACCEPT_BACKLOG: u32 = 64;

/// One interface, and all publishers and subscribers of the program on it. Cheap to clone.
///
/// The last drop, of the network or of its last publisher or subscriber, waits until receivers have
/// all that closed publishers have sent, and publishers over TCP know which subscribers have left:
/// at most for [`NetSettings::liveness`].
#[derive(Clone)]
pub struct Network {
    conductor: Arc<ConductorHandle>,
}

impl Network {
    /// Opens the interface, and starts the background threads.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(settings: NetSettings) -> Result<Self, OpenError> {
        let conductor = ConductorHandle::start(NetContext::new(settings)?)?;
        Ok(Self { conductor: Arc::new(conductor) })
    }

    /// The settings.
    pub fn settings(&self) -> &NetSettings {
        &self.conductor.context.settings
    }

    /// The way by which frames pass the kernel's stack by, if they do ([`NetSettings::io`]).
    pub fn xdp_mode(&self) -> Option<XdpMode> {
        self.conductor.context.xdp.as_ref().map(|device| device.mode())
    }

    /// The reason why datagrams go by sockets although [`NetSettings::io`] asks for
    /// [`IoKind::Xdp`](crate::IoKind::Xdp); `None` if they do not, or were to.
    pub fn io_fallback(&self) -> Option<&str> {
        self.conductor.context.io_fallback.as_deref()
    }

    /// Datagrams that were refused for their seal since the start, and the hosts that sent them:
    /// programs with other keys, or with none, as far as anybody can tell.
    pub fn refused_datagrams(&self) -> RefusedDatagramsReport {
        self.conductor.context.telemetry.refused()
    }

    /// Address of the interface.
    pub fn address(&self) -> IpAddr {
        self.conductor.context.address
    }

    /// The address of the resolver daemon in this program, if [`NetSettings::resolver_port`] asks
    /// for one.
    pub fn resolver_address(&self) -> Option<SocketAddr> {
        self.conductor.resolver_address()
    }

    /// Opens a publisher of `topic` over `kind`.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn publisher(&self, kind: TransportKind, topic: &str) -> Result<Publisher, OpenError> {
        self.publisher_of((kind, self.settings().pacing), SessionId(random()?), topic)
    }

    fn publisher_of(
        &self,
        (kind, pacing): (TransportKind, Pacing),
        session: SessionId,
        topic: &str,
    ) -> Result<Publisher, OpenError> {
        check_name(topic)?;
        let context = &self.conductor.context;
        let settings = &context.settings;
        // Zero names no session.
        let session = session.0.max(1);
        let (transport, address) = self.send_transport(kind)?;
        let group = settings.own_group(topic).unwrap_or(settings.group);
        let clock = Clock::host();
        let datagram_bytes = match kind {
            // A small window still has to hold several frames, or each would wait for the last one.
            TransportKind::Tcp => STREAM_FRAME_BYTES.min(settings.window_bytes / 8),
            TransportKind::Rm | TransportKind::Ru => context.datagram_bytes(),
        };
        let sender = Sender::new(
            self.sender_settings(
                (kind, group),
                pacing,
                session,
                datagram_bytes,
                [random()?, random()?],
            ),
            clock.ns(clock.ticks()),
        );
        let status = Arc::new(PublisherStatus::default());
        let loss = (settings.artificial_source_loss, Rng::new(random()?));
        let longest = sender.longest_message();
        let mut send_session = SendSession::new(
            sender,
            transport,
            settings.threading != ThreadingMode::Caller,
            Arc::clone(&self.conductor.sender_waker),
            loss,
            settings.publisher_wait,
            Arc::clone(&status),
        );
        let group = (kind == TransportKind::Rm).then_some(group);
        let source = Source { kind, session, address, group, pid: std::process::id() };
        send_session.counter_file = context.telemetry.publisher(&source);
        send_session.telemetry = Some(context.telemetry.clone());
        // The owner's side locks almost for free; the conductor pays for the exclusion.
        let (owner, visitor) = Biased::split(send_session);
        let seen = visitor.lock_count();
        self.conductor.add_publisher(PublisherEntry {
            session,
            visitor,
            status: Arc::clone(&status),
            seen,
            retired: None,
            served: None,
            pacing: StandInPacing::default(),
        });
        let advertised = (source, datagram_bytes);
        let conductor = Arc::clone(&self.conductor);
        let mut publisher = Publisher::new(owner, conductor, advertised, longest, status);
        // Last: from here on the publisher is advertised, and receivers may come.
        publisher.add_topic(topic)?;
        Ok(publisher)
    }

    /// Opens the socket that a publisher sends from.
    fn send_transport(
        &self,
        kind: TransportKind,
    ) -> Result<(SendTransport, SocketAddr), OpenError> {
        let context = &self.conductor.context;
        let port = context.settings.port;
        if kind == TransportKind::Tcp {
            let tls = context.accepting_tls()?;
            let listener = tcp::listen(SocketAddr::new(context.address, port), ACCEPT_BACKLOG)
                .map_err(system("listen for subscribers"))?;
            let address = listener.local_addr().map_err(system("look at a socket"))?;
            let (options, receivers) = (context.tcp_options(), context.settings.receivers_max);
            let telemetry = context.telemetry.clone();
            let sender = TcpSender::new(listener, options, tls, receivers, telemetry);
            return Ok((SendTransport::Tcp(sender), address));
        }
        context.check_datagrams()?;
        let mut socket = context.session_socket(port).map_err(system("open a UDP socket"))?;
        let address = socket.local_address().map_err(system("look at a socket"))?;
        let is_to_group = kind == TransportKind::Rm;
        socket.seek_peer(Some(if is_to_group { PeerKind::Group } else { PeerKind::Host }));
        // Only datagrams to a group come back to this host.
        let loopback = (kind == TransportKind::Rm).then(MulticastLoopback::new);
        Ok((SendTransport::Udp(socket, loopback), address))
    }

    fn sender_settings(
        &self,
        (kind, group): (TransportKind, SocketAddr),
        pacing: Pacing,
        session: u64,
        datagram_bytes: usize,
        cookie_key: [u64; 2],
    ) -> SenderSettings {
        let settings = self.settings();
        SenderSettings {
            session,
            first_sequence: settings.first_sequence,
            distribution: match kind {
                TransportKind::Rm => Distribution::Multicast(group),
                TransportKind::Ru => Distribution::Unicast,
                TransportKind::Tcp => Distribution::Stream,
            },
            pacing: match pacing {
                Pacing::Slowest => sender::Pacing::Slowest,
                Pacing::SlowestOrEject(after) => sender::Pacing::SlowestOrEject(nanos(after)),
                Pacing::Fastest => sender::Pacing::Fastest,
                Pacing::Tagged(tag) => sender::Pacing::Tagged(tag),
                Pacing::None => sender::Pacing::None,
            },
            datagram_bytes,
            envelope_bytes: match kind {
                TransportKind::Tcp => 0,
                TransportKind::Rm | TransportKind::Ru => self.conductor.context.envelope_bytes(),
            },
            window_bytes: settings.window_bytes,
            longest_message: settings.longest_message(),
            receivers_max: settings.receivers_max,
            topics_max: settings.topics_max,
            late_join: settings.late_join,
            liveness: nanos(settings.liveness),
            heartbeat: nanos(settings.heartbeat),
            keep_warm: settings.keep_warm.map(nanos),
            data_rate: settings.data_rate,
            repair_share: settings.repair_share,
            link_rate: LINK_RATE,
            fec: settings.fec.map(|(data, parity)| FecSettings {
                data,
                parity,
                delay: nanos(settings.fec_delay),
            }),
            pid: std::process::id(),
            cookie_key,
        }
    }

    /// Opens a subscriber of all `topics`, over whichever transports their publishers use.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn subscriber(&self, topics: &[&str]) -> Result<Subscriber, OpenError> {
        let delivery = self.settings().delivery;
        self.subscribe(&TopicSelection::of_names(topics), None, delivery)
    }

    fn subscribe(
        &self,
        topics: &TopicSelection,
        except: Option<SessionId>,
        delivery: DeliverySettings,
    ) -> Result<Subscriber, OpenError> {
        if topics.is_empty() {
            return Err(OpenError::NoTopics);
        }
        topics.names().try_for_each(check_name)?;
        let context = &self.conductor.context;
        context.check_joins()?;
        let owner_state = Arc::new(OwnerState::new().map_err(system("make an event"))?);
        let open = || -> Result<ReceiveSessions, OpenError> {
            // Any free port: publishers learn it from the Join.
            let socket = context.session_socket(0).map_err(system("open a UDP socket"))?;
            let (context, state) = (Arc::clone(context), Arc::clone(&owner_state));
            let how = (except, delivery);
            let rng = Rng::new(random()?);
            Ok(ReceiveSessions::new(context, topics.clone(), how, socket, rng, state))
        };
        let number = random()?;
        let (end, stand_in, shares) = if context.settings.receive_threads == 0 {
            let (owner, visitor) = Biased::split(open()?);
            (SessionsEnd::Driven(owner), Some(StandIn::new(visitor)), Vec::new())
        } else {
            let count = context.settings.receive_threads as u32;
            let share_of = |index| {
                let sessions = open()?.into_share(index, count);
                Ok(receive_share::share(sessions, number, Arc::clone(&owner_state)))
            };
            let shares: Result<Vec<_>, OpenError> = (0..count).map(share_of).collect();
            let (shares, readers) = shares?.into_iter().unzip();
            (SessionsEnd::Served(ServedSessions::new(readers)), None, shares)
        };
        let (topics, state) = (topics.clone(), Arc::clone(&owner_state));
        let refused = RefusedTopics::default();
        let entry = SubscriberEntry { number, topics, owner_state: state, stand_in, refused };
        self.conductor.add_subscriber(entry, shares);
        Ok(Subscriber::new(end, Arc::clone(&self.conductor), number, owner_state))
    }
}

fn random() -> Result<u64, OpenError> {
    process::random().map_err(system("get a random number"))
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Network")
            .field("address", &self.conductor.context.address)
            .finish_non_exhaustive()
    }
}

/// A network whose publishers all use one transport. Subscribers use any.
#[derive(Clone, Debug)]
pub struct NetTransport {
    network: Network,
    kind: TransportKind,
    pacing: Pacing,
    delivery: DeliverySettings,
}

impl NetTransport {
    /// Publishers of `network` over `kind`.
    pub fn new(network: Network, kind: TransportKind) -> Self {
        let NetSettings { pacing, delivery, .. } = *network.settings();
        Self { network, kind, pacing, delivery }
    }

    /// The same with another pacing of its publishers.
    #[must_use]
    pub fn with_pacing(self, pacing: Pacing) -> Self {
        Self { pacing, ..self }
    }

    /// The same with another delivery of its subscribers.
    #[must_use]
    pub fn with_delivery(self, delivery: DeliverySettings) -> Self {
        Self { delivery, ..self }
    }

    /// The network.
    pub const fn network(&self) -> &Network {
        &self.network
    }

    /// Opens a publisher with the session number that its twin on another transport has.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn publisher_of(&self, session: SessionId, topic: &str) -> Result<Publisher, OpenError> {
        self.network.publisher_of((self.kind, self.pacing), session, topic)
    }
}

impl Transport for NetTransport {
    type Publisher = Publisher;
    type Subscriber = Subscriber;
    type Error = OpenError;

    fn name(&self) -> &'static str {
        self.kind.name()
    }

    fn keeps_order_across_topics(&self) -> bool {
        // A repair of a datagram delays only the topics that it has.
        self.kind == TransportKind::Tcp
    }

    fn publisher(&self, topic: &str) -> Result<Publisher, OpenError> {
        self.publisher_of(SessionId(random()?), topic)
    }

    fn subscriber(&self, topics: &[&str]) -> Result<Subscriber, OpenError> {
        self.subscriber_of(&TopicSelection::of_names(topics))
    }

    fn subscriber_of(&self, selection: &TopicSelection) -> Result<Subscriber, OpenError> {
        self.network.subscribe(selection, None, self.delivery)
    }

    fn subscriber_except(
        &self,
        topics: &[&str],
        session: SessionId,
    ) -> Result<Subscriber, OpenError> {
        let topics = TopicSelection::of_names(topics);
        self.network.subscribe(&topics, Some(session), self.delivery)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datagram_socket::UNSENT_PAUSE;
    use lanecast_transport::{Event, Subscribe};
    use std::time::{Duration, Instant};

    const LIMIT: Duration = Duration::from_secs(60);

    /// Reads messages and events until the subscriber has had the publisher's message and its end.
    fn read_to_the_end(subscriber: &mut Subscriber) -> Vec<Vec<u8>> {
        let (start, mut messages, mut has_left) = (Instant::now(), Vec::new(), false);
        while !has_left {
            assert!(start.elapsed() < LIMIT, "{messages:?}, and not the end");
            let work = subscriber.poll(64, |event| match event {
                Event::Message(message) => messages.push(message.bytes().to_vec()),
                Event::Left(..) => has_left = true,
                _ => {}
            });
            subscriber.wait(work);
        }
        messages
    }

    /// A publisher would wait for it until its liveness time is over.
    #[test]
    fn a_subscriber_that_has_left_joins_nothing() {
        let settings = NetSettings { resolver_group: None, ..NetSettings::default() };
        let network = Network::open(settings).expect("a network");
        let context = &network.conductor.context;
        let address = SocketAddr::from(([127, 0, 0, 1], 9));
        let source = Source { kind: TransportKind::Ru, session: 1, address, group: None, pid: 0 };
        for leaves in [false, true] {
            let socket = context.session_socket(0).expect("a socket");
            let state = Arc::new(OwnerState::new().expect("an event"));
            let topics = TopicSelection::of_names(&["prices"]);
            let how = (None, DeliverySettings::default());
            let (context, rng) = (Arc::clone(context), Rng::new(1));
            let mut sessions = ReceiveSessions::new(context, topics, how, socket, rng, state);
            if leaves {
                sessions.leave(1);
            }
            let _ = sessions.join(&source, "prices", 1).expect("sockets");
            assert_eq!(sessions.has_session(&source), !leaves);
        }
    }

    /// A card that takes no frames has them sent later, though nothing new is.
    #[test]
    fn what_a_card_does_not_take_is_sent_in_the_next_turns() {
        let settings = NetSettings { resolver_group: None, ..NetSettings::default() };
        let network = Network::open(settings).expect("a network");
        let context = &network.conductor.context;
        let stalled = || {
            let mut socket = context.session_socket(0).expect("a socket");
            socket.stalled_turns = 2;
            socket
        };
        let state = Arc::new(OwnerState::new().expect("an event"));
        let (topics, how) = (TopicSelection::of_names(&["a"]), (None, DeliverySettings::default()));
        let (net, rng) = (Arc::clone(context), Rng::new(1));
        let mut receiving = ReceiveSessions::new(net, topics, how, stalled(), rng, state);
        let sender = network.sender_settings(
            (TransportKind::Ru, network.settings().group),
            Pacing::None,
            1,
            context.datagram_bytes(),
            [1, 2],
        );
        let mut sending = SendSession::new(
            Sender::new(sender, 0),
            SendTransport::Udp(stalled(), None),
            false,
            Arc::clone(&network.conductor.sender_waker),
            (0, Rng::new(1)),
            network.settings().publisher_wait,
            Arc::default(),
        );
        let clock = Clock::host();
        for is_stalled in [true, true, false] {
            let due = receiving.drive_for_owner(1_000).0;
            assert_eq!(due <= 1_000 + UNSENT_PAUSE, is_stalled, "{due}");
            let due = sending.drive_for_owner();
            let is_soon = due <= clock.ns(clock.ticks()) + UNSENT_PAUSE;
            assert!(is_soon || !is_stalled, "{due}");
        }
    }

    /// The owner is in its call at nearly every moment.
    #[test]
    fn the_conductor_joins_for_a_subscriber_that_polls_without_a_pause() {
        let settings = NetSettings { resolver_group: None, ..NetSettings::default() };
        let network = Network::open(settings).expect("a network");
        let context = &network.conductor.context;
        let address = SocketAddr::from(([127, 0, 0, 1], 9));
        let source = Source { kind: TransportKind::Ru, session: 1, address, group: None, pid: 0 };
        let socket = context.session_socket(0).expect("a socket");
        let state = Arc::new(OwnerState::new().expect("an event"));
        let topics = TopicSelection::of_names(&["prices"]);
        let how = (None, DeliverySettings::default());
        let (context, rng) = (Arc::clone(context), Rng::new(1));
        let owner_state = Arc::clone(&state);
        let sessions = ReceiveSessions::new(context, topics, how, socket, rng, state);
        let (mut owner, visitor) = Biased::split(sessions);
        let mut stand_in = StandIn::new(visitor);
        stand_in.found.push(source, "prices".to_owned());
        let (polls, polled) = std::sync::mpsc::channel();
        let owner = std::thread::spawn(move || {
            let mut polls = Some(polls);
            let start = Instant::now();
            loop {
                let sessions = owner.lock();
                let (entered, is_joined) = (Instant::now(), sessions.has_session(&source));
                while entered.elapsed() < Duration::from_micros(20) {
                    lanecast_base::spin(1);
                }
                if let Some(polls) = polls.take() {
                    let _ = polls.send(());
                }
                drop(sessions);
                if is_joined || start.elapsed() > LIMIT {
                    return is_joined;
                }
            }
        });
        polled.recv().expect("a poll");
        // A few duty cycles: their pauses double up to 16 ms.
        for now in 1..=20 {
            stand_in.join_found(&owner_state, now);
        }
        let is_joined = stand_in.found.is_empty();
        while !stand_in.found.is_empty() {
            stand_in.join_found(&owner_state, 21);
        }
        assert!(owner.join().expect("no panic"));
        assert!(is_joined, "the owner's call was waited out");
    }

    #[test]
    fn shares_of_a_receive_thread_that_has_ended_are_served_on() {
        // A daemon of its own finds publishers: no other test is met.
        for keep in [0, 1] {
            let mut network = Network::open(NetSettings {
                resolver_group: None,
                resolver_port: Some(0),
                receive_threads: 1 + keep,
                ..NetSettings::default()
            })
            .expect("a network");
            let conductor = Arc::get_mut(&mut network.conductor).expect("the only handle");
            conductor.end_receive_thread();
            let mut subscriber = network.subscriber(&["prices"]).expect("a subscriber");
            for kind in [TransportKind::Ru, TransportKind::Tcp] {
                let mut publisher = network.publisher(kind, "prices").expect("a publisher");
                assert!(publisher.wait_for_subscribers(1, LIMIT), "not joined");
                publisher.try_send(b"one").expect("room");
                drop(publisher);
                assert_eq!(read_to_the_end(&mut subscriber), [b"one"]);
            }
        }
    }
}
