//! Jumbo frames: where every link carries longer datagrams, a long message takes fewer of them.

use lanecast_net::{NetSettings, Network, TransportKind};
use lanecast_transport::{Event, Publish, Subscribe};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// No test takes longer.
const LIMIT: Duration = Duration::from_secs(60);
const MESSAGES: u64 = 50;

/// Number of datagrams for messages of 8,000 bytes.
fn datagrams(kind: TransportKind, port: u16, datagram_bytes: usize) -> u64 {
    let run = std::process::id() as u16;
    let address = [239, 199, (run >> 8) as u8, run as u8];
    let network = Network::open(NetSettings {
        group: SocketAddr::from((address, port)),
        resolver_group: Some(SocketAddr::from((address, port + 1))),
        datagram_bytes: Some(datagram_bytes),
        // So long that hardly a heartbeat comes in between.
        liveness: Duration::from_secs(20),
        heartbeat: Duration::from_secs(6),
        ..NetSettings::default()
    });
    let network = network.expect("a network");
    let mut subscriber = network.subscriber(&["prices"]).expect("a subscriber");
    let mut publisher = network.publisher(kind, "prices").expect("a publisher");
    assert!(publisher.wait_for_subscribers(1, LIMIT), "no subscriber joined");
    let before = publisher.counters().sent.datagrams;
    let (start, mut came) = (Instant::now(), 0);
    for number in 1..=MESSAGES {
        publisher.try_send(&[number as u8; 8_000]).expect("the window is large");
        publisher.flush();
        while came < number {
            assert!(start.elapsed() < LIMIT, "{kind}: {came} messages");
            let work = subscriber.poll(64, |event| {
                if let Event::Message(message) = event {
                    assert!(message.bytes() == [(came + 1) as u8; 8_000]);
                    came += 1;
                }
            });
            subscriber.wait(work);
        }
    }
    publisher.counters().sent.datagrams - before
}

#[test]
fn a_long_message_takes_one_datagram_in_place_of_six() {
    for (kind, port) in [(TransportKind::Ru, 24_020), (TransportKind::Rm, 24_024)] {
        let usual = datagrams(kind, port, 1_472);
        let jumbo = datagrams(kind, port + 2, 8_972);
        assert!(usual >= 6 * MESSAGES && jumbo < 2 * MESSAGES, "{kind}: {usual}, {jumbo}");
    }
}
