//! Topics with a multicast group of their own.

use lanecast_net::{NetSettings, Network, TopicError, TransportKind};
use lanecast_transport::{Event, Publish, Subscribe};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// No test takes longer.
const LIMIT: Duration = Duration::from_secs(60);

#[test]
fn a_publisher_sends_to_the_group_of_its_first_topic() {
    let run = std::process::id() as u16;
    let group = |port| SocketAddr::from(([239, 200, (run >> 8) as u8, run as u8], port));
    let (all, own) = (group(24_030), group(24_031));
    let settings = NetSettings {
        group: all,
        groups: vec![("prices".into(), all), ("prices".into(), own)],
        resolver_group: Some(group(24_032)),
        liveness: Duration::from_secs(20),
        ..NetSettings::default()
    };
    let network = Network::open(settings.clone()).expect("a network");
    let mut subscriber = network.subscriber(&["prices", "trades"]).expect("a subscriber");
    let mut prices = network.publisher(TransportKind::Rm, "prices").expect("a publisher");
    let mut trades = network.publisher(TransportKind::Rm, "trades").expect("a publisher");
    assert!(prices.source().contains(&own.to_string()), "{}", prices.source());
    assert!(trades.source().contains(&all.to_string()), "{}", trades.source());
    for publisher in [&mut prices, &mut trades] {
        assert!(publisher.wait_for_subscribers(1, LIMIT), "no subscriber joined");
        publisher.try_send(b"1").expect("room");
    }
    let (start, mut came) = (Instant::now(), Vec::new());
    while came.len() < 2 {
        assert!(start.elapsed() < LIMIT, "{came:?}");
        let work = subscriber.poll(8, |event| {
            if let Event::Message(message) = event {
                came.push(message.stream().source.clone());
            }
        });
        subscriber.wait(work);
    }
    assert!(came.contains(&prices.source().to_owned()), "{came:?}");

    let refused = trades.add_topic("prices");
    assert!(
        matches!(refused, Err(TopicError::Group { own: o, group }) if o == own && group == all),
        "{refused:?}"
    );
    assert!(prices.add_topic("quotes").is_ok(), "one without a group goes with the others");
    let unicast = SocketAddr::from(([10, 0, 0, 1], 9));
    let wrong = NetSettings { groups: vec![("prices".into(), unicast)], ..settings };
    assert!(Network::open(wrong).is_err_and(|error| error.to_string().contains("net.groups")));
}
