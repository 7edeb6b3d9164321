//! A publisher by unicast with one receiver sends by a socket connected to it; receivers that come,
//! leave and take its place are served as ever.

use crate::transports::groups;
use lanecast_net::{NetSettings, NetTransport, Network, TransportKind};
use lanecast_transport::{Event, Publish, Subscribe, Transport};
use std::time::{Duration, Instant};

/// The longest wait for anything.
const PATIENCE: Duration = Duration::from_secs(60);
/// Messages of a round: more than sends before a connection.
const MESSAGES: usize = 50;

/// Ports of the peers of this host's connected sockets at `port`.
fn connected(port: u16) -> Vec<u16> {
    let table = std::fs::read_to_string("/proc/self/net/udp").expect("the system's sockets");
    let port_of = |address: &str| {
        let (_, port) = address.split_once(':').expect("address and port");
        u16::from_str_radix(port, 16).expect("a port")
    };
    let sockets = table.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
    let ends = sockets.map(|words| (port_of(words[1]), port_of(words[2])));
    ends.filter(|(own, peer)| *own == port && *peer != 0).map(|(_, peer)| peer).collect()
}

/// Reads until all messages have come; returns the publisher's port.
fn read(subscriber: &mut impl Subscribe, what: &str) -> u16 {
    let (mut count, mut port, began) = (0, 0, Instant::now());
    while count < MESSAGES {
        subscriber.poll(64, &mut |event: Event<'_>| match event {
            Event::Message(message) => {
                count += 1;
                let source = &message.stream().source;
                port = source.split(':').nth(2).and_then(|it| it.parse().ok()).expect("a port");
            }
            Event::Lost(gap) => panic!("{what}: {gap:?}"),
            _ => {}
        });
        assert!(began.elapsed() < PATIENCE, "{what}: {count} messages");
    }
    port
}

#[test]
fn receivers_come_and_take_its_place() {
    let (group, resolver_group) = groups();
    let network = || {
        let resolver_group = Some(resolver_group);
        let settings = NetSettings { group, resolver_group, ..NetSettings::default() };
        Network::open(settings).expect("a network")
    };
    let publishing = NetTransport::new(network(), TransportKind::Ru);
    let mut publisher = publishing.publisher("prices").expect("a publisher");
    let networks = [network(), network()];
    let [mut first, mut second] =
        networks.each_ref().map(|it| it.subscriber(&["prices"]).expect("a subscriber"));
    drop(second);
    let wait = |publisher: &mut _, count| {
        let joined = Publish::wait_for_subscribers(publisher, count, PATIENCE);
        assert!(joined, "not {count} subscribers");
    };
    wait(&mut publisher, 1);
    let send = |publisher: &mut _| {
        for _ in 0..MESSAGES {
            Publish::try_send(publisher, b"price").expect("room");
        }
    };
    send(&mut publisher);
    let port = read(&mut first, "alone");
    let peers = connected(port);
    assert_eq!(peers.len(), 1, "the only receiver is connected to");
    second = networks[1].subscriber(&["prices"]).expect("a subscriber");
    wait(&mut publisher, 2);
    send(&mut publisher);
    read(&mut first, "the first of two");
    read(&mut second, "the second of two");
    assert_eq!(connected(port).len(), 1, "one socket, however many receivers");
    drop(first);
    let began = Instant::now();
    while publisher.subscribers() > 1 {
        assert!(began.elapsed() < PATIENCE, "it has left");
    }
    send(&mut publisher);
    read(&mut second, "the second alone");
    let now = connected(port);
    assert!(now.len() == 1 && now != peers, "connected to {peers:?} first, then to {now:?}");
}
