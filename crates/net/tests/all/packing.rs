//! Messages that a program packs leave together, and do not wait for it for ever.

use lanecast_net::{NetSettings, Network, Publisher, Subscriber, TransportKind};
use lanecast_transport::{Event, Publish, Subscribe};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// No test takes longer.
const LIMIT: Duration = Duration::from_secs(30);
const MESSAGES: usize = 100;

fn joined(kind: TransportKind, port: u16) -> (Publisher, Subscriber) {
    let run = std::process::id() as u16;
    let address = [239, 198, (run >> 8) as u8, run as u8];
    let network = Network::open(NetSettings {
        group: SocketAddr::from((address, port)),
        resolver_group: Some(SocketAddr::from((address, port + 1))),
        ..NetSettings::default()
    });
    let network = network.expect("a network");
    let subscriber = network.subscriber(&["prices"]).expect("a subscriber");
    let mut publisher = network.publisher(kind, "prices").expect("a publisher");
    assert!(publisher.wait_for_subscribers(1, LIMIT), "not joined");
    (publisher, subscriber)
}

/// Reads until all messages have come, in their order.
fn read_all(subscriber: &mut Subscriber) {
    let (start, mut came) = (Instant::now(), 0);
    while came < MESSAGES {
        assert!(start.elapsed() < LIMIT, "{came} messages");
        let work = subscriber.poll(64, |event| match event {
            Event::Message(message) => {
                assert_eq!(message.bytes(), [came as u8; 10]);
                came += 1;
            }
            Event::Lost(gap) => panic!("lost {gap:?}"),
            _ => {}
        });
        subscriber.wait(work);
    }
}

fn send_all(publisher: &mut Publisher) {
    for number in 0..MESSAGES {
        publisher.try_send(&[number as u8; 10]).expect("room");
    }
}

fn leave_together(kind: TransportKind, port: u16) {
    let (mut publisher, mut subscriber) = joined(kind, port);
    publisher.pack();
    send_all(&mut publisher);
    publisher.send_packed();
    read_all(&mut subscriber);
    let datagrams = publisher.counters().sent.datagrams;
    // The conductor may have stepped in for a thread that lost its CPU.
    assert!(datagrams < MESSAGES as u64 / 2, "{kind}: {datagrams} datagrams");
    // From here on each leaves at once again.
    send_all(&mut publisher);
    read_all(&mut subscriber);
    publisher.send_packed();
}

#[test]
fn packed_messages_leave_together() {
    for (kind, port) in
        [(TransportKind::Rm, 24_100), (TransportKind::Ru, 24_102), (TransportKind::Tcp, 24_104)]
    {
        leave_together(kind, port);
    }
}

/// The background thread sends for a program that packs and stays away; the batch goes on when the
/// program returns.
#[test]
fn packed_messages_do_not_wait_for_an_absent_program() {
    for (kind, port) in
        [(TransportKind::Rm, 24_106), (TransportKind::Ru, 24_108), (TransportKind::Tcp, 24_110)]
    {
        let (mut publisher, mut subscriber) = joined(kind, port);
        publisher.pack();
        send_all(&mut publisher);
        read_all(&mut subscriber);
        let before = publisher.counters().sent.datagrams;
        send_all(&mut publisher);
        read_all(&mut subscriber);
        let datagrams = publisher.counters().sent.datagrams - before;
        // Fewer than leave one by one before a stream is noticed; the thread may lose its CPU.
        assert!(datagrams < MESSAGES as u64 / 10, "{kind}: {datagrams} datagrams");
    }
}
