//! A peer that advertises thousands of publishers has few connections made to where it says.

use lanecast_net::{NetSettings, Network, TransportKind};
use lanecast_protocol::resolution::{Announcement, Resolver, ResolverSettings, SessionTransport};
use lanecast_protocol::rng::Rng;
use lanecast_transport::Subscribe;
use lanecast_wire::net::{Frame, JoinBody, Kind};
use std::io::Read;
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

/// No test takes longer.
const LIMIT: Duration = Duration::from_secs(60);
/// Joins that false advertisements may start at a time.
const JOINS_EACH: usize = 32;
const LIES: u64 = 2_000;

/// A peer that lies, and a subscriber that hears it.
struct Scene {
    liar: UdpSocket,
    at: SocketAddr,
    network: Network,
    /// Tellings, at least.
    steps: u64,
}

impl Scene {
    fn new(change: impl Fn(NetSettings) -> NetSettings) -> Self {
        let liar = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let at = UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
        let at = at.expect("an address");
        let peers = vec![at, liar.local_addr().expect("an address")];
        // What stays silent is not tried again while the test lasts.
        let liveness = Duration::from_secs(60);
        let settings =
            NetSettings { resolver_group: None, peers, liveness, ..NetSettings::default() };
        let network = Network::open(change(settings)).expect("a network");
        Self { liar, at, network, steps: 100 }
    }

    /// Advertises many sessions at `control`, and lets the subscriber hear of them; how many
    /// connections come there, for which it waits until there are `least`.
    fn lie(&self, control: SocketAddr, listener: &TcpListener, least: usize) -> usize {
        self.advertise(LIES, control, listener, least, |_| true).0
    }

    /// The same for so many; connections that are not to be kept are closed at once, the others are
    /// returned.
    fn advertise(
        &self,
        sessions: u64,
        control: SocketAddr,
        listener: &TcpListener,
        least: usize,
        keep: impl Fn(usize) -> bool,
    ) -> (usize, Vec<TcpStream>) {
        let mut subscriber = self.network.subscriber(&["prices"]).expect("a subscriber");
        let settings = ResolverSettings { resolver: 7, ..ResolverSettings::default() };
        let mut resolver = Resolver::new(settings, 0);
        for session in 1..=sessions {
            let announcement = Announcement {
                session,
                transport: SessionTransport::Tcp,
                control,
                group: None,
                host: 0,
                domain: 0,
                pid: 1,
                datagram_bytes: 1_472,
            };
            resolver.publish(announcement, "prices").expect("a name");
        }
        listener.set_nonblocking(true).expect("it does not block");
        let (mut connections, mut count) = (Vec::new(), 0);
        let mut buffer = [0; 1_400];
        let start = Instant::now();
        // As long as it takes to tell all of them several times: more connections than may come
        // would be made by then.
        let mut step = 0;
        while step < self.steps || count < least {
            assert!(start.elapsed() < LIMIT, "{count} connections, not {least}");
            while let Some(length) = resolver.next_transmit(step * 10_000_000, &mut buffer) {
                self.liar.send_to(&buffer[..length], self.at).expect("it is sent");
            }
            let until = Instant::now() + Duration::from_millis(10);
            while Instant::now() < until {
                let work = subscriber.poll(64, |_| {});
                subscriber.wait(work);
                let accepted = listener.accept().ok();
                count += usize::from(accepted.is_some());
                let accepted = accepted.filter(|_| keep(count));
                connections.extend(accepted.map(|(connection, _)| connection));
            }
            step += 1;
        }
        (count, connections)
    }
}

fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let at = listener.local_addr().expect("an address");
    (listener, at)
}

#[test]
fn few_joins_at_a_time_go_to_one_address() {
    let (listener, at) = listener();
    let count = Scene::new(|settings| settings).lie(at, &listener, 1);
    assert!((1..=JOINS_EACH).contains(&count), "{count} connections");
}

#[test]
fn no_address_but_the_sender_s_is_believed_unless_that_is_allowed() {
    let listener = TcpListener::bind("127.0.0.2:0").expect("a listener");
    let at = listener.local_addr().expect("an address");
    assert_eq!(Scene::new(|settings| settings).lie(at, &listener, 0), 0);
    let foreign = Scene::new(|settings| NetSettings { foreign_adverts: true, ..settings });
    assert!(foreign.lie(at, &listener, 1) > 0);
}

#[test]
fn transports_that_are_not_accepted_are_passed_over() {
    let (listener, at) = listener();
    let scene = Scene::new(|settings| NetSettings {
        accept: vec![TransportKind::Rm, TransportKind::Ru],
        ..settings
    });
    assert_eq!(scene.lie(at, &listener, 0), 0);
}

/// Twenty in the usual second at the very most: each wait is twice as long as the one before, up to
/// a second.
#[test]
fn connections_that_end_at_once_follow_each_other_ever_more_slowly() {
    let (listener, at) = listener();
    let scene = Scene::new(|settings| settings);
    let start = Instant::now();
    let (count, _) = scene.advertise(1, at, &listener, 2, |_| false);
    let most = 20 + start.elapsed().as_secs() as usize;
    assert!(count <= most, "{count} connections");
}

/// The generator's state behind one of its numbers.
fn state_of(number: u64) -> u64 {
    let x = number ^ number >> 31 ^ number >> 62;
    let x = x.wrapping_mul(0x3196_42b2_d24d_8ec3);
    let x = x ^ x >> 27 ^ x >> 54;
    let x = x.wrapping_mul(0x96de_1b17_3f11_9089);
    x ^ x >> 30 ^ x >> 60
}

/// A number is all that proves a receiver that returns by another connection. Each publisher learns
/// that of the receiver that joins it.
#[test]
fn no_receiver_s_number_tells_that_of_another() {
    let mut rng = Rng::new(7);
    let (first, second) = (rng.next_u64(), rng.next_u64());
    assert_eq!(Rng::new(state_of(first)).next_u64(), second, "the test can tell");

    let (listener, at) = listener();
    let scene = Scene { steps: 1, ..Scene::new(|settings| settings) };
    let (_, connections) = scene.advertise(8, at, &listener, 8, |_| true);
    let numbers = connections.into_iter().map(|mut connection| {
        let mut bytes = [0; 1_400];
        connection.set_nonblocking(false).expect("it blocks");
        let length = connection.read(&mut bytes).expect("a Join");
        let (frame, _) = Frame::split(&bytes[..length]).expect("a frame");
        assert_eq!(frame.kind, Kind::Join);
        JoinBody::split(frame.body).expect("a body").0.receiver.get()
    });
    let numbers: Vec<u64> = numbers.collect();
    for number in &numbers {
        let next = Rng::new(state_of(*number)).next_u64();
        assert!(!numbers.contains(&next), "{number:x} tells {next:x} of {numbers:x?}");
    }
}
