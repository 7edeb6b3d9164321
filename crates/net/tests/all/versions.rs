//! Programs of two versions meet: neither joins the other, and the reason stands in the counters
//! file in words.

use lanecast_base::Agent;
use lanecast_net::{DaemonSettings, NetSettings, Network, ResolverDaemon, TransportKind};
use lanecast_protocol::resolution::{Announcement, Resolver, ResolverSettings, SessionTransport};
use lanecast_stats::{list_files, read_file};
use lanecast_transport::{Event, Publish, PublisherEvent, Subscribe};
use lanecast_wire::net::VERSION;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
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
    let directory = temporary();
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
    let mut stream = None;
    while stream.is_none() {
        send(VERSION, &mut subscriber);
        stream = listener.accept().ok();
    }
    assert_eq!(errors(directory.path()).len(), 2, "one error for each version, however often");
    // A connection to a publisher of its own version, which then sends frames of another one.
    let other = VERSION + 2;
    let (mut stream, _) = stream.expect("a connection");
    stream.write_all(&of_other_version(other)).expect("the subscriber is there");
    while !errors(directory.path()).contains(&words(other)) {
        send(VERSION, &mut subscriber);
    }
}

/// A frame of another version, longer than a header.
fn of_other_version(version: u8) -> Vec<u8> {
    let mut frame = vec![0; 100];
    frame[..2].copy_from_slice(b"LC");
    frame[VERSION_OFFSET] = version;
    frame
}

/// Frames of other versions come to both ends of a session that has joined: they are dropped, and
/// each end tells of them once.
#[test]
fn joined_sessions_tell_of_frames_of_other_versions() {
    let directory = temporary();
    let settings = NetSettings {
        resolver_group: None,
        peers: vec![free(), free()],
        counters: Some(directory.path().to_owned()),
        liveness: LIMIT,
        ..NetSettings::default()
    };
    let network = Network::open(settings).expect("a network");
    let mut publisher = network.publisher(TransportKind::Ru, "prices").expect("a publisher");
    let mut subscriber = network.subscriber(&["prices"]).expect("a subscriber");
    let (start, mut subscriber_at) = (Instant::now(), None);
    while subscriber_at.is_none() || subscriber.streams() == 0 {
        assert!(start.elapsed() < LIMIT, "they do not meet");
        publisher.poll_events(|event| {
            if let PublisherEvent::SubscriberJoined(info) = event {
                subscriber_at = info.address.parse().ok();
            }
        });
        subscriber.poll(64, |_| {});
        let _ = publisher.wait_for_subscribers(1, Duration::from_millis(1));
    }
    let source: Vec<&str> = publisher.source().split(':').collect();
    let publisher_at: SocketAddr = format!("{}:{}", source[1], source[2]).parse().expect("it is");
    let (stranger, _) = udp();
    let subscriber_at: SocketAddr = subscriber_at.expect("an address");
    let ends = [(publisher_at, VERSION + 3), (subscriber_at, VERSION + 4)];
    let is_told = || {
        let errors = errors(directory.path());
        ends.iter().all(|(_, version)| errors.contains(&words(*version)))
    };
    let mut sent = 0;
    while sent < 10 || !is_told() {
        assert!(start.elapsed() < LIMIT, "in vain: {:?}", errors(directory.path()));
        sent += 1;
        for (at, version) in ends {
            stranger.send_to(&of_other_version(version), at).expect("it is sent");
        }
        publisher.try_send(b"42.50").expect("room");
        let mut came = false;
        while !came {
            assert!(start.elapsed() < LIMIT, "the session goes on");
            let work = subscriber.poll(64, |event| came |= matches!(event, Event::Message(_)));
            subscriber.wait(work);
        }
        publisher.poll_events(|event| panic!("{event:?}"));
    }
    assert_eq!(errors(directory.path()).len(), 2, "told once each, however often they come");
}

/// The other version, as each of two programs sees that of the other one.
const OTHERS: [u8; 2] = [VERSION - 1, VERSION + 1];

/// The words of a program that meets `version`.
fn words(version: u8) -> String {
    format!(
        "127.0.0.1 sends frames of version {version}, this program reads version {VERSION}: give \
         both hosts the same version of lanecast"
    )
}

/// The bytes of a program of `version`: those of this one, but for the version.
fn of_version(bytes: &mut [u8], version: u8) -> &[u8] {
    assert_eq!((&bytes[..2], bytes[VERSION_OFFSET]), (&b"LC"[..], VERSION));
    bytes[VERSION_OFFSET] = version;
    bytes
}

fn temporary() -> tempfile::TempDir {
    tempfile::TempDir::new_in("/dev/shm").expect("a directory")
}

/// A free UDP address, for a program that opens it next.
fn free() -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    socket.local_addr().expect("an address")
}

fn udp() -> (UdpSocket, SocketAddr) {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    socket.set_nonblocking(true).expect("it does not block");
    let at = socket.local_addr().expect("an address");
    (socket, at)
}

/// A publisher and a subscriber, between which all datagrams go by a relay: to each of them the
/// other one is of the version in `OTHERS`.
fn two_programs_meet(kind: TransportKind) {
    let directories = [temporary(), temporary()];
    let relays = [udp(), udp()];
    let at = [free(), free()];
    let [publishing, subscribing] = [0, 1].map(|index| {
        let settings = NetSettings {
            resolver_group: None,
            peers: vec![at[index], relays[index].1],
            counters: Some(directories[index].path().to_owned()),
            ..NetSettings::default()
        };
        Network::open(settings).expect("a network")
    });
    let mut publisher = publishing.publisher(kind, "prices").expect("a publisher");
    let mut subscriber = subscribing.subscriber(&["prices"]).expect("a subscriber");
    let (start, mut bytes) = (Instant::now(), [0; 65_536]);
    let is_told = |index: usize| {
        let words = words(OTHERS[index]);
        errors(directories[index].path()).contains(&words)
    };
    while !(is_told(0) && is_told(1)) {
        assert!(start.elapsed() < LIMIT, "in vain: {:?}", [is_told(0), is_told(1)]);
        for (index, (socket, _)) in relays.iter().enumerate() {
            while let Ok((length, from)) = socket.recv_from(&mut bytes) {
                assert_eq!(from, at[index]);
                let other = 1 - index;
                let frame = of_version(&mut bytes[..length], OTHERS[other]);
                relays[other].0.send_to(frame, at[other]).expect("it is sent");
            }
        }
        publisher.poll_events(|event| panic!("{event:?}"));
        subscriber.poll(64, |event: Event<'_>| panic!("{event:?}"));
        subscriber.wait_at_most(0, Duration::from_millis(1));
    }
    assert_eq!((publisher.subscribers(), subscriber.streams()), (0, 0));
    for directory in &directories {
        assert_eq!(errors(directory.path()).len(), 1, "told once, however often it is heard");
    }
}

#[test]
fn two_programs_of_different_versions_refuse_each_other_on_every_transport() {
    for kind in [TransportKind::Rm, TransportKind::Ru, TransportKind::Tcp] {
        two_programs_meet(kind);
    }
}

/// Passes on what has come on `from`, the first frame as one of `version`. False at its end.
fn relay(mut from: &TcpStream, mut to: &TcpStream, version: &mut Option<u8>) -> bool {
    let mut bytes = [0; 4_096];
    match from.read(&mut bytes) {
        Ok(0) => false,
        Ok(length) => {
            // The first read has the beginning of a frame, at least its version.
            if let Some(version) = version.take() {
                of_version(&mut bytes[..length], version);
            }
            to.write_all(&bytes[..length]).is_ok()
        }
        Err(error) => error.kind() == ErrorKind::WouldBlock,
    }
}

#[test]
fn a_resolver_daemon_and_a_program_of_different_versions_refuse_each_other() {
    let directory = temporary();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
    listener.set_nonblocking(true).expect("it does not block");
    let settings = DaemonSettings::at("127.0.0.1:0".parse().expect("an address"));
    let mut daemon = ResolverDaemon::open(&settings).expect("a daemon");
    let settings = NetSettings {
        resolver_group: None,
        resolvers: vec![listener.local_addr().expect("an address")],
        counters: Some(directory.path().to_owned()),
        ..NetSettings::default()
    };
    let network = Network::open(settings).expect("a network");
    let mut subscriber = network.subscriber(&["prices"]).expect("a subscriber");
    let [of_daemon, of_program] = OTHERS;
    let mut links = Vec::new();
    let (start, mut refused) = (Instant::now(), None);
    let is_told = || errors(directory.path()).contains(&words(of_daemon));
    while refused.is_none() || !is_told() {
        assert!(start.elapsed() < LIMIT, "in vain: {refused:?}, {:?}", errors(directory.path()));
        while let Ok((near, _)) = listener.accept() {
            let far = TcpStream::connect(daemon.address().expect("an address"));
            let far = far.expect("the daemon listens");
            for stream in [&near, &far] {
                stream.set_nonblocking(true).expect("it does not block");
            }
            links.push((near, far, Some(of_program), Some(of_daemon)));
        }
        links.retain_mut(|(near, far, up, down)| relay(near, far, up) && relay(far, near, down));
        daemon.do_work();
        daemon.idle();
        refused = daemon.next_rejection().map(|(_, reason)| reason.to_string()).or(refused);
        subscriber.poll(64, |event: Event<'_>| panic!("{event:?}"));
    }
    let wanted = format!(
        "it sends frames of version {of_program}, this daemon reads version {VERSION}: give both \
         hosts the same version of lanecast"
    );
    assert_eq!(refused, Some(wanted));
    assert_eq!(errors(directory.path()).len(), 1, "told once, however often it connects");
    assert_eq!((daemon.sessions(), daemon.topics()), (0, 0));
}
