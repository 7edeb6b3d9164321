//! Counters and gap reports of publishers and subscribers, over artificial loss.

use lanecast_net::{
    GapState, NetSettings, Network, Publisher, PublisherCounters, Subscriber, SubscriberCounters,
    TransportKind,
};
use lanecast_stats::{LossOutcome, Role, StatsReport, StatsSnapshot};
use lanecast_transport::{Event, Publish, Subscribe};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// No test takes longer.
const LIMIT: Duration = Duration::from_secs(30);
const MESSAGES: u64 = 2_000;

/// Settings on loopback, with unused groups.
fn settings(port: u16) -> NetSettings {
    let run = std::process::id() as u16;
    let address = [239, 194, (run >> 8) as u8, run as u8];
    NetSettings {
        group: SocketAddr::from((address, port)),
        resolver_group: Some(SocketAddr::from((address, port + 1))),
        ..NetSettings::default()
    }
}

/// A publisher, its subscriber, and what the subscriber's handler was told.
struct Pair {
    publisher: Publisher,
    subscriber: Subscriber,
    messages: u64,
    lost: u64,
    /// Datagrams told as missing, as come, and as given up.
    noticed: u64,
    recovered: u64,
    given_up: u64,
}

impl Pair {
    fn open(network: &Network, kind: TransportKind) -> Self {
        let subscriber = network.subscriber(&["prices"]).expect("a subscriber");
        let mut publisher = network.publisher(kind, "prices").expect("a publisher");
        assert!(publisher.wait_for_subscribers(1, LIMIT), "no subscriber joined");
        let (messages, lost) = (0, 0);
        let (noticed, recovered, given_up) = (0, 0, 0);
        Self { publisher, subscriber, messages, lost, noticed, recovered, given_up }
    }

    fn poll(&mut self) -> usize {
        let (messages, lost) = (&mut self.messages, &mut self.lost);
        let work = self.subscriber.poll(64, |event| match event {
            Event::Message(_) => *messages += 1,
            Event::Lost(gap) => *lost += gap.count,
            _ => {}
        });
        while let Some(report) = self.subscriber.next_gap() {
            assert!(report.source.contains("127.0.0.1") && report.count > 0, "{report:?}");
            match report.state {
                GapState::Noticed => self.noticed += report.count,
                GapState::Recovered { .. } => self.recovered += report.count,
                GapState::GivenUp { .. } => self.given_up += report.count,
            }
        }
        work
    }

    /// Publishes, and polls until each message has come or is told as lost.
    fn run(&mut self) {
        let start = Instant::now();
        assert_eq!(self.subscriber.next_gap(), None, "from now on reports are kept");
        for number in 0..MESSAGES {
            let mut message = [0; 1_000];
            message[..8].copy_from_slice(&number.to_le_bytes());
            while self.publisher.try_send(&message).is_err() {
                assert!(start.elapsed() < LIMIT, "no room");
                self.poll();
            }
            self.poll();
        }
        while self.messages + self.lost < MESSAGES {
            assert!(start.elapsed() < LIMIT, "{} and {} lost", self.messages, self.lost);
            let work = self.poll();
            self.subscriber.wait(work);
        }
        self.poll();
    }

    fn counters(&mut self) -> (PublisherCounters, SubscriberCounters) {
        (self.publisher.counters(), self.subscriber.counters())
    }
}

fn recovered_and_counted(kind: TransportKind, port: u16) {
    let network = Network::open(NetSettings { artificial_loss: 50, ..settings(port) });
    let mut pair = Pair::open(&network.expect("a network"), kind);
    pair.run();
    assert_eq!((pair.messages, pair.lost, pair.given_up), (MESSAGES, 0, 0));
    assert!(pair.noticed > MESSAGES / 100, "{}", pair.noticed);
    assert_eq!(pair.noticed, pair.recovered);
    let (publisher, subscriber) = pair.counters();
    let received = subscriber.received;
    assert_eq!((received.messages, received.lost), (MESSAGES, 0));
    assert_eq!((received.recovered, received.overflowed), (pair.recovered, 0));
    assert!((1..=pair.recovered).contains(&received.gaps) && received.naks > 0);
    assert!(received.recovered_messages >= received.recovered);
    assert!(0 < received.recovery_min && received.recovery_min <= received.recovery_mean());
    assert!(received.recovery_mean() <= received.recovery_max);
    assert_eq!((subscriber.missing, subscriber.topics, subscriber.kernel_drops), (0, 1, 0));
    assert_eq!((publisher.sent.messages, publisher.topics), (MESSAGES, 1));
    assert!(publisher.sent.repairs >= received.recovered);
    assert_eq!((publisher.receivers, publisher.sent.joined, publisher.refused), (1, 1, 0));
}

#[test]
fn loss_on_unicast_is_detected_recovered_and_counted() {
    recovered_and_counted(TransportKind::Ru, 21_000);
}

#[test]
fn loss_on_multicast_is_detected_recovered_and_counted() {
    recovered_and_counted(TransportKind::Rm, 21_002);
}

/// The conductor receives and repairs for ends that only look at their counters, however often.
fn only_looked_at(kind: TransportKind, port: u16) {
    let network = Network::open(NetSettings {
        artificial_loss: 200,
        recovery: LIMIT,
        liveness: LIMIT,
        ..settings(port)
    });
    let mut pair = Pair::open(&network.expect("a network"), kind);
    // Fewer than the subscriber holds unread; each in a datagram of its own.
    const UNREAD: u64 = 300;
    (0..UNREAD).for_each(|_| pair.publisher.send(&[0; 1_000]).expect("room"));
    let start = Instant::now();
    while pair.counters().1.received.messages < UNREAD {
        assert!(start.elapsed() < LIMIT, "{:?}", pair.counters());
        let _ = pair.subscriber.next_gap();
    }
    let (publisher, subscriber) = pair.counters();
    assert!(subscriber.received.recovered > 0 && publisher.sent.repairs > 0, "{publisher:?}");
}

#[test]
fn looks_at_counters_do_not_delay_unicast() {
    only_looked_at(TransportKind::Ru, 21_012);
}

#[test]
fn looks_at_counters_do_not_delay_multicast() {
    only_looked_at(TransportKind::Rm, 21_014);
}

/// Losses of datagrams and of parity, some of each: what parity does not rebuild is requested.
fn rebuilt_from_parity(kind: TransportKind, port: u16) {
    let network = Network::open(NetSettings {
        artificial_loss: 50,
        fec: Some((4, 2)),
        // Parity comes before any NAK, however slowly the test runs.
        fec_delay: Duration::from_millis(60),
        ..settings(port)
    });
    let mut pair = Pair::open(&network.expect("a network"), kind);
    pair.run();
    assert_eq!((pair.messages, pair.lost, pair.given_up), (MESSAGES, 0, 0));
    let (publisher, subscriber) = pair.counters();
    let received = subscriber.received;
    assert!(received.rebuilt > 0 && received.rebuilt <= received.recovered, "{received:?}");
    assert!(received.parity > 0 && received.malformed == 0, "{received:?}");
    assert!(publisher.sent.parity >= received.parity, "{publisher:?}");
}

#[test]
fn losses_on_unicast_are_rebuilt_from_parity() {
    rebuilt_from_parity(TransportKind::Ru, 21_008);
}

#[test]
fn losses_on_multicast_are_rebuilt_from_parity() {
    rebuilt_from_parity(TransportKind::Rm, 21_010);
}

#[test]
fn losses_beyond_repair_are_reported_and_logged() {
    let directory = tempfile::tempdir().expect("a directory");
    let network = Network::open(NetSettings {
        artificial_loss: 300,
        recovery: Duration::from_millis(1),
        counters: Some(directory.path().to_owned()),
        ..settings(21_004)
    });
    let mut pair = Pair::open(&network.expect("a network"), TransportKind::Ru);
    pair.run();
    assert!(pair.lost > 0 && pair.messages + pair.lost == MESSAGES);
    let (_, subscriber) = pair.counters();
    assert_eq!(subscriber.received.lost, pair.lost);
    assert_eq!(subscriber.received.lost_datagrams, pair.given_up);
    assert_eq!(pair.noticed, pair.recovered + pair.given_up);
    let process = look_until(directory.path(), &mut pair, |reports| {
        let process = reports.iter().find(|report| report.role == Role::Process)?;
        let told = |end: &LossOutcome| matches!(end, LossOutcome::Reported(_));
        process.losses.iter().any(|loss| told(&loss.end)).then(|| process.clone())
    });
    let session = pair.publisher.session().0;
    for loss in &process.losses {
        assert_eq!(loss.session, session);
        assert!(loss.source.starts_with("ru:127.0.0.1:"), "{loss:?}");
        assert_eq!(loss.topic, "prices", "what is sent to one alone is what it wants");
    }
    let (recovered, given_up, lost) = (pair.recovered, pair.given_up, pair.lost);
    let totals = look_until(directory.path(), &mut pair, |reports| {
        let process = reports.iter().find(|report| report.role == Role::Process)?;
        let [total] = process.loss_totals.as_slice() else { return None };
        (total.reported.count == lost && total.given_up.count == given_up).then(|| total.clone())
    });
    assert_eq!((totals.session, totals.topic.as_str()), (session, "prices"));
    assert_eq!(totals.late.count + totals.repaired.count, recovered, "{totals:?}");
    assert!(totals.given_up.first_unix_ns <= totals.given_up.last_unix_ns, "{totals:?}");
    // The recovery time, less the granularity of the calendar.
    assert!(totals.given_up.longest_ns >= 1_000_000, "{totals:?}");
}

/// Looks, and lets the ends work, until `found` finds what it wants.
fn look_until<T>(
    directory: &Path,
    pair: &mut Pair,
    found: impl Fn(&[StatsReport]) -> Option<T>,
) -> T {
    let start = Instant::now();
    loop {
        let look = StatsSnapshot::take(directory).expect("a look");
        assert!(look.unreadable.is_empty(), "{:?}", look.unreadable);
        if let Some(found) = found(&look.reports) {
            return found;
        }
        assert!(start.elapsed() < LIMIT, "not in {:?}", look.reports);
        let work = pair.poll();
        pair.subscriber.wait(work);
        pair.publisher.flush();
    }
}

#[test]
fn others_see_the_sessions_and_their_counters() {
    let directory = tempfile::tempdir().expect("a directory");
    let network = Network::open(NetSettings {
        artificial_loss: 50,
        counters: Some(directory.path().to_owned()),
        ..settings(21_006)
    });
    let network = network.expect("a network");
    let mut pair = Pair::open(&network, TransportKind::Rm);
    pair.publisher.add_topic("news").expect("a topic");
    pair.publisher.add_topic("prices").expect("the same topic");
    pair.run();
    let recovered = pair.recovered;
    let (publisher, subscriber) = look_until(directory.path(), &mut pair, |reports| {
        let of = |role| reports.iter().find(|report| report.role == role);
        let (publisher, subscriber) = (of(Role::Publisher)?, of(Role::Subscriber)?);
        let told = publisher.value("messages") == Some(MESSAGES)
            && subscriber.value("datagrams recovered") == Some(recovered);
        told.then(|| (publisher.clone(), subscriber.clone()))
    });
    assert_eq!(publisher.topics, ["prices", "news"]);
    assert_eq!(subscriber.topics, ["prices"]);
    assert_eq!((publisher.value("topics"), publisher.value("receivers")), (Some(2), Some(1)));
    for report in [&publisher, &subscriber] {
        assert_eq!(report.session, pair.publisher.session().0);
        assert_eq!(report.process.pid, std::process::id());
        assert_eq!((report.transport.as_str(), report.is_alive), ("rm", true));
        assert_eq!(report.address, subscriber.address);
        assert_eq!(report.group, network.settings().group.to_string());
        let mode = report.path.metadata().expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    let source = pair.publisher.source().to_owned();
    let losses = look_until(directory.path(), &mut pair, |reports| {
        let process = reports.iter().find(|report| report.role == Role::Process)?;
        let logged: u64 = process.losses.iter().filter_map(|loss| loss.count).sum();
        (logged == recovered).then(|| process.losses.clone())
    });
    assert!(losses.iter().all(|loss| loss.end == LossOutcome::Repaired && loss.source == source));
    assert!(losses.iter().all(|loss| loss.after_ns > 0 && loss.unix_ns > 0));
    assert!(losses.iter().all(|loss| loss.topic.is_empty()), "a datagram may be of any topic");
    drop((pair, network));
    let left = lanecast_stats::list_files(directory.path()).expect("a look");
    assert!(left.is_empty(), "{left:?}");
}
