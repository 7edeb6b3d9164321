//! Programs with a shared key: nothing of theirs is readable on the wire, keys change while
//! messages flow, and programs without the key are told of in words.

use lanecast_net::{NetSettings, Network, OpenError, Publisher, Subscriber, TransportKind};
use lanecast_os::interface;
use lanecast_os::udp::{UdpOptions, UdpSocket};
use lanecast_stats::{Role, list_files, read_file};
use lanecast_transport::{Event, Publish, Subscribe};
use std::fs::{self, Permissions};
use std::net::{SocketAddr, UdpSocket as SystemSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// No test takes longer.
const LIMIT: Duration = Duration::from_secs(60);
/// A part of every message, looked for on the wire.
const TEXT: &[u8] = b"one lot of gold at 4012.50";

/// A key whose 32 bytes are all the same.
fn key(byte: u8) -> String {
    format!("{byte:02x}").repeat(32)
}

/// The file of keys in `directory` with a key for each of `bytes`, put in place of the last one.
pub(crate) fn key_file(directory: &Path, bytes: &[u8]) -> PathBuf {
    let (new, path) = (directory.join("new"), directory.join("keys"));
    let lines: Vec<_> = bytes.iter().map(|byte| key(*byte)).collect();
    fs::write(&new, lines.join("\n")).expect("written");
    fs::set_permissions(&new, Permissions::from_mode(0o600)).expect("set");
    fs::rename(&new, &path).expect("renamed");
    path
}

fn settings(port: u16) -> NetSettings {
    let run = std::process::id() as u16;
    let address = [239, 199, (run >> 8) as u8, run as u8];
    NetSettings {
        group: SocketAddr::from((address, port)),
        resolver_group: Some(SocketAddr::from((address, port + 1))),
        ..NetSettings::default()
    }
}

/// A socket that hears what goes to `group`.
fn observer(group: SocketAddr) -> UdpSocket {
    let (lo, _) = interface::choose("127.0.0.1").expect("loopback");
    let options = UdpOptions { local: group, shared: true, ..UdpOptions::default() };
    let socket = UdpSocket::open(&options).expect("a socket");
    socket.join(group.ip(), &lo).expect("the group");
    socket
}

/// Messages from a publisher to a subscriber.
struct Flow {
    publisher: Publisher,
    subscriber: Subscriber,
    start: Instant,
    sent: u64,
    came: u64,
}

impl Flow {
    fn open(network: &Network, kind: TransportKind) -> Self {
        let subscriber = network.subscriber(&["prices"]).expect("a subscriber");
        let mut publisher = network.publisher(kind, "prices").expect("a publisher");
        assert!(publisher.wait_for_subscribers(1, LIMIT), "not joined");
        Self { publisher, subscriber, start: Instant::now(), sent: 0, came: 0 }
    }

    /// Sends messages of one datagram and of several, and reads them all.
    fn turn(&mut self) {
        assert!(self.start.elapsed() < LIMIT, "{} of {} messages", self.came, self.sent);
        for length in [100, 1_400, 20_000, 24] {
            let mut message = self.sent.to_le_bytes().to_vec();
            message.extend(TEXT.iter().cycle().take(length));
            self.publisher.try_send(&message).expect("room");
            self.sent += 1;
        }
        while self.came < self.sent {
            assert!(self.start.elapsed() < LIMIT, "{} of {} messages", self.came, self.sent);
            let came = &mut self.came;
            let work = self.subscriber.poll(64, |event| match event {
                Event::Message(message) => {
                    let (number, text) = message.bytes().split_at(8);
                    assert_eq!(number, came.to_le_bytes());
                    assert!(text.starts_with(&TEXT[..24]));
                    *came += 1;
                }
                Event::Joined(_) => {}
                other => panic!("{other:?}"),
            });
            self.subscriber.wait(work);
        }
    }
}

/// The process's counter of this label, over all counters files in `directory`.
pub(crate) fn counter(directory: &Path, label: &str) -> u64 {
    let reports = list_files(directory).expect("the directory").into_iter();
    let reports = reports.filter_map(|file| read_file(&file).ok());
    let reports = reports.filter(|report| report.role == Role::Process);
    reports.filter_map(|report| report.value(label)).sum()
}

fn errors(directory: &Path) -> Vec<String> {
    let reports = list_files(directory).expect("the directory").into_iter();
    let reports = reports.filter_map(|file| read_file(&file).ok());
    reports.flat_map(|report| report.errors).map(|error| error.text).collect()
}

/// The id of a sealed datagram's key.
fn key_id(datagram: &[u8]) -> [u8; 2] {
    datagram[4..6].try_into().expect("two bytes")
}

/// Keys change twice while messages flow under loss: all come, in order and once. Under parity some
/// of the lost datagrams are rebuilt too.
fn keys_change(kind: TransportKind, port: u16, fec: Option<(u8, u8)>) {
    let directory = tempfile::tempdir().expect("a directory");
    let counters = tempfile::TempDir::new_in("/dev/shm").expect("a directory");
    let network = Network::open(NetSettings {
        key_file: Some(key_file(directory.path(), &[1])),
        counters: Some(counters.path().to_owned()),
        artificial_loss: 30,
        fec,
        ..settings(port)
    });
    let network = network.expect("a network");
    // Discovery is heard whatever carries the messages.
    let resolution = observer(network.settings().resolver_group.expect("a group"));
    let group = observer(network.settings().group);
    let mut flow = Flow::open(&network, kind);
    let (mut bytes, mut ids) = (vec![0; 1 << 16], Vec::new());
    let (mut heard, mut data) = (0, 0);
    let mut next_keys = [&[2, 1][..], &[3, 2]].into_iter();
    let mut rebuilt = 0;
    while ids.len() < 3 || fec.is_some() && rebuilt == 0 {
        flow.turn();
        rebuilt = flow.subscriber.counters().received.rebuilt;
        for socket in [&resolution, &group] {
            while let Ok(Some((length, _))) = socket.receive(&mut bytes) {
                let datagram = &bytes[..length];
                assert_eq!(&datagram[..2], b"LS");
                assert!(!datagram.windows(TEXT.len()).any(|part| part == TEXT), "readable");
                assert!(!datagram.windows(6).any(|part| part == b"prices"), "readable");
                if !ids.contains(&key_id(datagram)) {
                    ids.push(key_id(datagram));
                    next_keys.next().map(|keys| key_file(directory.path(), keys));
                }
                heard += 1;
                data += usize::from(std::ptr::eq(socket, &group));
            }
        }
    }
    flow.turn();
    assert!(fec.is_some() || rebuilt == 0, "{rebuilt}");
    assert!(heard > 0 && (data > 0) == (kind == TransportKind::Rm), "{heard}, {data} of the group");
    for label in ["datagrams not sealed", "datagrams forged"] {
        assert_eq!(counter(counters.path(), label), 0, "{label}");
    }
    assert_eq!(errors(counters.path()), [""; 0]);
}

#[test]
fn keys_change_while_messages_flow_by_multicast() {
    keys_change(TransportKind::Rm, 24_100, None);
}

#[test]
fn keys_change_while_messages_flow_by_unicast() {
    keys_change(TransportKind::Ru, 24_102, None);
}

#[test]
fn datagrams_are_rebuilt_under_keys_that_change_by_multicast() {
    keys_change(TransportKind::Rm, 24_120, Some((4, 1)));
}

#[test]
fn datagrams_are_rebuilt_under_keys_that_change_by_unicast() {
    keys_change(TransportKind::Ru, 24_122, Some((4, 1)));
}

/// A free UDP address, for a program that opens it next.
fn free() -> SocketAddr {
    let socket = SystemSocket::bind("127.0.0.1:0").expect("a socket");
    socket.local_addr().expect("an address")
}

/// Two programs, the second one with other keys or none, until both have told of it.
fn strangers_meet(others: Option<&[u8]>, words: [&str; 2], labels: [&str; 2]) {
    let keys = [(); 2].map(|()| tempfile::tempdir().expect("a directory"));
    let counters = [(); 2].map(|()| tempfile::TempDir::new_in("/dev/shm").expect("a directory"));
    let peers = vec![free(), free()];
    let files = [Some(&[1][..]), others];
    let [publishing, subscribing] = [0, 1].map(|at| {
        let settings = NetSettings {
            resolver_group: None,
            peers: peers.clone(),
            key_file: files[at].map(|bytes| key_file(keys[at].path(), bytes)),
            counters: Some(counters[at].path().to_owned()),
            ..NetSettings::default()
        };
        Network::open(settings).expect("a network")
    });
    let mut publisher = publishing.publisher(TransportKind::Ru, "prices").expect("a publisher");
    let mut subscriber = subscribing.subscriber(&["prices"]).expect("a subscriber");
    let start = Instant::now();
    let is_told = |at: usize| {
        let directory = counters[at].path();
        errors(directory).iter().any(|error| error.contains(words[at]))
            && counter(directory, labels[at]) > 0
    };
    while !(is_told(0) && is_told(1)) {
        assert!(start.elapsed() < LIMIT, "{:?}", [0, 1].map(|at| errors(counters[at].path())));
        publisher.poll_events(|event| panic!("{event:?}"));
        subscriber.poll(64, |event: Event<'_>| panic!("{event:?}"));
        subscriber.wait_at_most(0, Duration::from_millis(1));
    }
    assert_eq!((publisher.subscribers(), subscriber.streams()), (0, 0));
    for directory in &counters {
        assert_eq!(errors(directory.path()).len(), 1, "told once, however often it is heard");
    }
}

#[test]
fn a_program_without_the_key_sees_nothing_and_both_are_told() {
    strangers_meet(
        None,
        [
            "a datagram from 127.0.0.1 is not sealed, and refused",
            "a datagram from 127.0.0.1 is sealed, and this program has no key",
        ],
        ["datagrams not sealed", "datagrams sealed, no key"],
    );
}

#[test]
fn programs_with_different_keys_see_nothing_of_each_other_and_are_told() {
    let words = "is sealed with a key that net.key_file does not have here";
    let label = "datagrams sealed with unknown keys";
    strangers_meet(Some(&[2]), [words, words], [label, label]);
}

#[test]
fn forged_datagrams_are_counted_and_harm_no_stream() {
    let directory = tempfile::tempdir().expect("a directory");
    let counters = tempfile::TempDir::new_in("/dev/shm").expect("a directory");
    let network = Network::open(NetSettings {
        key_file: Some(key_file(directory.path(), &[1])),
        counters: Some(counters.path().to_owned()),
        ..settings(24_104)
    });
    let network = network.expect("a network");
    let group = network.settings().group;
    let observer = observer(group);
    let mut flow = Flow::open(&network, TransportKind::Rm);
    let (lo, address) = interface::choose("127.0.0.1").expect("loopback");
    let options = UdpOptions { local: (address, 0).into(), ..UdpOptions::default() };
    let enemy = UdpSocket::open(&options).expect("a socket");
    enemy.send_multicast_by(&lo, 1).expect("loopback carries it");
    let mut bytes = vec![0; 1 << 16];
    let is_counted = || {
        ["datagrams not sealed", "datagrams forged", "datagrams repeated"]
            .iter()
            .all(|label| counter(counters.path(), label) > 10)
    };
    while !is_counted() {
        flow.turn();
        let Ok(Some((length, _))) = observer.receive(&mut bytes) else { continue };
        let length = usize::from(u16::from_le_bytes([bytes[6], bytes[7]])).min(length);
        let datagram = &mut bytes[..length];
        // The same again, then as one that comes later, then without its seal.
        enemy.send_to(datagram, group).expect("sent");
        let counter = u64::from_le_bytes(datagram[16..24].try_into().expect("8 bytes"));
        datagram[16..24].copy_from_slice(&(counter + (1 << 20)).to_le_bytes());
        enemy.send_to(datagram, group).expect("sent");
        datagram[..2].copy_from_slice(b"LC");
        enemy.send_to(datagram, group).expect("sent");
    }
    flow.turn();
    assert_eq!(errors(counters.path()).len(), 2, "one for each of the last two");
}

#[test]
fn connections_and_public_files_are_refused_with_a_key() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = key_file(directory.path(), &[1]);
    let with = |change: &dyn Fn(&mut NetSettings)| {
        let mut settings = NetSettings {
            resolver_group: None,
            key_file: Some(file.clone()),
            ..NetSettings::default()
        };
        change(&mut settings);
        Network::open(settings)
    };
    let refused = |opened: Result<Network, OpenError>| opened.expect_err("refused").to_string();
    let network = with(&|_| {}).expect("a network");
    let tcp = network.publisher(TransportKind::Tcp, "prices").expect_err("not sealed");
    assert!(tcp.to_string().contains("it seals datagrams only, not TCP"), "{tcp}");
    assert!(network.publisher(TransportKind::Ru, "prices").is_ok());
    let daemon = refused(with(&|it| it.resolvers = vec![free()]));
    assert!(daemon.contains("not connections to resolver daemons"), "{daemon}");
    let small = refused(with(&|it| it.datagram_bytes = Some(551)));
    assert!(small.contains("552 bytes or more"), "{small}");
    assert!(with(&|it| it.datagram_bytes = Some(552)).is_ok());
    fs::set_permissions(&file, Permissions::from_mode(0o644)).expect("set");
    let public = refused(with(&|_| {}));
    assert!(public.starts_with("net.key_file ") && public.contains("chmod 600"), "{public}");
}
