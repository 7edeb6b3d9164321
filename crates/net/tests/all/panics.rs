//! Handlers that panic.

use lanecast_net::{NetSettings, Network, Publisher, Subscriber, TransportKind};
use lanecast_transport::{Event, Publish, Subscribe};
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// Longer than anything takes here, even on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// A panic on the last message of a poll must not keep the publisher waiting: no later poll has a
/// message whose end would report the consumption. A message in one frame leaves the queue after
/// the handler, one reassembled from fragments before it.
#[test]
fn a_message_whose_handler_panicked_counts_as_read() {
    let run = std::process::id() as u16;
    let address = [239, 194, (run >> 8) as u8, run as u8];
    let network = Network::open(NetSettings {
        group: SocketAddr::from((address, 21_040)),
        resolver_group: Some(SocketAddr::from((address, 21_041))),
        ..NetSettings::default()
    });
    let network = network.expect("a network");
    for kind in TransportKind::ALL {
        let topic = kind.name();
        let mut subscriber = network.subscriber(&[topic]).expect("a subscriber");
        let mut publisher = network.publisher(kind, topic).expect("a publisher");
        assert!(publisher.wait_for_subscribers(1, LIMIT), "{kind}: not joined");
        for length in [4, 40_000] {
            panic_on_the_last(kind, &mut publisher, &mut subscriber, length);
        }
    }
}

fn panic_on_the_last(
    kind: TransportKind,
    publisher: &mut Publisher,
    subscriber: &mut Subscriber,
    length: usize,
) {
    publisher.send(&vec![7; length]).expect("room");
    let start = Instant::now();
    let mut poll = || {
        let handler = |event: Event<'_>| match event {
            Event::Message(_) => panic!("expected: a handler that panics"),
            Event::Joined(_) => {}
            other => panic!("{other:?}"),
        };
        catch_unwind(AssertUnwindSafe(|| subscriber.poll(64, handler))).is_err()
    };
    while !poll() {
        assert!(start.elapsed() < LIMIT, "{kind}: no message");
    }
    while publisher.drain(Duration::from_millis(10)).timed_out() {
        assert!(!poll(), "{kind}: the message came again");
        assert!(start.elapsed() < LIMIT, "{kind}: a message of {length} bytes counts as unread");
    }
}
