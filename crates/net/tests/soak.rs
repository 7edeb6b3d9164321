//! Publishers and subscribers between hosts over hours, in short: some stay, others come and go,
//! and datagrams are lost, while memory, descriptors and threads must stay what they were. Half of
//! them have everything on: keys that change, TLS, and parity. Half of the subscribers select by
//! pattern. A program by itself: it measures its own process.
//!
//! `SOAK_SECONDS` sets its time; else it takes a few seconds, or half an hour with `LONG_TESTS=1`.

#[expect(dead_code, reason = "it also makes what other crates' tests need")]
#[path = "../../tls/tests/all/certificates.rs"]
mod certificates;

use certificates::Certificates;
use lanecast_net::{
    NetSettings, NetTransport, Network, Publisher, Subscriber, TlsSettings, TransportKind,
};
use lanecast_transport::{Event, Publish, Subscribe, TopicPattern, TopicSelection, Transport};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Longer than anything takes that is waited for here.
const LIMIT: Duration = Duration::from_secs(60);
/// Messages of each publisher in a round, and their length.
const MESSAGES: u64 = 200;
const LENGTH: usize = 100;
/// Lost datagrams of a thousand.
const LOSS: u32 = 10;
/// The window of each publisher, and the rounds until all of it has been used.
const WINDOW_BYTES: usize = 256 << 10;
const WARM_ROUNDS: u64 = 12;
/// Least time between two changes of keys, twice that between two looks at their file.
const KEY_TIME: Duration = Duration::from_secs(1);
/// Keys in the file before and after the one that seals: programs that are late to read it open
/// what the others seal, and the other way round.
const KEYS_BESIDE: u64 = 3;
/// The most growth after the first third of the time.
const GROWTH_MAX_KIB: u64 = 8 << 10;
/// Descriptors of connections that have not closed yet.
const CLOSING_MAX: usize = 8;

fn duration() -> Duration {
    let given = std::env::var("SOAK_SECONDS").ok();
    let usual = if std::env::var_os("LONG_TESTS").is_some() { 1_800 } else { 2 };
    Duration::from_secs(given.map_or(usual, |text| text.parse().expect("SOAK_SECONDS: a number")))
}

/// Resources of this process.
#[derive(Clone, Copy, Debug)]
struct Usage {
    resident_kib: u64,
    descriptors: usize,
    threads: usize,
}

impl Usage {
    fn now() -> Self {
        let status = std::fs::read_to_string("/proc/self/status").expect("this process");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number = line.and_then(|line| line.split_whitespace().next()).expect("its memory");
        let count = |of: &str| std::fs::read_dir(of).expect("this process").count();
        Self {
            resident_kib: number.parse().expect("a number"),
            descriptors: count("/proc/self/fd"),
            threads: count("/proc/self/task"),
        }
    }
}

/// A subscriber, and the messages that it has read.
struct Reader {
    subscriber: Subscriber,
    read: u64,
}

impl Reader {
    fn open(network: &Network, is_by_pattern: bool) -> Self {
        let selection = if is_by_pattern {
            let pattern = TopicPattern::wildcard("pri*s").expect("a pattern");
            TopicSelection::of_patterns(vec![pattern], TopicSelection::TOPICS_MAX)
        } else {
            TopicSelection::of_names(&["prices"])
        };
        let transport = NetTransport::new(network.clone(), TransportKind::Ru);
        let subscriber = transport.subscriber_of(&selection).expect("a subscriber");
        Self { subscriber, read: 0 }
    }

    fn poll(&mut self) -> usize {
        let read = &mut self.read;
        self.subscriber.poll(256, |event| match event {
            Event::Message(message) => {
                assert_eq!(message.bytes().len(), LENGTH);
                *read += 1;
            }
            Event::Lost(gap) => panic!("lost {gap:?}"),
            _ => {}
        })
    }
}

/// Keys and certificates of networks.
struct Secrets {
    files: Certificates,
    /// Changes of keys so far, and the time of the last one.
    changes: u64,
    changed: Instant,
}

impl Secrets {
    fn new() -> Self {
        let secrets = Self { files: Certificates::new(), changes: 0, changed: Instant::now() };
        secrets.files.issue("end", "127.0.0.1", 2100);
        secrets.write_keys();
        secrets
    }

    /// The key that seals, those that will, and those that did.
    fn write_keys(&self) {
        let now = KEYS_BESIDE + self.changes;
        let all = (now..=now + KEYS_BESIDE).chain(now - KEYS_BESIDE..now);
        let lines: Vec<_> = all.map(|number| format!("{number:064x}")).collect();
        self.files.write("new", &lines.join("\n"));
        std::fs::rename(self.files.path("new"), self.key_file()).expect("renamed");
    }

    fn key_file(&self) -> PathBuf {
        self.files.path("keys")
    }

    /// Changes the key that seals, if programs have had the time to read of the last change.
    fn change_keys(&mut self) {
        if self.changed.elapsed() >= KEY_TIME {
            (self.changes, self.changed) = (self.changes + 1, Instant::now());
            self.write_keys();
        }
    }

    fn tls(&self) -> TlsSettings {
        let [certificate, key, authorities] =
            ["end.pem", "end.key", "ca.pem"].map(|name| Some(self.files.path(name)));
        TlsSettings { certificate, key, authorities, name: None }
    }
}

/// Two networks: in one the caller receives, in the other two receive threads.
struct Soak {
    networks: [Network; 2],
    readers: Vec<Reader>,
    publishers: Vec<Publisher>,
    secrets: Option<Secrets>,
    /// Datagrams rebuilt from parity for subscribers that have gone.
    rebuilt: u64,
}

impl Soak {
    fn start(port: u16, secrets: Option<Secrets>) -> Self {
        let run = std::process::id() as u16;
        let address = [239, 195, (run >> 8) as u8, run as u8];
        let open = |receive_threads| {
            Network::open(NetSettings {
                group: SocketAddr::from((address, port)),
                resolver_group: Some(SocketAddr::from((address, port + 1))),
                key_file: secrets.as_ref().map(Secrets::key_file),
                tls: secrets.as_ref().map(Secrets::tls).unwrap_or_default(),
                fec: secrets.is_some().then_some((4, 1)),
                receive_threads,
                artificial_loss: LOSS,
                window_bytes: WINDOW_BYTES,
                ..NetSettings::default()
            })
            .expect("a network")
        };
        let networks = [open(0), open(2)];
        let readers = [false, true].map(|way| Reader::open(&networks[usize::from(way)], way));
        let (readers, publishers) = (readers.into(), Vec::new());
        let mut soak = Self { networks, readers, publishers, secrets, rebuilt: 0 };
        for kind in TransportKind::ALL {
            soak.publish(0, kind);
        }
        soak.until_met();
        soak
    }

    fn publish(&mut self, network: usize, kind: TransportKind) {
        self.publishers.push(self.networks[network].publisher(kind, "prices").expect("room"));
    }

    /// Reads and sleeps until the condition holds.
    #[track_caller]
    fn until(&mut self, what: &str, holds: impl Fn(&Self) -> bool) {
        let start = Instant::now();
        while !holds(self) {
            assert!(start.elapsed() < LIMIT, "{what}: {:?}", self.counts());
            let work: usize = self.readers.iter_mut().map(Reader::poll).sum();
            // Each in turn: the others' messages wait meanwhile, as their sockets have room.
            let at = start.elapsed().as_millis() as usize % self.readers.len();
            self.readers[at].subscriber.wait_at_most(work, Duration::from_millis(1));
        }
    }

    /// Subscribers of each publisher, and streams and messages of each subscriber.
    fn counts(&self) -> (Vec<usize>, Vec<(usize, u64)>) {
        let readers = self.readers.iter().map(|it| (it.subscriber.streams(), it.read));
        (self.publishers.iter().map(Publish::subscribers).collect(), readers.collect())
    }

    /// Waits until each subscriber has the streams of all publishers and of no others, and each
    /// publisher knows all subscribers.
    #[track_caller]
    fn until_met(&mut self) {
        self.until("met", |it| {
            let (subscribers, streams) = it.counts();
            subscribers.iter().all(|count| *count == it.readers.len())
                && streams.iter().all(|(count, _)| *count == it.publishers.len())
        });
    }

    /// A publisher and a subscriber come, all publish and read, and the two go again.
    fn round(&mut self, number: u64) {
        let (network, kind) = (number as usize % 2, TransportKind::ALL[number as usize % 3]);
        self.publish(network, kind);
        let guest = Reader::open(&self.networks[1 - network], number % 4 < 2);
        self.readers.push(guest);
        self.secrets.iter_mut().for_each(Secrets::change_keys);
        self.until_met();
        for _ in 0..MESSAGES {
            for at in 0..self.publishers.len() {
                let start = Instant::now();
                while self.publishers[at].try_send(&[7; LENGTH]).is_err() {
                    assert!(start.elapsed() < LIMIT, "no room: {:?}", self.counts());
                    self.readers.iter_mut().for_each(|reader| _ = reader.poll());
                }
            }
        }
        let all = MESSAGES * self.publishers.len() as u64;
        self.until("read", |it| it.readers.iter().all(|reader| reader.read >= all));
        for reader in &mut self.readers {
            assert_eq!(std::mem::take(&mut reader.read), all);
            assert_eq!(reader.subscriber.counters().missing, 0);
        }
        let mut guest = self.readers.pop().expect("the guest");
        self.rebuilt += guest.subscriber.counters().received.rebuilt;
        drop((self.publishers.pop(), guest));
        self.until_met();
    }
}

#[test]
fn memory_descriptors_and_threads_stay_what_they_were() {
    let mut plain = Soak::start(22_000, None);
    let mut secret = Soak::start(22_002, Some(Secrets::new()));
    let (start, duration) = (Instant::now(), duration());
    let (mut rounds, mut warm, mut samples) = (0, None, 0);
    while start.elapsed() < duration || rounds < 2 * WARM_ROUNDS {
        plain.round(rounds);
        secret.round(rounds);
        rounds += 1;
        if start.elapsed() >= samples * duration / 20 {
            println!("{rounds} rounds after {:?}: {:?}", start.elapsed(), Usage::now());
            samples += 1;
        }
        if start.elapsed() > duration / 3 && rounds >= WARM_ROUNDS {
            warm.get_or_insert_with(Usage::now);
        }
    }
    let (warm, end) = (warm.expect("it was warm"), Usage::now());
    let changes = secret.secrets.map_or(0, |secrets| secrets.changes);
    let rebuilt = secret.rebuilt;
    println!("{rounds} rounds: {warm:?} after a third, {end:?} at the end");
    println!("{changes} changes of keys, {rebuilt} datagrams rebuilt from parity");
    assert!(changes > 0 && rebuilt > 0, "{changes} changes, {rebuilt} rebuilt");
    assert_eq!(plain.rebuilt, 0, "without parity");
    assert!(end.resident_kib <= warm.resident_kib + GROWTH_MAX_KIB, "{warm:?}, then {end:?}");
    assert!(end.descriptors <= warm.descriptors + CLOSING_MAX, "{warm:?}, then {end:?}");
    assert!(end.threads <= warm.threads, "{warm:?}, then {end:?}");
}
