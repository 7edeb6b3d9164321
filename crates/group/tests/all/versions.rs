//! Members of two versions meet: each refuses the other's frames, learns of the version, and goes
//! on without it. Also with a key, under which frames of another version cannot be opened.

use crate::transports::options;
use lanecast_group::{Event, GROUP_VERSION, Group, GroupObserver, Order, SharedKeys};
use lanecast_shm::{Domain, DomainSettings, Publisher, Subscriber, Visibility};
use lanecast_transport::{Event as StreamEvent, Publish, Subscribe, Transport};
use std::time::{Duration, Instant};

/// No test takes longer.
const PATIENCE: Duration = Duration::from_secs(60);
const TOPIC: &str = "_group.g";
const KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
/// Places of a frame's version and of its sender, the same in all versions.
const VERSION_AT: usize = 0;
const SENDER_AT: std::ops::Range<usize> = 8..16;

fn domain(name: &str) -> Domain {
    let settings = DomainSettings {
        visibility: Visibility::Process,
        directory: format!("group-versions-{name}-{:?}", std::thread::current().id()).into(),
        ..DomainSettings::default()
    };
    Domain::open(settings).expect("a domain")
}

/// A member in a domain of its own, and what it was told.
struct Seat {
    domain: Domain,
    group: Group<Domain>,
    versions: Vec<u8>,
    received: Vec<Vec<u8>>,
}

impl Seat {
    fn new(name: &str, keys: Option<&str>) -> Self {
        let domain = domain(name);
        let mut options = options(name);
        options.keys = keys.map(|keys| SharedKeys::parse(keys).expect("keys"));
        let group = Group::join(domain.clone(), "g", options).expect("a member");
        Self { domain, group, versions: Vec::new(), received: Vec::new() }
    }

    fn poll(&mut self) {
        let Self { group, versions, received, .. } = self;
        group.poll(64, |event| match event {
            Event::OtherVersion { version } => versions.push(version),
            Event::View(view, _) => assert_eq!(view.members.len(), 1, "they are apart"),
            Event::Message { bytes, .. } => received.push(bytes.to_vec()),
            _ => {}
        });
    }
}

/// Carries the frames of one member into the other's domain, as those of another version.
struct Relay {
    heard: Subscriber,
    told: Publisher,
    version: u8,
}

impl Relay {
    fn pass(&mut self) {
        let Self { heard, told, version } = self;
        heard.poll(64, |event| {
            let StreamEvent::Message(message) = event else { return };
            let mut frame = message.bytes().to_vec();
            assert_eq!(frame[VERSION_AT], GROUP_VERSION);
            frame[VERSION_AT] = *version;
            frame[SENDER_AT].copy_from_slice(&told.session().0.to_le_bytes());
            told.try_send(&frame).expect("both read all the time");
        });
    }
}

/// Relays in both directions: to each of the two the other one is of the version in `others`.
fn relays(seats: [&Seat; 2], others: [u8; 2]) -> [Relay; 2] {
    let told = seats.map(|seat| seat.domain.publisher(TOPIC).expect("a publisher"));
    let sessions = [0, 1].map(|at| told[at].session());
    let mut told = told.into_iter().rev();
    [0, 1].map(|from| {
        let heard = seats[from].domain.subscriber_except(&[TOPIC], sessions[from]);
        Relay {
            heard: heard.expect("a subscriber"),
            told: told.next().expect("two publishers"),
            version: others[1 - from],
        }
    })
}

/// Two members meet, and after that each has a group of its own.
fn members_of_two_versions_meet(others: [u8; 2], keys: Option<&str>) {
    let mut seats = ["ann", "ben"].map(|name| Seat::new(name, keys));
    let mut relays = relays([&seats[0], &seats[1]], others);
    let mut observer = GroupObserver::open(&seats[0].domain, "g", None).expect("an observer");
    let start = Instant::now();
    let mut turn = |seats: &mut [Seat; 2], observer: &mut GroupObserver<Domain>, what: &str| {
        assert!(start.elapsed() < PATIENCE, "in vain: {what}");
        relays.iter_mut().for_each(Relay::pass);
        seats.iter_mut().for_each(Seat::poll);
        observer.poll(64);
        std::thread::yield_now();
    };
    let has_met = |seat: &Seat| seat.group.has_view() && seat.group.foreign_frames() >= 10;
    while !(seats.iter().all(has_met) && observer.other_version().is_some()) {
        turn(&mut seats, &mut observer, "frames of another version");
    }
    for (at, seat) in seats.iter_mut().enumerate() {
        assert_eq!(seat.versions, [others[at]], "told once, however often it is heard");
        seat.group.try_send(b"alone", Order::Total).expect("a group of its own");
    }
    assert_eq!(observer.other_version(), Some(others[0]));
    while !seats.iter().all(|seat| !seat.received.is_empty()) {
        turn(&mut seats, &mut observer, "an own message");
    }
    // The message was relayed too, and was no message to the other one.
    let before = seats.each_ref().map(|seat| seat.group.foreign_frames());
    while (0..2).any(|at| seats[at].group.foreign_frames() < before[at] + 2) {
        turn(&mut seats, &mut observer, "further frames");
    }
    for (at, seat) in seats.iter().enumerate() {
        assert_eq!(seat.received, [b"alone"]);
        assert_eq!(seat.versions, [others[at]]);
        assert_eq!(seat.group.view().members.len(), 1);
    }
}

#[test]
fn members_of_different_versions_refuse_each_other() {
    members_of_two_versions_meet([GROUP_VERSION - 1, GROUP_VERSION + 1], None);
}

#[test]
fn members_with_a_key_learn_that_another_one_is_of_another_version() {
    members_of_two_versions_meet([GROUP_VERSION + 1, u8::MAX], Some(KEY));
}
