//! Contexts that find each other at daemons, whatever becomes of these.

use super::client::{Daemon, PATIENCE, anywhere};
use lanecast_net::{DaemonSettings, NetSettings, Network, Publisher, Subscriber, TransportKind};
use lanecast_transport::{CloseReason, Event, Publish, Subscribe};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn network(resolvers: &[SocketAddr]) -> Network {
    let settings = NetSettings {
        resolver_group: None,
        resolvers: resolvers.to_vec(),
        ..NetSettings::default()
    };
    Network::open(settings).expect("a network")
}

/// A subscriber, and what it has been told.
struct Reader {
    subscriber: Subscriber,
    joined: usize,
    left: Vec<CloseReason>,
    /// Messages by topic.
    messages: BTreeMap<String, usize>,
}

impl Reader {
    fn new(network: &Network, topics: &[&str]) -> Self {
        let subscriber = network.subscriber(topics).expect("a subscriber");
        Self { subscriber, joined: 0, left: Vec::new(), messages: BTreeMap::new() }
    }

    fn turn(&mut self) {
        let Self { subscriber, joined, left, messages } = self;
        let work = subscriber.poll(100, |event| match event {
            Event::Joined(_) => *joined += 1,
            Event::Left(_, why) => left.push(why),
            Event::Message(message) => {
                *messages.entry(message.stream().topic.clone()).or_default() += 1;
            }
            _ => {}
        });
        subscriber.wait(work);
    }

    /// Polls, and lets `publishers` publish, until something holds.
    #[track_caller]
    fn until(
        &mut self,
        what: &str,
        publishers: &mut [&mut Publisher],
        holds: impl Fn(&Self) -> bool,
    ) {
        let start = Instant::now();
        while !holds(self) {
            let Self { joined, left, .. } = self;
            let ends = left.len();
            let last = left.last();
            assert!(
                start.elapsed() < PATIENCE,
                "waited in vain until {what}: {joined} joined, {ends} left, the last {last:?}"
            );
            for publisher in &mut *publishers {
                let _ = publisher.try_send(b"message");
            }
            self.turn();
        }
    }

    fn count(&self, topic: &str) -> usize {
        self.messages.get(topic).copied().unwrap_or(0)
    }

    /// Whether it was told of an end that was none.
    fn assert_no_end(&self) {
        assert!(self.left.is_empty(), "{:?}", self.left);
    }
}

fn publisher(network: &Network, kind: TransportKind, topic: &str) -> Publisher {
    network.publisher(kind, topic).expect("a publisher")
}

#[test]
fn all_transports_are_found_at_a_daemon() {
    let daemon = Daemon::start(&anywhere());
    let (near, far) = (network(&[daemon.address]), network(&[daemon.address]));
    for kind in TransportKind::ALL {
        let topic = format!("resolver.{kind}");
        let mut reader = Reader::new(&far, &[&topic]);
        let mut publisher = publisher(&near, kind, &topic);
        reader.until("a message comes", &mut [&mut publisher], |it| it.count(&topic) > 0);
        drop(publisher);
        reader.until("it has left", &mut [], |it| it.left == [CloseReason::Closed]);
        assert_eq!(reader.joined, 1);
    }
}

#[test]
fn a_daemon_beside_the_group_changes_nothing() {
    let daemon = Daemon::start(&anywhere());
    let settings = NetSettings {
        resolvers: vec![daemon.address],
        resolver_group: Some(SocketAddr::from(([239, 193, 71, 1], 14_391))),
        ..NetSettings::default()
    };
    let (near, far) = (Network::open(settings.clone()), Network::open(settings));
    let (near, far) = (near.expect("a network"), far.expect("a network"));
    let mut reader = Reader::new(&far, &["both"]);
    let mut publisher = publisher(&near, TransportKind::Ru, "both");
    reader.until("a message comes", &mut [&mut publisher], |it| it.count("both") > 0);
    drop(publisher);
    reader.until("it has left", &mut [], |it| it.left == [CloseReason::Closed]);
    assert_eq!(reader.joined, 1);
}

#[test]
fn a_daemon_that_is_restarted_disturbs_nobody_and_is_found_again() {
    let daemon = Daemon::start(&anywhere());
    let at = DaemonSettings::at(daemon.address);
    let (near, far) = (network(&[daemon.address]), network(&[daemon.address]));
    let mut first = Reader::new(&far, &["steady"]);
    let mut steady = publisher(&near, TransportKind::Ru, "steady");
    first.until("a message comes", &mut [&mut steady], |it| it.count("steady") > 0);
    drop(daemon);
    // Without a daemon all goes on that has been found.
    let before = first.count("steady");
    first.until("more comes", &mut [&mut steady], |it| it.count("steady") > before + 100);
    let mut other = publisher(&near, TransportKind::Tcp, "other");
    let mut second = Reader::new(&far, &["steady", "other"]);
    let daemon = Daemon::start(&at);
    let both = |it: &Reader| it.count("steady") > 0 && it.count("other") > 0;
    let start = Instant::now();
    second.until("both are found", &mut [&mut steady, &mut other], both);
    eprintln!("found {:?} after the daemon's return", start.elapsed());
    // Longer than the daemon takes to answer what it is asked.
    while start.elapsed() < Duration::from_secs(7) {
        let _ = steady.try_send(b"message");
        first.turn();
    }
    first.assert_no_end();
    second.assert_no_end();
    drop(daemon);
}

#[test]
fn one_of_two_daemons_is_enough() {
    let mut daemons = [0, 1].map(|_| Some(Daemon::start(&anywhere())));
    let addresses = [0, 1].map(|index: usize| daemons[index].as_ref().expect("up").address);
    let (near, far) = (network(&addresses), network(&addresses));
    let mut reader = Reader::new(&far, &["a", "b", "c"]);
    let mut publishers = Vec::new();
    for (round, topic) in ["a", "b", "c"].into_iter().enumerate() {
        let dead = round % 2;
        daemons[dead] = None;
        publishers.push(publisher(&near, TransportKind::Ru, topic));
        let mut all: Vec<&mut Publisher> = publishers.iter_mut().collect();
        reader.until("the new one is found", &mut all, |it| it.count(topic) > 0);
        daemons[dead] = Some(Daemon::start(&DaemonSettings::at(addresses[dead])));
    }
    reader.assert_no_end();
    assert_eq!(reader.joined, 3);
}

#[test]
fn a_program_can_be_the_daemon_for_its_own_publishers() {
    let open = |port| {
        let settings = NetSettings {
            resolver_group: None,
            resolver_port: Some(port),
            ..NetSettings::default()
        };
        Network::open(settings).expect("a network")
    };
    let near = open(0);
    let address = near.resolver_address().expect("it is a daemon");
    let mut first = publisher(&near, TransportKind::Ru, "static");
    let far = network(&[address]);
    let mut reader = Reader::new(&far, &["static"]);
    reader.until("a message comes", &mut [&mut first], |it| it.count("static") > 0);
    drop((first, near));
    reader.until("it has left", &mut [], |it| it.left == [CloseReason::Closed]);
    // This one starts anew, and no other does.
    let near = open(address.port());
    let mut second = publisher(&near, TransportKind::Tcp, "static");
    let before = reader.count("static");
    reader.until("it is found", &mut [&mut second], |it| it.count("static") > before);
}

#[test]
fn ten_thousand_topics_are_found_at_a_daemon() {
    const COUNT: usize = 10_000;
    let daemon = Daemon::start(&anywhere());
    let (near, far) = (network(&[daemon.address]), network(&[daemon.address]));
    let names: Vec<String> = (0..COUNT).map(|number| format!("many.topics.{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let start = Instant::now();
    let mut publisher = publisher(&near, TransportKind::Ru, names[0]);
    for name in &names[1..] {
        publisher.add_topic(name).expect("a topic");
    }
    let mut reader = Reader::new(&far, &names);
    reader.until("all have joined", &mut [], |it| it.joined == COUNT);
    eprintln!("{COUNT} topics joined after {:?}", start.elapsed());
    reader.assert_no_end();
}

#[test]
fn settings_that_cannot_work_are_refused_with_what_to_do() {
    let refuse = |address: &str, words: &str| {
        let resolvers = vec![address.parse().expect("an address")];
        let error = Network::open(NetSettings { resolvers, ..NetSettings::default() });
        let error = error.expect_err("it cannot work").to_string();
        assert!(error.contains("net.resolvers") && error.contains(words), "{error}");
    };
    refuse("10.0.0.1:7331", "net.interface");
    refuse("127.0.0.1:0", "10.0.0.1:7331");
    refuse("0.0.0.0:7331", "10.0.0.1:7331");
    refuse("239.192.71.1:14390", "net.resolver_group");
}

const DAEMON: &str = "TEST_DAEMON";

/// Not a test: the process that the next one kills.
#[test]
fn publisher_process() {
    let Ok(daemon) = std::env::var(DAEMON) else { return };
    let near = network(&[daemon.parse().expect("an address")]);
    let mut publisher = publisher(&near, TransportKind::Ru, "killed");
    loop {
        let _ = publisher.try_send(b"message");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_publisher_that_is_killed_has_left_and_the_next_one_is_found() {
    let daemon = Daemon::start(&anywhere());
    let far = network(&[daemon.address]);
    let mut reader = Reader::new(&far, &["killed"]);
    for round in 1..3 {
        let mut child = Command::new(std::env::current_exe().expect("the test"))
            .args(["--exact", "resolver::healing::publisher_process"])
            .env(DAEMON, daemon.address.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("a process");
        reader.until("it has joined", &mut [], |it| it.joined == round);
        let before = reader.count("killed");
        reader.until("a message comes", &mut [], |it| it.count("killed") > before);
        child.kill().expect("it lives");
        child.wait().expect("it is dead");
        reader.until("its end is seen", &mut [], |it| it.left.len() == round);
        assert!(reader.left.iter().all(|why| *why == CloseReason::Died), "{:?}", reader.left);
    }
    assert_eq!(reader.joined, 2);
}
