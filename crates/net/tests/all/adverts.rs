//! A peer that advertises thousands of publishers has few connections made to where it says.

use lanecast_net::{NetSettings, Network, TransportKind};
use lanecast_protocol::resolution::{Announcement, Resolver, ResolverSettings, SessionTransport};
use lanecast_transport::Subscribe;
use std::net::{SocketAddr, TcpListener, UdpSocket};
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
        Self { liar, at, network: Network::open(change(settings)).expect("a network") }
    }

    /// Advertises many sessions at `control`, and lets the subscriber hear of them; how many
    /// connections come there, for which it waits until there are `least`.
    fn lie(&self, control: SocketAddr, listener: &TcpListener, least: usize) -> usize {
        self.advertise(LIES, control, listener, least, |_| true)
    }

    /// The same for so many; connections that are not to be kept are closed at once.
    fn advertise(
        &self,
        sessions: u64,
        control: SocketAddr,
        listener: &TcpListener,
        least: usize,
        keep: impl Fn(usize) -> bool,
    ) -> usize {
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
        while step < 100 || count < least {
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
                connections.extend(accepted.filter(|_| keep(count)));
            }
            step += 1;
        }
        count
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
    let count = scene.advertise(1, at, &listener, 2, |_| false);
    let most = 20 + start.elapsed().as_secs() as usize;
    assert!(count <= most, "{count} connections");
}
