//! Frames that keep the way of messages warm leave in silence over every transport, in the thread
//! that sends messages: the one that polls the publisher, or a background thread.

use crate::transports::groups;
use lanecast_net::{NetSettings, Network, Publisher, ThreadingMode, TransportKind};
use lanecast_transport::{Event, Publish, Subscribe};
use std::time::{Duration, Instant};

/// Heartbeats alone would take longer than `LIMIT` for so many frames.
const FRAMES: u64 = 100;
const HEARTBEAT: Duration = Duration::from_secs(1);
const LIMIT: Duration = Duration::from_secs(40);

fn frames(publisher: &mut Publisher) -> u64 {
    publisher.counters().sent.session_frames
}

fn keeps_warm(threading: ThreadingMode) {
    let (group, resolver_group) = groups();
    let network = Network::open(NetSettings {
        group,
        resolver_group: Some(resolver_group),
        heartbeat: HEARTBEAT,
        keep_warm: Some(Duration::from_micros(500)),
        threading,
        ..NetSettings::default()
    });
    let network = network.expect("a network");
    for kind in TransportKind::ALL {
        let mut subscriber = network.subscriber(&["prices"]).expect("a subscriber");
        let mut publisher = network.publisher(kind, "prices").expect("a publisher");
        assert!(publisher.wait_for_subscribers(1, LIMIT), "not joined by {kind}");
        let (start, mut read) = (Instant::now(), 0);
        for number in 1..=3 {
            let before = frames(&mut publisher);
            while frames(&mut publisher) < before + FRAMES {
                let so_far = frames(&mut publisher) - before;
                assert!(start.elapsed() < LIMIT, "{so_far} frames by {kind}, {threading:?}");
                if threading == ThreadingMode::Caller {
                    publisher.poll_events(|_| {});
                }
                subscriber.poll(16, |event| assert!(!matches!(event, Event::Lost(_))));
                subscriber.wait_at_most(0, Duration::from_micros(200));
            }
            publisher.send(b"gold").expect("room");
            while read < number {
                assert!(start.elapsed() < LIMIT, "message {number} by {kind}");
                subscriber.poll(16, |event| read += u64::from(matches!(event, Event::Message(_))));
            }
        }
        assert_eq!(subscriber.counters().missing, 0, "{kind}");
    }
}

#[test]
fn a_thread_that_polls_its_publisher_keeps_the_way_warm() {
    keeps_warm(ThreadingMode::Caller);
}

#[test]
fn a_background_thread_that_sends_keeps_the_way_warm() {
    keeps_warm(ThreadingMode::Thread);
}
