//! Data rates of publishers.

use lanecast_net::{NetSettings, Network, TransportKind};
use lanecast_transport::{Event, Publish, Subscribe};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// No test takes longer.
const LIMIT: Duration = Duration::from_secs(30);
const RATE: u64 = 1_000_000;
const MESSAGES: usize = 400;

/// Publishes as fast as it can, and says how long it took until all had come.
fn carry(kind: TransportKind, port: u16) -> Duration {
    let run = std::process::id() as u16;
    let address = [239, 197, (run >> 8) as u8, run as u8];
    let network = Network::open(NetSettings {
        group: SocketAddr::from((address, port)),
        resolver_group: Some(SocketAddr::from((address, port + 1))),
        data_rate: Some(RATE),
        ..NetSettings::default()
    });
    let network = network.expect("a network");
    let mut subscriber = network.subscriber(&["prices"]).expect("a subscriber");
    let mut publisher = network.publisher(kind, "prices").expect("a publisher");
    assert!(publisher.wait_for_subscribers(1, LIMIT), "no subscriber joined");
    let start = Instant::now();
    for number in 0..MESSAGES {
        publisher.try_send(&[number as u8; 1_000]).expect("the window is large");
    }
    let mut came = 0;
    while came < MESSAGES {
        assert!(start.elapsed() < LIMIT, "{kind}: {came} messages");
        let work = subscriber.poll(64, |event| match event {
            Event::Message(_) => came += 1,
            Event::Lost(gap) => panic!("{kind}: lost {gap:?}"),
            _ => {}
        });
        subscriber.wait(work);
    }
    start.elapsed()
}

#[test]
fn no_transport_exceeds_it() {
    for (kind, port) in
        [(TransportKind::Rm, 24_000), (TransportKind::Ru, 24_002), (TransportKind::Tcp, 24_004)]
    {
        // 400,000 bytes, of which a burst of 64 KiB and the run that follows it need not wait.
        let least = Duration::from_millis(400 - 66 - 66);
        let took = carry(kind, port);
        assert!(took >= least, "{kind}: {took:?}");
    }
}
