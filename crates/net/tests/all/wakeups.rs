//! Subscribers that sleep on their descriptors, or should.

use lanecast_net::{NetSettings, Network, Subscriber, TransportKind};
use lanecast_os::event::wait_readable;
use lanecast_transport::{Event, Publish, Subscribe};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(60);
/// Datagrams of 1,000 that subscribers drop.
const LOSS: u32 = 200;

/// A network with lossy subscribers that wait for every repair.
fn network(number: u16) -> Network {
    let run = std::process::id();
    let address = [239, 193, (run >> 8) as u8, run as u8];
    let network = Network::open(NetSettings {
        group: SocketAddr::from((address, 21_860 + 2 * number)),
        resolver_group: Some(SocketAddr::from((address, 21_861 + 2 * number))),
        artificial_loss: LOSS,
        recovery: LIMIT,
        liveness: Duration::from_secs(20),
        ..NetSettings::default()
    });
    network.expect("a network")
}

/// Polls until the descriptor is unreadable; returns the number of messages.
fn exhaust(subscriber: &mut Subscriber) -> u64 {
    let mut messages = 0;
    let start = Instant::now();
    loop {
        subscriber.poll(64, |event| messages += u64::from(matches!(event, Event::Message(_))));
        let descriptor = subscriber.wakeup().expect("a descriptor");
        if wait_readable([descriptor], Some(Duration::ZERO)) == [false] {
            return messages;
        }
        assert!(start.elapsed() < LIMIT, "it stays readable");
    }
}

/// The owner has armed its descriptor and does something else for long: its repairs are asked for.
fn is_served_while_late(number: u16, kind: TransportKind) {
    let network = network(number);
    let mut subscriber = network.subscriber(&["t"]).expect("a subscriber");
    let mut publisher = network.publisher(kind, "t").expect("a publisher");
    let start = Instant::now();
    while publisher.subscribers() == 0 {
        assert!(start.elapsed() < LIMIT, "not joined");
        exhaust(&mut subscriber);
        let _ = publisher.wait_for_subscribers(1, Duration::from_millis(5));
    }
    exhaust(&mut subscriber);
    const MESSAGES: u64 = 300;
    // Each in a datagram of its own: some of so many are lost.
    (0..MESSAGES).for_each(|_| publisher.send(&[0; 1_000]).expect("room"));
    let start = Instant::now();
    while publisher.counters().sent.repairs == 0 {
        assert!(start.elapsed() < LIMIT, "no loss was repaired for the owner");
        // In vain: it reads requests meanwhile.
        let _ = publisher.wait_for_subscribers(2, Duration::from_millis(5));
    }
    let (mut messages, start) = (0, Instant::now());
    while messages < MESSAGES {
        assert!(start.elapsed() < LIMIT, "{messages} of {MESSAGES} came");
        let descriptor = subscriber.wakeup().expect("a descriptor");
        assert_eq!(wait_readable([descriptor], Some(LIMIT)), [true], "slept through a message");
        messages += exhaust(&mut subscriber);
    }
}

#[test]
fn the_conductor_serves_an_owner_that_is_late_over_unicast() {
    is_served_while_late(0, TransportKind::Ru);
}

#[test]
fn the_conductor_serves_an_owner_that_is_late_over_multicast() {
    is_served_while_late(1, TransportKind::Rm);
}
