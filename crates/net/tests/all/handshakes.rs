//! A host that opens connections without end, silent ones or ones that begin a handshake each,
//! is bounded for itself: programs of other hosts come in, and its refusals are counted and told.

use crate::resolver::client::anywhere;
use crate::sealing::counter;
use crate::tls::{LIMIT, Sides, address_of, errors, flow};
use crate::transports::groups;
use lanecast_base::Agent;
use lanecast_net::{
    DaemonSettings, NetSettings, Network, ResolverDaemon, TlsSettings, TransportKind,
};
use lanecast_os::tcp;
use lanecast_tls::{PeerName, TlsConnector, TlsSession};
use lanecast_transport::{Event, Publish, Subscribe};
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// The host of the stranger; all others are 127.0.0.1.
const STRANGER: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));

/// Connections from the stranger, each with these first bytes.
struct Flood {
    at: SocketAddr,
    hello: Vec<u8>,
    connections: Vec<TcpStream>,
}

impl Flood {
    fn new(at: SocketAddr, hello: &[u8]) -> Self {
        Self { at, hello: hello.to_vec(), connections: Vec::new() }
    }

    /// Opens so many further ones, and forgets the oldest.
    fn go_on(&mut self, count: usize) {
        for _ in 0..count {
            self.connections.push(tcp::connect(Some(STRANGER), self.at).expect("a connection"));
        }
        for connection in &mut self.connections {
            // Sent once it is established; the other side may have closed it.
            let _ = connection.write(&self.hello);
        }
        self.connections.drain(..self.connections.len().saturating_sub(200));
    }
}

/// The first bytes of a client of TLS, who never sends the others.
fn hello(sides: &Sides) -> Vec<u8> {
    let connector = TlsConnector::load(&sides.own.path("ca.pem"), None).expect("files");
    let name = PeerName::try_from("127.0.0.1").expect("a name");
    let mut session = TlsSession::connect(&connector, name).expect("a session");
    let mut bytes = Vec::new();
    session.write_to(&mut bytes).expect("memory takes all");
    bytes
}

#[test]
fn handshakes_of_one_host_keep_no_subscriber_of_another_out() {
    let sides = Sides::new();
    let counters = tempfile::TempDir::new_in("/dev/shm").expect("a directory");
    let (_, resolver_group) = groups();
    let network = Network::open(NetSettings {
        resolver_group: Some(resolver_group),
        tls: sides.settings(Some("end")),
        counters: Some(counters.path().to_owned()),
        ..NetSettings::default()
    });
    let network = network.expect("a network");
    let mut publisher = network.publisher(TransportKind::Tcp, "prices").expect("a publisher");
    let mut flood = Flood::new(address_of(&publisher), &hello(&sides));
    let start = Instant::now();
    let refused = || counter(counters.path(), "tls handshakes over the rate");
    while refused() == 0 {
        assert!(start.elapsed() < LIMIT, "none is refused");
        flood.go_on(32);
        publisher.poll_events(|event| panic!("{event:?}"));
    }
    let mut subscriber = network.subscriber(&["prices"]).expect("a subscriber");
    while publisher.subscribers() == 0 {
        assert!(start.elapsed() < LIMIT, "strangers keep it out");
        flood.go_on(4);
        subscriber.poll(64, |_| {});
        let _ = publisher.wait_for_subscribers(1, Duration::from_millis(5));
    }
    flow(&mut publisher, &mut subscriber, 5);
    let told = errors(counters.path());
    assert!(
        told.iter().any(|error| error.starts_with("127.0.0.2 begins more than 100")),
        "{told:?}"
    );
    // The file is written before the owner's calls, or while it waits.
    while counter(counters.path(), "tls handshakes completed") == 0 {
        assert!(start.elapsed() < LIMIT, "it is not counted");
        flow(&mut publisher, &mut subscriber, 1);
    }
    let [begun, nanos] =
        ["tls handshakes begun", "tls handshake ns"].map(|label| counter(counters.path(), label));
    assert!(begun > 16 && nanos > 0, "{begun} in {nanos} ns");
}

/// A daemon with these settings, two programs that find each other by it, and a stranger with
/// these first bytes; returns the daemon.
fn found_beside(tls: &TlsSettings, hello: &[u8]) -> ResolverDaemon {
    let settings = DaemonSettings { tls: tls.clone(), clients_max: 40, ..anywhere() };
    let mut daemon = ResolverDaemon::open(&settings).expect("a daemon");
    let at = daemon.address().expect("an address");
    let mut flood = Flood::new(at, hello);
    let start = Instant::now();
    let bound_by = |daemon: &ResolverDaemon| {
        let handshakes = daemon.handshakes();
        handshakes.refused + handshakes.displaced
    };
    while bound_by(&daemon) == 0 {
        assert!(start.elapsed() < LIMIT, "none is refused or gives way");
        flood.go_on(32);
        daemon.do_work();
    }
    let open = || {
        Network::open(NetSettings {
            resolver_group: None,
            resolvers: vec![at],
            tls: tls.clone(),
            ..NetSettings::default()
        })
        .expect("a network")
    };
    let (publishing, subscribing) = (open(), open());
    let publisher = publishing.publisher(TransportKind::Tcp, "prices").expect("a publisher");
    let mut subscriber = subscribing.subscriber(&["prices"]).expect("a subscriber");
    while publisher.subscribers() == 0 {
        assert!(start.elapsed() < LIMIT, "strangers keep it out: {:?}", daemon.handshakes());
        flood.go_on(2);
        daemon.do_work();
        daemon.idle();
        subscriber.poll(64, |event: Event<'_>| assert!(matches!(event, Event::Joined(_))));
        // Two programs, and no more of the stranger than one host may have.
        assert!(daemon.clients() <= 2 + 16, "{}", daemon.clients());
    }
    daemon
}

#[test]
fn handshakes_of_one_host_keep_no_client_of_a_daemon_out() {
    let sides = Sides::new();
    let mut daemon = found_beside(&sides.settings(Some("end")), &hello(&sides));
    let handshakes = *daemon.handshakes();
    assert!(handshakes.completed >= 2 && handshakes.refused > 0, "{handshakes:?}");
    assert!(handshakes.steps > handshakes.completed && handshakes.nanos > 0, "{handshakes:?}");
    let mut told = std::iter::from_fn(|| daemon.next_rejection());
    let over = |(from, why): (SocketAddr, String)| {
        from.ip() == STRANGER && why.starts_with("it begins more than 100")
    };
    assert!(told.any(over), "not told");
}

#[test]
fn silent_connections_of_one_host_keep_no_client_of_a_daemon_out() {
    let daemon = found_beside(&TlsSettings::default(), b"");
    let handshakes = daemon.handshakes();
    assert!(handshakes.displaced > 0 && handshakes.begun == 0, "{handshakes:?}");
}
