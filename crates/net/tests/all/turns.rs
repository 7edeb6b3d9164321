//! A publisher that never pauses hides no other one.

use lanecast_net::{NetSettings, NetTransport, Network, Subscriber, TransportKind};
use lanecast_transport::{Event, Publish, Subscribe, Transport};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(30);
/// Time that the handler takes for a message: longer than sending it.
const WORK: Duration = Duration::from_micros(20);
/// Messages of the flood within which the other's message has to come: far more than a fair turn
/// takes, which is one read of each socket.
const FLOOD_MAX: u32 = 50_000;

fn network(number: u16) -> Network {
    let run = std::process::id() as u16;
    let address = [239, 194, (run >> 8) as u8, run as u8];
    let network = Network::open(NetSettings {
        group: SocketAddr::from((address, 21_060 + 2 * number)),
        resolver_group: Some(SocketAddr::from((address, 21_061 + 2 * number))),
        ..NetSettings::default()
    });
    network.expect("a network")
}

/// Reads until `done`, given the first byte of each message.
fn read_until(subscriber: &mut Subscriber, mut done: impl FnMut(u8) -> bool) {
    let start = Instant::now();
    let mut is_done = false;
    while !is_done {
        let work = subscriber.poll(64, |event| {
            let Event::Message(message) = event else { return };
            let begin = Instant::now();
            while begin.elapsed() < WORK {
                std::hint::spin_loop();
            }
            is_done |= done(message.bytes()[0]);
        });
        subscriber.wait(work);
        assert!(start.elapsed() < LIMIT, "nothing came");
    }
}

fn is_read_beside(number: u16, flood: TransportKind, other: TransportKind) {
    let network = network(number);
    let mut subscriber = network.subscriber(&["t"]).expect("a subscriber");
    // The one that is found first is the first to be read.
    let mut first = NetTransport::new(network.clone(), flood).publisher("t").expect("a publisher");
    assert!(first.wait_for_subscribers(1, LIMIT), "not joined");
    let mut second = NetTransport::new(network, other).publisher("t").expect("a publisher");
    assert!(second.wait_for_subscribers(1, LIMIT), "not joined");
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                // Refused while the window is full: the reader is slower.
                let _ = first.try_send(&[1; 1_000]);
            }
        });
        let mut before = 0;
        read_until(&mut subscriber, |_| {
            before += 1;
            before == 1_000
        });
        second.send(&[2]).expect("room");
        let mut seen = 0;
        read_until(&mut subscriber, |byte| {
            seen += 1;
            byte == 2 || seen > FLOOD_MAX
        });
        stop.store(true, Ordering::Relaxed);
        assert!(seen <= FLOOD_MAX, "{other} beside {flood}: not among {seen} messages");
        println!("{other} beside {flood}: after {seen} messages");
    });
}

#[test]
fn a_flood_by_tcp_hides_nothing() {
    for (number, other) in (0..).zip(TransportKind::ALL) {
        is_read_beside(number, TransportKind::Tcp, other);
    }
}

#[test]
fn a_flood_by_multicast_hides_nothing() {
    for (number, other) in (3..).zip(TransportKind::ALL) {
        is_read_beside(number, TransportKind::Rm, other);
    }
}

#[test]
fn a_flood_by_unicast_hides_nothing() {
    for (number, other) in (6..).zip(TransportKind::ALL) {
        is_read_beside(number, TransportKind::Ru, other);
    }
}
