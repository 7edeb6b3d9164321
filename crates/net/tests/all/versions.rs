//! Programs of two versions meet: neither joins the other, and the reason stands in the counters
//! file in words.

use lanecast_net::{NetSettings, Network};
use lanecast_protocol::resolution::{Announcement, Resolver, ResolverSettings, SessionTransport};
use lanecast_stats::{list_files, read_file};
use lanecast_transport::Subscribe;
use lanecast_wire::net::VERSION;
use std::net::{TcpListener, UdpSocket};
use std::path::Path;
use std::time::{Duration, Instant};

/// No test takes longer.
const LIMIT: Duration = Duration::from_secs(30);
/// Offset of the version in a frame.
const VERSION_OFFSET: usize = 2;

/// The distinct errors of all counters files in `directory`.
fn errors(directory: &Path) -> Vec<String> {
    let files = list_files(directory).expect("the directory");
    let reports = files.iter().filter_map(|file| read_file(file).ok());
    reports.flat_map(|report| report.errors).map(|error| error.text).collect()
}

#[test]
fn other_versions_are_refused_in_words() {
    let directory = tempfile::TempDir::new_in("/dev/shm").expect("a directory");
    let other = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    other.set_read_timeout(Some(LIMIT)).expect("it blocks so long");
    let at = UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
    let at = at.expect("an address");
    let peers = vec![at, other.local_addr().expect("an address")];
    let settings = NetSettings {
        resolver_group: None,
        peers,
        counters: Some(directory.path().to_owned()),
        ..NetSettings::default()
    };
    let network = Network::open(settings).expect("a network");
    let mut subscriber = network.subscriber(&["prices"]).expect("a subscriber");

    // This version's frames, as the other program gets them.
    let mut bytes = [0; 1_500];
    let (length, _) = other.recv_from(&mut bytes).expect("a query");
    assert!(length > VERSION_OFFSET);
    assert_eq!((&bytes[..2], bytes[VERSION_OFFSET]), (&b"LC"[..], VERSION));

    // The other one's, as this program gets them: the same but for the version.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
    listener.set_nonblocking(true).expect("it does not block");
    let announcement = Announcement {
        session: 1,
        transport: SessionTransport::Tcp,
        control: listener.local_addr().expect("an address"),
        group: None,
        host: 0,
        domain: 0,
        pid: 1,
        datagram_bytes: 1_472,
    };
    let settings = ResolverSettings { resolver: 7, ..ResolverSettings::default() };
    let mut resolver = Resolver::new(settings, 0);
    resolver.publish(announcement, "prices").expect("a name");
    let start = Instant::now();
    let mut now = 0;
    let mut send = |version: u8, subscriber: &mut lanecast_net::Subscriber| {
        assert!(start.elapsed() < LIMIT, "waited in vain for version {version}");
        now += 100_000_000;
        while let Some(length) = resolver.next_transmit(now, &mut bytes) {
            bytes[VERSION_OFFSET] = version;
            other.send_to(&bytes[..length], at).expect("it is sent");
        }
        let work = subscriber.poll(64, |_| {});
        subscriber.wait(work);
    };
    for other in [VERSION - 1, VERSION + 1] {
        let words = format!(
            "127.0.0.1 sends frames of version {other}, this program reads version {VERSION}"
        );
        while !errors(directory.path()).iter().any(|error| error.contains(&words)) {
            send(other, &mut subscriber);
        }
    }
    assert!(listener.accept().is_err(), "nothing comes of the other versions");
    while listener.accept().is_err() {
        send(VERSION, &mut subscriber);
    }
    assert_eq!(errors(directory.path()).len(), 2, "one error for each version, however often");
}
