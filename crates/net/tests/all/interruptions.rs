//! Paths that break and come back, over each transport: between publisher and subscriber stands a
//! relay of the test's own, which discovery names as the publisher's address.

use crate::tls::Sides;
use crate::transports::groups;
use lanecast_conformance::interruptions::{
    Path, TOPICS, a_path_that_comes_back_loses_nothing,
    a_path_that_comes_back_too_late_costs_exact_gaps,
};
use lanecast_net::{
    NetSettings, Network, OpenError, Pacing, Publisher, Subscriber, TlsSettings, TransportKind,
};
use lanecast_protocol::resolution::{Announcement, Resolver, ResolverSettings, SessionTransport};
use lanecast_transport::Publish;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The smallest window.
const WINDOW_BYTES: usize = 64 << 10;
/// No test takes longer; and no silence counts as a death, however busy the machine is.
const LIMIT: Duration = Duration::from_secs(120);

/// A socket at a free address of the loopback.
fn udp() -> (UdpSocket, SocketAddr) {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
    socket.set_nonblocking(true).expect("it does not block");
    let at = socket.local_addr().expect("an address");
    (socket, at)
}

/// Reads one datagram; `None` if there is none.
fn receive<'a>(socket: &UdpSocket, buffer: &'a mut [u8]) -> Option<(&'a [u8], SocketAddr)> {
    // An error tells of an earlier datagram that reached no socket: it counts as lost.
    let (length, from) = socket.recv_from(buffer).ok()?;
    Some((&buffer[..length], from))
}

/// The relay's state, shared with its thread.
struct State {
    is_cut: bool,
    is_stopped: bool,
    /// Frames and connections that the present cut has cost.
    lost: usize,
    /// Connections that were made, all in all.
    connections: usize,
    publisher: SocketAddr,
    /// The address that subscribers take for the publisher's.
    front: UdpSocket,
    listener: Option<TcpListener>,
    /// The address that the publisher takes for the subscriber's.
    back: UdpSocket,
    /// The publisher's group, and the one that subscribers are told of.
    group: Option<(UdpSocket, SocketAddr)>,
    subscriber: Option<SocketAddr>,
    streams: Vec<[TcpStream; 2]>,
    /// Tells the subscriber of the publisher.
    resolver: (Resolver, UdpSocket, SocketAddr),
    start: Instant,
}

impl State {
    /// Passes on what has come; whether anything has.
    fn run(&mut self) -> bool {
        let mut buffer = [0; 65_536];
        self.announce(&mut buffer);
        let mut busy = self.relay_datagrams(&mut buffer);
        busy |= self.accept();
        let is_open = |pair: &mut [TcpStream; 2]| {
            let [near, far] = pair;
            pass(near, far, &mut buffer, &mut busy).is_ok()
                && pass(far, near, &mut buffer, &mut busy).is_ok()
        };
        self.streams.retain_mut(is_open);
        busy
    }

    fn announce(&mut self, buffer: &mut [u8]) {
        let (resolver, socket, to) = &mut self.resolver;
        let now = self.start.elapsed().as_nanos() as u64;
        while let Some(length) = resolver.next_transmit(now, buffer) {
            // The subscriber may not listen yet: advertisements are repeated.
            let _ = socket.send_to(&buffer[..length], *to);
        }
    }

    fn relay_datagrams(&mut self, buffer: &mut [u8]) -> bool {
        let mut busy = false;
        while let Some((bytes, from)) = receive(&self.front, buffer) {
            self.subscriber = Some(from);
            busy = true;
            relay(self.is_cut, &mut self.lost, (&self.back, self.publisher), bytes);
        }
        while let Some((bytes, _)) = receive(&self.back, buffer) {
            let Some(to) = self.subscriber else { continue };
            busy = true;
            relay(self.is_cut, &mut self.lost, (&self.front, to), bytes);
        }
        if let Some((group, to)) = &self.group {
            while let Some((bytes, _)) = receive(group, buffer) {
                busy = true;
                relay(self.is_cut, &mut self.lost, (&self.front, *to), bytes);
            }
        }
        busy
    }

    fn accept(&mut self) -> bool {
        let Some(listener) = &self.listener else { return false };
        let Ok((near, _)) = listener.accept() else { return false };
        if self.is_cut {
            self.lost += 1;
            return true;
        }
        let far = TcpStream::connect(self.publisher).expect("the publisher listens");
        let pair = [near, far];
        for stream in &pair {
            stream.set_nonblocking(true).expect("it does not block");
        }
        self.connections += 1;
        self.streams.push(pair);
        true
    }
}

/// Sends a datagram on, or loses it.
fn relay(is_cut: bool, lost: &mut usize, (socket, to): (&UdpSocket, SocketAddr), bytes: &[u8]) {
    if is_cut {
        *lost += 1;
    } else {
        // A refused datagram counts as lost on the way.
        let _ = socket.send_to(bytes, to);
    }
}

/// Passes on what has come on `from`.
///
/// # Errors
/// If one of the connections has ended.
fn pass(
    from: &mut TcpStream,
    to: &mut TcpStream,
    buffer: &mut [u8],
    busy: &mut bool,
) -> io::Result<()> {
    match from.read(buffer) {
        Ok(0) => Err(ErrorKind::ConnectionAborted.into()),
        Ok(length) => {
            *busy = true;
            let mut rest = &buffer[..length];
            while !rest.is_empty() {
                match to.write(rest) {
                    Ok(written) => rest = &rest[written..],
                    Err(error) if error.kind() == ErrorKind::WouldBlock => thread::yield_now(),
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        }
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
        Err(error) => Err(error),
    }
}

/// The path between one publisher and one subscriber.
struct Relay {
    state: Arc<Mutex<State>>,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    fn new(state: State) -> Self {
        let state = Arc::new(Mutex::new(state));
        let shared = Arc::clone(&state);
        let run = move || {
            loop {
                let mut state = shared.lock().expect("no panic yet");
                if state.is_stopped {
                    return;
                }
                let busy = state.run();
                drop(state);
                // Leaves the CPU, and the lock, to others.
                if busy { thread::yield_now() } else { thread::sleep(Duration::from_micros(300)) }
            }
        };
        Self { state, thread: Some(thread::spawn(run)) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("the relay runs")
    }
}

impl Path for Relay {
    fn cut(&self) {
        let mut state = self.state();
        state.is_cut = true;
        state.lost = state.streams.len();
        state.streams.clear();
    }

    fn restore(&self) {
        let start = Instant::now();
        loop {
            let mut state = self.state();
            if state.lost > 0 {
                // What waits in the sockets came while the path was cut.
                state.run();
                state.is_cut = false;
                return;
            }
            drop(state);
            assert!(start.elapsed() < LIMIT, "the cut costs nothing");
            thread::yield_now();
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        if let Ok(mut state) = self.state.lock() {
            state.is_stopped = true;
        }
        if let Some(thread) = self.thread.take() {
            assert!(thread.join().is_ok() || thread::panicking(), "the relay has failed");
        }
    }
}

/// A publisher and a subscriber that meet through the relay.
struct Stage {
    // Before the relay, by which the ends of the sessions are told.
    _networks: [Network; 2],
    relay: Relay,
}

impl Stage {
    fn open(
        kind: TransportKind,
        pacing: Pacing,
        tls: &TlsSettings,
    ) -> (Self, Publisher, Subscriber) {
        let (group, other_group) = groups();
        // No discovery but the relay's: to the subscriber alone.
        let unheard = udp();
        let resolver = udp();
        let open = |other: SocketAddr, group| {
            let (_, at) = udp();
            let settings = NetSettings {
                resolver_group: None,
                peers: vec![at, other],
                group,
                window_bytes: WINDOW_BYTES,
                liveness: LIMIT,
                recovery: LIMIT,
                pacing,
                tls: tls.clone(),
                ..NetSettings::default()
            };
            match Network::open(settings) {
                Ok(network) => Some((network, at)),
                // Another process has taken the port meanwhile.
                Err(OpenError::Setting { what: "net.peers", .. }) => None,
                Err(error) => panic!("{error}"),
            }
        };
        let open = |other, group| (0..100).find_map(|_| open(other, group)).expect("a free port");
        let (publishing, _) = open(unheard.1, group);
        let (subscribing, subscriber_at) = open(resolver.1, other_group);
        let publisher = publishing.publisher(kind, TOPICS[0]).expect("a publisher");
        let subscriber = subscribing.subscriber(&TOPICS).expect("a subscriber");
        let (front, listener) = front(kind);
        let at = front.local_addr().expect("an address");
        let mut announcing =
            Resolver::new(ResolverSettings { resolver: 7, ..Default::default() }, 0);
        let is_multicast = kind == TransportKind::Rm;
        let announcement = Announcement {
            session: publisher.session().0,
            transport: match kind {
                TransportKind::Rm => SessionTransport::Multicast,
                TransportKind::Ru => SessionTransport::Unicast,
                TransportKind::Tcp => SessionTransport::Tcp,
            },
            control: at,
            group: is_multicast.then_some(other_group),
            host: 0,
            domain: 0,
            pid: 1,
            datagram_bytes: 1_472,
        };
        for topic in TOPICS {
            announcing.publish(announcement, topic).expect("a name");
        }
        let state = State {
            is_cut: false,
            is_stopped: false,
            lost: 0,
            connections: 0,
            publisher: address_of(&publisher),
            front,
            listener,
            back: udp().0,
            group: is_multicast.then(|| (member(group), other_group)),
            subscriber: None,
            streams: Vec::new(),
            resolver: (announcing, resolver.0, subscriber_at),
            start: Instant::now(),
        };
        let stage = Self { relay: Relay::new(state), _networks: [publishing, subscribing] };
        (stage, publisher, subscriber)
    }
}

/// The publisher's control address.
fn address_of(publisher: &Publisher) -> SocketAddr {
    let parts: Vec<&str> = publisher.source().split(':').collect();
    format!("{}:{}", parts[1], parts[2]).parse().expect("an address")
}

/// Sockets at one address, of which the transport uses one.
fn front(kind: TransportKind) -> (UdpSocket, Option<TcpListener>) {
    loop {
        let (front, at) = udp();
        if kind != TransportKind::Tcp {
            return (front, None);
        }
        // Another program may have this port for its connections.
        if let Ok(listener) = TcpListener::bind(at) {
            listener.set_nonblocking(true).expect("it does not block");
            return (front, Some(listener));
        }
    }
}

/// A socket that gets the datagrams of `group`.
fn member(group: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind(group).expect("a socket of the group");
    socket.set_nonblocking(true).expect("it does not block");
    let SocketAddr::V4(group) = group else { unreachable!("groups of these tests are IPv4") };
    socket.join_multicast_v4(group.ip(), &Ipv4Addr::LOCALHOST).expect("a member");
    socket
}

fn comes_back(kind: TransportKind, tls: &TlsSettings) {
    let (stage, publisher, subscriber) = Stage::open(kind, Pacing::Slowest, tls);
    a_path_that_comes_back_loses_nothing(publisher, subscriber, &stage.relay);
    let connections = stage.relay.state().connections;
    assert!(kind != TransportKind::Tcp || connections > 5, "{connections} connections");
}

fn comes_back_too_late(kind: TransportKind) {
    let tls = TlsSettings::default();
    let (stage, publisher, subscriber) = Stage::open(kind, Pacing::None, &tls);
    let path = (&stage.relay, WINDOW_BYTES);
    a_path_that_comes_back_too_late_costs_exact_gaps(publisher, subscriber, path);
}

macro_rules! suites {
    ($($name:ident: $kind:ident,)*) => {
        $(mod $name {
            use super::*;

            #[test]
            fn a_path_comes_back_and_nothing_is_lost() {
                comes_back(TransportKind::$kind, &TlsSettings::default());
            }

            #[test]
            fn a_path_comes_back_too_late_and_the_gaps_are_exact() {
                comes_back_too_late(TransportKind::$kind);
            }
        })*
    };
}

/// Connections under TLS are cut off, so that none ends by its close notification.
#[test]
fn an_encrypted_path_comes_back_and_nothing_is_lost() {
    comes_back(TransportKind::Tcp, &Sides::new().settings(Some("end")));
}

suites! {
    rm: Rm,
    ru: Ru,
    tcp: Tcp,
}
