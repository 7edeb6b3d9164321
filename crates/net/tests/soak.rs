//! Publishers and subscribers between hosts over hours, in short: some stay, others come and go,
//! and datagrams are lost, while memory, descriptors and threads must stay what they were. A
//! program by itself: it measures its own process.
//!
//! `SOAK_SECONDS` sets its time; else it takes a few seconds, or half an hour with `LONG_TESTS=1`.

use lanecast_net::{NetSettings, Network, Publisher, Subscriber, TransportKind};
use lanecast_transport::{Event, Publish, Subscribe};
use std::net::SocketAddr;
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
    fn open(network: &Network) -> Self {
        let subscriber = network.subscriber(&["prices"]).expect("a subscriber");
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

/// Two networks: in one the caller receives, in the other two receive threads.
struct Soak {
    networks: [Network; 2],
    readers: Vec<Reader>,
    publishers: Vec<Publisher>,
}

impl Soak {
    fn start() -> Self {
        let run = std::process::id() as u16;
        let address = [239, 195, (run >> 8) as u8, run as u8];
        let open = |receive_threads| {
            Network::open(NetSettings {
                group: SocketAddr::from((address, 22_000)),
                resolver_group: Some(SocketAddr::from((address, 22_001))),
                receive_threads,
                artificial_loss: LOSS,
                window_bytes: WINDOW_BYTES,
                ..NetSettings::default()
            })
            .expect("a network")
        };
        let networks = [open(0), open(2)];
        let readers = networks.iter().map(Reader::open).collect();
        let mut soak = Self { networks, readers, publishers: Vec::new() };
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
        let guest = Reader::open(&self.networks[1 - network]);
        self.readers.push(guest);
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
        drop((self.publishers.pop(), self.readers.pop()));
        self.until_met();
    }
}

#[test]
fn memory_descriptors_and_threads_stay_what_they_were() {
    let (mut soak, start, duration) = (Soak::start(), Instant::now(), duration());
    let (mut rounds, mut warm, mut samples) = (0, None, 0);
    while start.elapsed() < duration || rounds < 2 * WARM_ROUNDS {
        soak.round(rounds);
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
    println!("{rounds} rounds: {warm:?} after a third, {end:?} at the end");
    assert!(end.resident_kib <= warm.resident_kib + GROWTH_MAX_KIB, "{warm:?}, then {end:?}");
    assert!(end.descriptors <= warm.descriptors + CLOSING_MAX, "{warm:?}, then {end:?}");
    assert!(end.threads <= warm.threads, "{warm:?}, then {end:?}");
}
