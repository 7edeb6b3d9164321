//! The promises of a group, over each transport.

use crate::crowd::{Seat, send, until, until_together};
use lanecast_group::{Departure, Event, Group, GroupOptions, Order, SendError, SharedKeys};
use lanecast_net::{NetSettings, NetTransport, Network, TransportKind};
use lanecast_shm::{Domain, DomainSettings, SlowConsumerPolicy, Visibility};
use lanecast_transport::Transport;
use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;
use tempfile::TempDir;

/// Messages of each member.
const COUNT: u32 = 150;

/// Options of the member `name`, which looks for others for a short time only.
pub(crate) fn options(name: &str) -> GroupOptions {
    let mut options = GroupOptions::named(name);
    options.settings.join_timeout = 300_000_000;
    options
}

/// A message: the sender's place, its count, and a length that varies up to several frames.
fn message(from: usize, count: u32) -> Vec<u8> {
    let length = if count % 50 == 49 { 150_000 } else { 5 + (count as usize * 37) % 900 };
    let mut bytes = vec![count as u8; length];
    bytes[0] = from as u8;
    bytes[1..5].copy_from_slice(&count.to_le_bytes());
    bytes
}

/// Three members hear all of each other, in the orders that were promised; one is spoken to alone,
/// one leaves, one is dropped.
fn members_hear_all<T: Transport + Send>(open: impl Fn() -> T, watch: Option<IpAddr>) {
    let mut seats: Vec<Seat<T>> = Vec::new();
    for name in ["ann", "ben", "cas"] {
        let mut options = options(name);
        options.watch = watch;
        seats.push(Seat::join(open(), options));
    }
    until_together(&mut seats);
    let names = |seat: &Seat<T>| {
        let mut names: Vec<_> =
            seat.group.view().members.iter().map(|it| it.name.clone()).collect();
        names.sort();
        names
    };
    assert_eq!(names(&seats[1]), ["ann", "ben", "cas"]);
    for count in 0..COUNT {
        for from in 0..seats.len() {
            let order = if count % 3 == 0 { Order::Total } else { Order::Sender };
            send(&mut seats, from, &message(from, count), order);
        }
    }
    let all = COUNT as usize * seats.len();
    until("all messages", &mut seats, |seats| seats.iter().all(|it| it.received.len() >= all));
    check_messages(&seats);
    until("all hold all", &mut seats, |seats| {
        seats.iter().all(|seat| seat.group.stable() >= u64::from(COUNT))
    });

    let (ann, cas) = (seats[0].id(), seats[2].id());
    until("room to send to one", &mut seats, |seats| {
        seats[0].group.try_send_to(cas, b"psst").is_ok()
    });
    until("a message to one", &mut seats, |seats| !seats[2].direct.is_empty());
    assert_eq!(seats[2].direct, [(ann, b"psst".to_vec())]);
    assert!(seats[0].direct.is_empty() && seats[1].direct.is_empty());

    let leaver = seats.remove(1);
    let ben = leaver.id();
    std::thread::scope(|scope| {
        let leaving = scope.spawn(|| leaver.group.leave(Duration::from_secs(30)));
        until("the leaver is known to leave", &mut seats, |_| leaving.is_finished());
        assert!(leaving.join().expect("no panic"), "the others knew");
    });
    until_together(&mut seats);
    for seat in &seats {
        assert_eq!(seat.departures(), [(ben, Departure::Left)]);
    }
    drop(seats.pop());
    until_together(&mut seats);
    assert_eq!(seats[0].departures().last().map(|(id, _)| *id), Some(cas));
    assert_eq!(seats[0].received.len(), all, "nothing more was sent");
}

/// Checks the order of all messages, and that each came once.
fn check_messages<T: Transport>(seats: &[Seat<T>]) {
    for seat in seats {
        for (from, sender) in seats.iter().enumerate() {
            let sent = (0..COUNT).map(|count| message(from, count));
            let heard = seat.received.iter().filter(|it| it.from == sender.id());
            assert!(heard.map(|it| it.bytes.clone()).eq(sent), "messages of {from}");
        }
        let total = |seat: &Seat<T>| {
            let total = seat.received.iter().filter(|it| it.is_total);
            total.map(|it| it.bytes.clone()).collect::<Vec<_>>()
        };
        assert!(total(seat) == total(&seats[0]), "one order for all");
    }
}

/// A member that comes late is given the state, and every message after it.
fn a_late_joiner_is_given_the_state<T: Transport>(open: impl Fn() -> T) {
    let with_state = |name| {
        let mut options = options(name);
        options.settings.state = true;
        options
    };
    let mut seats = vec![Seat::join(open(), with_state("ann"))];
    until_together(&mut seats);
    seats.push(Seat::join(open(), with_state("ben")));
    until_together(&mut seats);
    until("ben's state", &mut seats, |seats| seats[1].state.is_some());
    for count in 0..COUNT {
        send(&mut seats, 0, &message(0, count), Order::Sender);
        send(&mut seats, 1, &message(1, count), Order::Sender);
        if count == COUNT / 3 {
            seats.push(Seat::join(open(), with_state("cas")));
        }
    }
    until_together(&mut seats);
    until("cas's state", &mut seats, |seats| seats[2].state.is_some());
    send(&mut seats, 0, b"the last", Order::Sender);
    // Messages of different senders come in any order: another's may come after the last.
    let all = 2 * COUNT as usize + 1;
    let has_all = |seat: &Seat<T>| {
        let given = seat.state.as_deref().map_or(0, |state| Seat::<T>::split(state).len());
        given + seat.received.len() >= all
    };
    until("all messages", &mut seats, |seats| seats.iter().all(has_all));
    let mut expected = Seat::<T>::split(&seats[0].history());
    assert_eq!(expected.len(), all);
    expected.sort();
    for seat in &seats[1..] {
        let mut heard = Seat::<T>::split(&seat.history());
        heard.sort();
        assert!(heard == expected, "state and messages are all: {}", heard.len());
    }
}

pub(crate) fn threads() -> Domain {
    let settings = DomainSettings {
        visibility: Visibility::Process,
        directory: format!("group-{:?}", std::thread::current().id()).into(),
        ..DomainSettings::default()
    };
    Domain::open(settings).expect("a domain")
}

fn shm(directory: &TempDir) -> Domain {
    let settings = DomainSettings {
        directory: directory.path().join("domain"),
        liveness: Duration::from_millis(50),
        slow_consumer: SlowConsumerPolicy::EvictAfter(Duration::from_millis(500)),
        local_join: false,
        ..DomainSettings::default()
    };
    Domain::open(settings).expect("a domain")
}

/// Multicast groups that no other test of this run, and no other run at this time, speaks in.
pub(crate) fn network() -> NetSettings {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let next = NEXT.fetch_add(2, Ordering::Relaxed);
    let run = std::process::id() as u16;
    let address = [239, 194, (run >> 8) as u8, run as u8];
    let port = 20_000 + next;
    NetSettings {
        group: SocketAddr::from((address, port)),
        resolver_group: Some(SocketAddr::from((address, port + 1))),
        ..NetSettings::default()
    }
}

pub(crate) fn over(settings: &NetSettings, kind: TransportKind) -> NetTransport {
    NetTransport::new(Network::open(settings.clone()).expect("a network"), kind)
}

pub(crate) const LOOPBACK: Option<IpAddr> = Some(IpAddr::V4(Ipv4Addr::LOCALHOST));

#[test]
fn members_hear_all_between_threads() {
    let domain = threads();
    members_hear_all(|| domain.clone(), None);
}

#[test]
fn members_hear_all_in_shared_memory() {
    let directory = TempDir::new_in("/dev/shm").expect("a directory");
    members_hear_all(|| shm(&directory), None);
}

#[test]
fn members_hear_all_by_multicast() {
    let settings = network();
    members_hear_all(|| over(&settings, TransportKind::Rm), LOOPBACK);
}

#[test]
fn members_hear_all_by_unicast() {
    let settings = network();
    members_hear_all(|| over(&settings, TransportKind::Ru), LOOPBACK);
}

#[test]
fn members_hear_all_by_tcp() {
    let settings = network();
    members_hear_all(|| over(&settings, TransportKind::Tcp), LOOPBACK);
}

#[test]
fn a_late_joiner_is_given_the_state_between_threads() {
    let domain = threads();
    a_late_joiner_is_given_the_state(|| domain.clone());
}

#[test]
fn a_late_joiner_is_given_the_state_in_shared_memory() {
    let directory = TempDir::new_in("/dev/shm").expect("a directory");
    a_late_joiner_is_given_the_state(|| shm(&directory));
}

#[test]
fn a_late_joiner_is_given_the_state_by_tcp() {
    let settings = network();
    a_late_joiner_is_given_the_state(|| over(&settings, TransportKind::Tcp));
}

#[test]
fn a_late_joiner_is_given_the_state_by_multicast() {
    let settings = network();
    a_late_joiner_is_given_the_state(|| over(&settings, TransportKind::Rm));
}

/// Members with the key have their group, those without it another one.
#[test]
fn members_without_the_key_neither_join_nor_read() {
    let domain = threads();
    let with = |name: &str, key: &str| {
        let mut options = options(name);
        options.keys = Some(SharedKeys::parse(&key.repeat(32)).expect("a key"));
        Seat::join(domain.clone(), options)
    };
    let mut seats = vec![with("ann", "0a"), with("ben", "0a")];
    let mut strangers = vec![Seat::join(domain.clone(), options("eve")), with("mal", "0b")];
    until("two members", &mut seats, |seats| {
        let alone = |seat: &Seat<_>| seat.group.has_view() && seat.group.view().members.len() == 1;
        for stranger in &mut strangers {
            stranger.poll();
        }
        seats.iter().all(|seat| seat.group.view().members.len() == 2) && strangers.iter().all(alone)
    });
    for count in 0..COUNT {
        send(&mut seats, 0, &message(0, count), Order::Sender);
        for stranger in &mut strangers {
            stranger.poll();
        }
    }
    until("all messages", &mut seats, |seats| {
        for stranger in &mut strangers {
            stranger.poll();
        }
        seats.iter().all(|seat| seat.received.len() >= COUNT as usize)
    });
    for stranger in &strangers {
        assert!(stranger.received.is_empty());
        assert!(stranger.group.foreign_frames() > 0, "frames came, and were refused");
    }
    // Each learns of the others' keys, and of each reason once.
    let words = ["this member has no key", "group.key_file"];
    let told = strangers.iter().zip(words);
    for (seat, words) in told.chain(seats.iter().map(|seat| (seat, "group.key_file"))) {
        let refused = seat.group.refused_frames();
        assert!(refused.frames > 0 && refused.frames <= seat.group.foreign_frames());
        let reasons: HashSet<_> = refused.hosts.iter().map(|host| host.reason).collect();
        assert!(reasons.iter().any(|reason| reason.contains(words)), "{refused:?}");
        assert_eq!(reasons.len(), refused.hosts.len(), "{refused:?}");
        assert!(refused.hosts.iter().all(|host| host.address.is_none()), "{refused:?}");
    }
}

/// A member alone has credit without end; its own messages wait for its next poll.
#[test]
fn room_follows_a_send_that_was_refused_as_own_messages_wait() {
    let settings = DomainSettings { visibility: Visibility::Process, ..Default::default() };
    let mut options = options("ann");
    options.settings.join_timeout = 1_000_000;
    let mut group = Group::join(Domain::open(settings).unwrap(), "alone", options).unwrap();
    let mut has_view = false;
    while !has_view {
        let work = group.poll(64, |event| has_view |= matches!(event, Event::View(..)));
        group.wait(work);
    }
    let mut sent = 0;
    let refusal = loop {
        match group.try_send(&[0; 10_000], Order::Sender) {
            Ok(_) => sent += 1,
            Err(refusal) => break refusal,
        }
        assert!(sent < 100_000, "no limit");
    };
    assert_eq!(refusal, SendError::NoCredit(group.me().id));
    assert_eq!(group.try_send(&[0; 10_000], Order::Sender), Err(refusal));
    let mut seen = (0, 0);
    group.poll(64, |event| match event {
        Event::Message { .. } => seen.0 += 1,
        Event::Writable => {
            assert_eq!(seen.0, sent, "room comes with the last of them");
            seen.1 += 1;
        }
        _ => {}
    });
    assert_eq!(seen, (sent, 1));
    group.try_send(&[0; 10_000], Order::Sender).expect("room");
}
