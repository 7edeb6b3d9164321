//! Receive threads: the sessions of one subscriber spread over them, and each stays with one.

use lanecast_net::{NetSettings, Network, Publisher, Subscriber, TransportKind};
use lanecast_stats::{Role, StatsSnapshot};
use lanecast_transport::{Event, Publish, Subscribe};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

/// No test takes longer.
const LIMIT: Duration = Duration::from_secs(60);
const MESSAGES: u64 = 500;

fn network(port: u16, receive_threads: usize, settings: NetSettings) -> Network {
    let run = std::process::id() as u16;
    let address = [239, 194, (run >> 8) as u8, run as u8];
    let network = Network::open(NetSettings {
        group: SocketAddr::from((address, port)),
        resolver_group: Some(SocketAddr::from((address, port + 1))),
        receive_threads,
        ..settings
    });
    network.expect("a network")
}

/// Settings with counters files.
fn counted(directory: &Path) -> NetSettings {
    NetSettings { counters: Some(directory.to_owned()), ..NetSettings::default() }
}

/// A subscriber, and what it has got of each session.
struct Received {
    subscriber: Subscriber,
    /// The number of the next message, by session.
    next: BTreeMap<u64, u64>,
    left: usize,
}

impl Received {
    fn poll(&mut self) -> usize {
        let Self { subscriber, next, left } = self;
        subscriber.poll(64, |event| match event {
            Event::Joined(stream) => {
                assert_eq!(next.insert(stream.session.0, 0), None, "joined once");
            }
            Event::Message(message) => {
                let next = next.get_mut(&message.stream().session.0).expect("a joined stream");
                assert_eq!(message.number(), *next);
                assert_eq!(message.bytes()[..8], next.to_le_bytes());
                *next += 1;
            }
            Event::Left(..) => *left += 1,
            Event::Lost(gap) => panic!("lost {gap:?}"),
            _ => {}
        })
    }

    /// Polls and sleeps until the condition holds.
    #[track_caller]
    fn until(&mut self, what: &str, mut holds: impl FnMut(&mut Self) -> bool) {
        let start = Instant::now();
        while !holds(self) {
            assert!(start.elapsed() < LIMIT, "{what}: {:?}, {} left", self.next, self.left);
            let work = self.poll();
            self.subscriber.wait(work);
        }
    }
}

/// The receive threads of the joined sessions, as the counters files name them.
fn serving(directory: &Path) -> Vec<u64> {
    let snapshot = StatsSnapshot::take(directory).expect("a snapshot");
    let joined = snapshot.reports.iter().filter(|file| file.role == Role::Subscriber);
    let mut threads: Vec<_> = joined.filter_map(|file| file.value("receive thread")).collect();
    threads.sort_unstable();
    threads
}

fn publishers(network: &Network, kinds: &[TransportKind]) -> Vec<Publisher> {
    let open = |kind: &TransportKind| {
        let mut publisher = network.publisher(*kind, "prices").expect("a publisher");
        assert!(publisher.wait_for_subscribers(1, LIMIT), "not joined");
        publisher
    };
    kinds.iter().map(open).collect()
}

#[test]
fn sessions_spread_over_the_threads_and_lose_nothing() {
    use TransportKind::{Rm, Ru, Tcp};
    let directory = tempfile::tempdir().expect("a directory");
    let settings = NetSettings { artificial_loss: 100, ..counted(directory.path()) };
    let network = network(21_300, 2, settings);
    let subscriber = network.subscriber(&["prices"]).expect("a subscriber");
    let mut received = Received { subscriber, next: BTreeMap::new(), left: 0 };
    let mut publishers = publishers(&network, &[Ru, Tcp, Rm, Ru]);
    received.until("two sessions at each thread", |_| serving(directory.path()) == [1, 1, 2, 2]);
    for number in 0..MESSAGES {
        let mut message = [0; 200];
        message[..8].copy_from_slice(&number.to_le_bytes());
        for publisher in &mut publishers {
            received.until("room", |_| publisher.try_send(&message).is_ok());
        }
    }
    received.until("all messages", |it| it.next.values().sum::<u64>() == 4 * MESSAGES);
    let counters = received.subscriber.counters();
    assert_eq!((counters.received.messages, counters.topics), (4 * MESSAGES, 4));
    assert!(counters.received.recovered > 0, "no datagram was lost on purpose");
    // The end of a session makes room at its thread for the next one.
    drop(publishers.split_off(1));
    received.until("three have left", |it| it.left == 3);
    received.until("their ends are known", |_| serving(directory.path()).len() == 1);
    publishers.extend(self::publishers(&network, &[Ru, Tcp, Ru]));
    received.until("two at each again", |_| serving(directory.path()) == [1, 1, 2, 2]);
}

#[test]
fn sessions_of_one_group_have_one_thread() {
    let directory = tempfile::tempdir().expect("a directory");
    let network = network(21_302, 3, counted(directory.path()));
    let subscriber = network.subscriber(&["prices"]).expect("a subscriber");
    let mut received = Received { subscriber, next: BTreeMap::new(), left: 0 };
    let _publishers = publishers(&network, &[TransportKind::Rm; 3]);
    received.until("three sessions at one thread", |_| serving(directory.path()) == [1, 1, 1]);
}

#[test]
fn publishers_are_told_that_a_subscriber_leaves() {
    // Longer than the test: only the subscriber's own word ends its sessions.
    let settings = NetSettings { liveness: 10 * LIMIT, ..NetSettings::default() };
    let network = network(21_304, 2, settings);
    let subscriber = network.subscriber(&["prices"]).expect("a subscriber");
    let publishers = publishers(&network, &[TransportKind::Ru, TransportKind::Tcp]);
    drop(subscriber);
    for publisher in &publishers {
        let start = Instant::now();
        while publisher.subscribers() > 0 {
            assert!(start.elapsed() < LIMIT, "the publisher still waits for a subscriber");
            std::thread::yield_now();
        }
    }
}
