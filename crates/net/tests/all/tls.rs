//! Connections under TLS: messages flow beside sealed datagrams, strangers and ends without TLS are
//! told in words on both sides, and connections that go no further keep no subscriber out.

use crate::certificates::Certificates;
use crate::sealing::key_file;
use crate::transports::groups;
use lanecast_net::{
    NetSettings, Network, OpenError, Publisher, Subscriber, TlsSettings, TransportKind,
};
use lanecast_stats::{list_files, read_file};
use lanecast_transport::{Event, Publish, Subscribe};
use lanecast_wire::net::{BlockHeader, FrameWriter, ItemFlags, ItemHeader, Kind, item_bytes};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// No test takes longer.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// Certificates of a program, `NAME.pem`, and of a stranger that another authority vouches for.
pub(crate) struct Sides {
    pub(crate) own: Certificates,
    strangers: Certificates,
}

impl Sides {
    pub(crate) fn new() -> Self {
        let sides = Self { own: Certificates::new(), strangers: Certificates::new() };
        for (name, year) in [("end", 2100), ("old", 2020)] {
            sides.own.issue(name, "127.0.0.1", year);
        }
        sides.strangers.issue("stranger", "127.0.0.1", 2100);
        sides
    }

    /// The settings of a program with the certificate of this name, or of none.
    pub(crate) fn settings(&self, name: Option<&str>) -> TlsSettings {
        let file = |end: &str| {
            let name = name?;
            let from = if name == "stranger" { &self.strangers } else { &self.own };
            Some(from.path(&format!("{name}.{end}")))
        };
        let authorities: Option<PathBuf> = Some(self.own.path("ca.pem"));
        TlsSettings { certificate: file("pem"), key: file("key"), authorities, name: None }
    }
}

/// The distinct errors of all counters files in `directory`.
pub(crate) fn errors(directory: &Path) -> Vec<String> {
    let reports = list_files(directory).expect("the directory").into_iter();
    let reports = reports.filter_map(|file| read_file(&file).ok());
    reports.flat_map(|report| report.errors).map(|error| error.text).collect()
}

/// Sends messages of all lengths and reads them, until `rounds` have come in order.
pub(crate) fn flow(publisher: &mut Publisher, subscriber: &mut Subscriber, rounds: u64) {
    let (start, mut sent, mut came) = (Instant::now(), 0_u64, 0_u64);
    while came < rounds * 4 {
        assert!(start.elapsed() < LIMIT, "{came} of {sent} messages");
        if sent == came {
            for length in [24, 1_400, 100, 60_000] {
                let mut message = vec![7; length];
                message[..8].copy_from_slice(&sent.to_le_bytes());
                publisher.send(&message).expect("room");
                sent += 1;
            }
        }
        let work = subscriber.poll(64, |event| match event {
            Event::Message(message) => {
                assert_eq!(message.bytes()[..8], came.to_le_bytes());
                assert!(message.bytes()[8..].iter().all(|byte| *byte == 7));
                came += 1;
            }
            Event::Joined(_) => {}
            other => panic!("{other:?}"),
        });
        subscriber.wait(work);
    }
}

#[test]
fn a_program_with_a_key_and_certificates_uses_every_transport() {
    let sides = Sides::new();
    let keys = tempfile::tempdir().expect("a directory");
    let counters = tempfile::TempDir::new_in("/dev/shm").expect("a directory");
    let (group, resolver_group) = groups();
    let network = Network::open(NetSettings {
        group,
        resolver_group: Some(resolver_group),
        key_file: Some(key_file(keys.path(), &[1])),
        tls: sides.settings(Some("end")),
        counters: Some(counters.path().to_owned()),
        ..NetSettings::default()
    });
    let network = network.expect("a network");
    for kind in TransportKind::ALL {
        let mut subscriber = network.subscriber(&["prices"]).expect("a subscriber");
        let mut publisher = network.publisher(kind, "prices").expect("a publisher");
        assert!(publisher.wait_for_subscribers(1, LIMIT), "not joined by {kind}");
        flow(&mut publisher, &mut subscriber, 50);
    }
    assert_eq!(errors(counters.path()), [""; 0]);
}

/// Two programs with these settings meet over TCP, until the first one, which publishes, and the
/// second one, which subscribes, have told of the other in these words.
fn strangers_meet(tls: [TlsSettings; 2], words: [&str; 2]) {
    let counters = [(); 2].map(|()| tempfile::TempDir::new_in("/dev/shm").expect("a directory"));
    let (_, resolver_group) = groups();
    let mut at = 0;
    let [publishing, subscribing] = tls.map(|tls| {
        at += 1;
        let settings = NetSettings {
            resolver_group: Some(resolver_group),
            counters: Some(counters[at - 1].path().to_owned()),
            tls,
            ..NetSettings::default()
        };
        Network::open(settings).expect("a network")
    });
    let mut publisher = publishing.publisher(TransportKind::Tcp, "prices").expect("a publisher");
    let mut subscriber = subscribing.subscriber(&["prices"]).expect("a subscriber");
    let start = Instant::now();
    let is_told = |at: usize| {
        errors(counters[at].path()).iter().any(|error| {
            let told = error.strip_prefix("127.0.0.1 ");
            told.is_some_and(|told| told.contains(words[at]))
        })
    };
    while !(is_told(0) && is_told(1)) {
        let told = || [0, 1].map(|at| errors(counters[at].path()));
        assert!(start.elapsed() < LIMIT, "{words:?}: {:?}", told());
        publisher.poll_events(|event| panic!("{event:?}"));
        subscriber.poll(64, |event: Event<'_>| panic!("{event:?}"));
        subscriber.wait_at_most(0, Duration::from_millis(1));
    }
    assert_eq!((publisher.subscribers(), subscriber.streams()), (0, 0));
}

#[test]
fn programs_with_other_certificates_are_refused_and_both_sides_tell_why() {
    let sides = Sides::new();
    let with = |name: &str| sides.settings(Some(name));
    let rejects = "rejects this program's certificate";
    strangers_meet(
        [with("stranger"), with("end")],
        [rejects, "shows a certificate that no trusted authority issued"],
    );
    strangers_meet([with("old"), with("end")], [rejects, "shows a certificate that has expired"]);
    let named = TlsSettings { name: Some("prices.example".into()), ..with("end") };
    strangers_meet([with("end"), named], [rejects, "shows a certificate for another name"]);
    strangers_meet(
        [with("end"), with("stranger")],
        ["shows a certificate that no trusted authority issued", rejects],
    );
    strangers_meet(
        [with("end"), sides.settings(None)],
        ["shows no certificate, and one is required here", "requires a certificate"],
    );
}

#[test]
fn programs_with_and_without_tls_refuse_each_other_in_words() {
    let sides = Sides::new();
    let tls = || sides.settings(Some("end"));
    let speaks = "speaks TLS, and this program does not: set net.tls_authorities";
    strangers_meet(
        [tls(), TlsSettings::default()],
        ["does not speak TLS, which is required here", speaks],
    );
    strangers_meet([TlsSettings::default(), tls()], [speaks, "ended the TLS handshake"]);
}

#[test]
fn a_name_serves_for_all_addresses_and_subscribers_need_no_certificate_unless_asked() {
    let sides = Sides::new();
    sides.own.issue("named", "prices.example", 2100);
    let (_, resolver_group) = groups();
    let open = |tls: TlsSettings| {
        let resolver_group = Some(resolver_group);
        Network::open(NetSettings { resolver_group, tls, ..NetSettings::default() })
            .expect("a network")
    };
    // Without authorities the publisher asks for no certificate, and joins none itself.
    let publishing = open(TlsSettings { authorities: None, ..sides.settings(Some("named")) });
    let name = Some("prices.example".into());
    let subscribing = open(TlsSettings { name, ..sides.settings(None) });
    let mut subscriber = subscribing.subscriber(&["prices"]).expect("a subscriber");
    let mut publisher = publishing.publisher(TransportKind::Tcp, "prices").expect("a publisher");
    assert!(publisher.wait_for_subscribers(1, LIMIT), "not joined");
    flow(&mut publisher, &mut subscriber, 5);
    let none = subscribing.publisher(TransportKind::Tcp, "prices").expect_err("no certificate");
    assert!(none.to_string().starts_with("net.tls_certificate: "), "{none}");
}

#[test]
fn a_renewed_certificate_is_taken_without_a_restart() {
    let sides = Sides::new();
    let counters = tempfile::TempDir::new_in("/dev/shm").expect("a directory");
    let (_, resolver_group) = groups();
    let network = Network::open(NetSettings {
        resolver_group: Some(resolver_group),
        tls: sides.settings(Some("old")),
        counters: Some(counters.path().to_owned()),
        ..NetSettings::default()
    });
    let network = network.expect("a network");
    let mut subscriber = network.subscriber(&["prices"]).expect("a subscriber");
    let mut publisher = network.publisher(TransportKind::Tcp, "prices").expect("a publisher");
    let start = Instant::now();
    while !errors(counters.path()).iter().any(|error| error.contains("has expired")) {
        assert!(start.elapsed() < LIMIT, "{:?}", errors(counters.path()));
        subscriber.poll(64, |event: Event<'_>| panic!("{event:?}"));
        subscriber.wait_at_most(0, Duration::from_millis(1));
    }
    sides.own.issue("old", "127.0.0.1", 2100);
    while publisher.subscribers() == 0 {
        assert!(start.elapsed() < LIMIT, "{:?}", errors(counters.path()));
        subscriber.poll(64, |_| {});
        let _ = publisher.wait_for_subscribers(1, Duration::from_millis(1));
    }
    flow(&mut publisher, &mut subscriber, 5);
}

/// The address at which a publisher by TCP listens.
pub(crate) fn address_of(publisher: &Publisher) -> SocketAddr {
    let source = publisher.source();
    let at = source.strip_prefix("tcp:").and_then(|rest| rest.rsplit_once(':')).expect("a source");
    at.0.parse().expect("an address")
}

/// Any program may advertise a publisher by datagrams, which no certificate vouches for.
#[test]
fn a_program_under_tls_has_nothing_to_do_with_datagrams_that_no_key_seals() {
    let sides = Sides::new();
    let (group, resolver_group) = groups();
    let [own, plain] = [sides.settings(Some("end")), TlsSettings::default()].map(|tls| {
        let resolver_group = Some(resolver_group);
        let settings = NetSettings { group, resolver_group, tls, ..NetSettings::default() };
        Network::open(settings).expect("a network")
    });
    let mut subscriber = own.subscriber(&["prices"]).expect("a subscriber");
    let mut stranger = plain.subscriber(&["prices"]).expect("a subscriber");
    for kind in [TransportKind::Rm, TransportKind::Ru] {
        let refused = own.publisher(kind, "prices").expect_err("refused").to_string();
        assert!(refused.starts_with("net.key_file: "), "{refused}");
        let mut strangers = plain.publisher(kind, "prices").expect("a publisher");
        assert!(strangers.wait_for_subscribers(1, LIMIT), "its own subscriber hears of it");
        let mut publisher = own.publisher(TransportKind::Tcp, "prices").expect("a publisher");
        assert!(publisher.wait_for_subscribers(1, LIMIT), "not joined");
        flow(&mut publisher, &mut subscriber, 50);
        assert_eq!((strangers.subscribers(), subscriber.streams()), (1, 1), "{kind}");
        drop((publisher, strangers));
        while subscriber.streams() > 0 || stranger.streams() > 0 {
            subscriber.poll(64, |_| {});
            stranger.poll(64, |_| {});
        }
    }
}

#[test]
fn a_subscriber_that_could_join_no_publisher_is_refused_and_publishers_work() {
    let sides = Sides::new();
    let keys = tempfile::tempdir().expect("a directory");
    let key_file = key_file(keys.path(), &[1]);
    let (group, resolver_group) = groups();
    let with = |accept: &[TransportKind], tls: TlsSettings, key_file: Option<PathBuf>| {
        let resolver_group = Some(resolver_group);
        let accept = accept.to_vec();
        let usual = NetSettings::default();
        let settings = NetSettings { group, resolver_group, accept, tls, key_file, ..usual };
        Network::open(settings).expect("a network")
    };
    let all = TransportKind::ALL;
    let own = || sides.settings(Some("end"));
    let only_certificate = || TlsSettings { authorities: None, ..own() };
    let tcp = &[TransportKind::Tcp][..];
    for (accept, tls, key, setting) in [
        (&all[..], only_certificate(), None, "net.tls_authorities: "),
        (tcp, only_certificate(), Some(&key_file), "net.tls_authorities: "),
        (&[TransportKind::Rm], own(), None, "net.key_file: "),
        (&[TransportKind::Rm, TransportKind::Ru], only_certificate(), None, "net.key_file: "),
        (tcp, TlsSettings::default(), Some(&key_file), "net.accept: "),
    ] {
        let network = with(accept, tls, key.cloned());
        let refused = network.subscriber(&["prices"]).expect_err("refused").to_string();
        assert!(refused.starts_with(setting), "{refused}");
    }
    for (accept, tls, key) in [
        (&all[..], only_certificate(), Some(&key_file)),
        (tcp, own(), None),
        (&[TransportKind::Ru], own(), Some(&key_file)),
        (&[TransportKind::Ru], TlsSettings::default(), None),
    ] {
        assert!(with(accept, tls, key.cloned()).subscriber(&["prices"]).is_ok(), "{accept:?}");
    }
    // A program that only publishes needs no authorities, and joins nothing.
    let publishing = with(&all, only_certificate(), None);
    let mut publisher = publishing.publisher(TransportKind::Tcp, "prices").expect("a publisher");
    let subscribing = with(&all, TlsSettings { certificate: None, key: None, ..own() }, None);
    let mut subscriber = subscribing.subscriber(&["prices"]).expect("a subscriber");
    assert!(publisher.wait_for_subscribers(1, LIMIT), "not joined");
    flow(&mut publisher, &mut subscriber, 5);
}

/// Addresses of this program's UDP sockets, at the loopback.
fn datagram_sockets() -> Vec<SocketAddr> {
    let own = std::fs::read_dir("/proc/self/fd").expect("the descriptors");
    let own = own.filter_map(|fd| Some(fd.ok()?.path().read_link().ok()?.display().to_string()));
    let own: Vec<String> = own.collect();
    let table = std::fs::read_to_string("/proc/self/net/udp").expect("the sockets");
    let each = table.lines().skip(1).filter_map(|line| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let port = columns[1].strip_prefix("0100007F:")?;
        let port = u16::from_str_radix(port, 16).expect("a port");
        let is_own = own.contains(&format!("socket:[{}]", columns[9]));
        is_own.then(|| SocketAddr::from(([127, 0, 0, 1], port)))
    });
    each.collect()
}

/// The first message of a session, as a datagram.
fn forged(session: u64) -> Vec<u8> {
    let mut bytes = [0; 128];
    let mut writer = FrameWriter::new(&mut bytes, Kind::Data, 0, session, 0);
    let length = item_bytes(6) as u16;
    let (zero, one) = (0.into(), 1.into());
    let length = length.into();
    let block = BlockHeader { topic: 0.into(), length, count: one, fragment: zero, message: zero };
    let item = ItemHeader { length: 6.into(), flags: ItemFlags::WHOLE.into() };
    assert!(writer.add_data_header(0, 0) && writer.add(&block) && writer.add(&item));
    assert!(writer.add(b"forged\0\0"));
    let length = writer.finish();
    bytes[..length].to_vec()
}

/// Set in the process that has no sockets of other tests.
const FORGES: &str = "TEST_FORGES";

/// A program on the publisher's host, whose datagrams have the publisher's address and port: TCP
/// and UDP have ports of their own. It sends to every UDP socket of its process, so it has one of
/// its own: other tests count the datagrams that reach theirs.
#[test]
fn datagrams_from_the_address_of_a_publisher_do_not_get_into_its_connection() {
    let name = "tls::datagrams_from_the_address_of_a_publisher_do_not_get_into_its_connection";
    if std::env::var_os(FORGES).is_none() {
        let mut alone = Command::new(std::env::current_exe().expect("this program"));
        let alone = alone.args(["--exact", name, "--nocapture"]).env(FORGES, "1").output();
        let alone = alone.expect("a process");
        let told = [&alone.stdout, &alone.stderr].map(|text| String::from_utf8_lossy(text));
        assert!(alone.status.success() && told[0].contains("1 passed"), "{told:?}");
        return;
    }
    let sides = Sides::new();
    let (_, resolver_group) = groups();
    let network = Network::open(NetSettings {
        resolver_group: Some(resolver_group),
        tls: sides.settings(Some("end")),
        ..NetSettings::default()
    });
    let network = network.expect("a network");
    let mut subscriber = network.subscriber(&["prices"]).expect("a subscriber");
    let open = || {
        let publisher = network.publisher(TransportKind::Tcp, "prices").expect("a publisher");
        // Another program may have the port: another publisher has another one.
        let stranger = UdpSocket::bind(address_of(&publisher)).ok()?;
        Some((publisher, stranger))
    };
    let (mut publisher, stranger) = (0..100).find_map(|_| open()).expect("a free port");
    assert!(publisher.wait_for_subscribers(1, LIMIT), "not joined");
    let forged = forged(publisher.session().0);
    for to in datagram_sockets() {
        stranger.send_to(&forged, to).expect("sent");
    }
    // Datagrams over the loopback have arrived: each socket is read by then.
    (0..1_000).for_each(|_| _ = subscriber.poll(64, |event| assert_no_message(&event)));
    publisher.send(b"true").expect("room");
    let (start, mut got) = (Instant::now(), Vec::new());
    while got.is_empty() {
        assert!(start.elapsed() < LIMIT, "it does not come");
        let work = subscriber.poll(64, |event| match event {
            Event::Message(message) => got.push((message.number(), message.bytes().to_vec())),
            Event::Joined(_) => {}
            other => panic!("{other:?}"),
        });
        subscriber.wait(work);
    }
    assert_eq!(got, [(0, b"true".to_vec())]);
}

fn assert_no_message(event: &Event<'_>) {
    assert!(!matches!(event, Event::Message(_)), "forged: {event:?}");
}

/// Connections that stay silent, begin handshakes and stop, or send anything else: all are closed,
/// and a subscriber joins beside them.
#[test]
fn handshakes_that_go_no_further_keep_no_subscriber_out_and_are_closed() {
    let sides = Sides::new();
    let (_, resolver_group) = groups();
    let network = Network::open(NetSettings {
        resolver_group: Some(resolver_group),
        tls: sides.settings(Some("end")),
        receivers_max: 4,
        liveness: Duration::from_secs(1),
        ..NetSettings::default()
    });
    let network = network.expect("a network");
    let mut publisher = network.publisher(TransportKind::Tcp, "prices").expect("a publisher");
    let at = address_of(&publisher);
    let hostile: [&[u8]; 5] = [
        b"",
        // The beginning of a record of 16 KiB, of one that is none, of a frame, and of anything.
        &[22, 3, 1, 0x40, 0, 1, 0, 0x3f],
        &[22, 3, 3, 0xff, 0xff, 0xff],
        b"LC\x01\x02",
        &[0xff; 2_000],
    ];
    let open = |bytes: &&[u8]| {
        // One more than the host may begin is reset, perhaps before the connect has returned.
        let mut stream = match TcpStream::connect_timeout(&at, LIMIT) {
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return None,
            stream => stream.expect("a connection"),
        };
        // The publisher may have closed it by then.
        let _ = stream.write_all(bytes);
        stream.set_nonblocking(true).expect("it does not block");
        Some(stream)
    };
    let strangers: Vec<TcpStream> = (0..16).flat_map(|_| hostile.iter().filter_map(open)).collect();
    let mut subscriber = network.subscriber(&["prices"]).expect("a subscriber");
    let start = Instant::now();
    while publisher.subscribers() == 0 {
        assert!(start.elapsed() < LIMIT, "strangers keep it out");
        subscriber.poll(64, |_| {});
        let _ = publisher.wait_for_subscribers(1, Duration::from_millis(5));
    }
    for mut stream in strangers {
        while let Err(error) = stream.read(&mut [0; 16])
            && error.kind() == ErrorKind::WouldBlock
        {
            assert!(start.elapsed() < LIMIT, "it is never closed");
            subscriber.poll(64, |_| {});
            let _ = publisher.wait_for_subscribers(2, Duration::from_millis(5));
        }
    }
    flow(&mut publisher, &mut subscriber, 5);
}

#[test]
fn settings_that_do_not_fit_together_are_refused() {
    let sides = Sides::new();
    let refused = |change: &dyn Fn(&mut NetSettings)| {
        let tls = sides.settings(Some("end"));
        let mut settings = NetSettings { resolver_group: None, tls, ..NetSettings::default() };
        change(&mut settings);
        let opened: Result<Network, OpenError> = Network::open(settings);
        opened.map(drop).expect_err("refused").to_string()
    };
    type Change<'a> = &'a dyn Fn(&mut NetSettings);
    let daemon: SocketAddr = "127.0.0.1:7331".parse().expect("an address");
    let cases: [(&str, Change<'_>); 7] = [
        ("net.tls_key: ", &|it| it.tls.key = None),
        ("net.tls_key: ", &|it| it.tls.certificate = None),
        ("net.tls_name: ", &|it| {
            it.tls.authorities = None;
            it.tls.name = Some("prices.example".into());
        }),
        ("net.tls_authorities: ", &|it| {
            it.tls.authorities = None;
            it.resolvers = vec![daemon];
        }),
        ("net.resolver_port: ", &|it| {
            it.tls.authorities = None;
            it.resolver_port = Some(0);
        }),
        ("net.tls: 'no name' is neither", &|it| it.tls.name = Some("no name".into())),
        ("net.tls: ", &|it| it.tls.authorities = Some("/nowhere/ca.pem".into())),
    ];
    for (words, change) in cases {
        let told = refused(change);
        assert!(told.starts_with(words), "{told}");
    }
}
