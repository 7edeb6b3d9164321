//! Frames that keep the way of messages warm leave in the calls of a publisher whose messages are
//! kept.

use lanecast_net::{NetSettings, NetTransport, Network, TransportKind};
use lanecast_persistence::GroupRule;
use lanecast_store::{PersistentOptions, PersistentPublisher, StoreGroups};
use lanecast_transport::Subscribe;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Heartbeats alone would take longer than `LIMIT` for so many frames.
const FRAMES: u64 = 100;
const HEARTBEAT: Duration = Duration::from_secs(1);
const LIMIT: Duration = Duration::from_secs(40);

#[test]
fn a_publisher_that_is_polled_keeps_the_way_warm() {
    let run = std::process::id() as u16;
    let group = |port| SocketAddr::from(([239, 198, (run >> 8) as u8, run as u8], port));
    let network = Network::open(NetSettings {
        group: group(23_990),
        resolver_group: Some(group(23_991)),
        heartbeat: HEARTBEAT,
        keep_warm: Some(Duration::from_micros(500)),
        ..NetSettings::default()
    });
    let network = network.expect("a network");
    let mut subscriber = network.subscriber(&["orders"]).expect("a subscriber");
    let transport = NetTransport::new(network, TransportKind::Ru);
    // The store is away: no message goes there.
    let groups = StoreGroups::new(vec![vec!["store".to_owned()]], GroupRule::Any).expect("groups");
    let options = PersistentOptions::new(groups);
    let opened = PersistentPublisher::open(&transport, "orders", 7, options);
    let mut publisher = opened.expect("a publisher");
    let (start, mut first) = (Instant::now(), None);
    loop {
        publisher.poll(|_| {});
        subscriber.poll(16, |_| {});
        subscriber.wait_at_most(0, Duration::from_micros(200));
        let frames = publisher.publisher().counters().sent.session_frames;
        if subscriber.streams() > 0 && frames - *first.get_or_insert(frames) >= FRAMES {
            return;
        }
        assert!(start.elapsed() < LIMIT, "{frames} frames");
    }
}
