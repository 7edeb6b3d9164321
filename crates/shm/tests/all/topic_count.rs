//! The number of topics in the ring, as subscribers see it grow, and shrink by damage.

use lanecast_base::WaitStrategy;
use lanecast_os::event::wait_readable;
use lanecast_shm::{Domain, DomainSettings, DomainSnapshot, Publisher, Subscriber};
use lanecast_transport::{CloseReason, Event, Publish, Subscribe, Transport};
use lanecast_wire::shm::{RING_LIVE_OFFSET, RingLive};
use std::fs::File;
use std::mem::offset_of;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(30);

fn open(directory: &Path, local_join: bool) -> Domain {
    let settings = DomainSettings {
        directory: directory.to_owned(),
        window_bytes: 64 << 10,
        subscriber_wait: WaitStrategy::Park,
        local_join,
        ..DomainSettings::default()
    };
    Domain::open(settings).expect("a domain")
}

fn poll(subscriber: &mut Subscriber) -> Vec<String> {
    let mut events = Vec::new();
    subscriber.poll(64, |event| {
        events.push(match event {
            Event::Joined(stream) => format!("joined {}", stream.topic),
            Event::Left(stream, reason) => format!("left {} {reason}", stream.topic),
            other => format!("{other:?}"),
        });
    });
    events
}

/// Polls until the first stream has joined, and then nothing is left.
fn join(subscriber: &mut Subscriber) {
    let start = Instant::now();
    while subscriber.streams() == 0 {
        assert!(start.elapsed() < LONG, "waited in vain for the stream");
        poll(subscriber);
        std::thread::yield_now();
    }
    while !poll(subscriber).is_empty() {}
}

fn write_topics(directory: &Path, publisher: &Publisher, count: u32) {
    let path = directory.join(format!("{}.ring", publisher.session()));
    let ring = File::options().write(true).open(path).expect("the ring");
    let offset = (RING_LIVE_OFFSET + offset_of!(RingLive, topics)) as u64;
    ring.write_all_at(&count.to_le_bytes(), offset).expect("the count");
}

/// A topic that comes between a poll and the sleep after it is work.
#[test]
fn a_subscriber_does_not_sleep_over_a_new_topic() {
    for local_join in [true, false] {
        let directory = tempfile::tempdir().expect("a directory");
        let domain = open(directory.path(), local_join);
        let mut publisher = domain.publisher("a").expect("a publisher");
        let mut subscriber = domain.subscriber(&["a", "b"]).expect("a subscriber");
        join(&mut subscriber);
        let sleeps = || {
            let look = DomainSnapshot::take(directory.path()).expect("a look");
            look.sessions[0].subscribers[0].sleeps
        };
        let before = sleeps();
        publisher.add_topic("b").expect("a topic");
        subscriber.sleep(LONG);
        assert_eq!(sleeps(), before, "no sleep");
        assert_eq!(poll(&mut subscriber), ["joined b"]);
    }
}

/// A count that shrinks is damage: topics are never taken back. A subscriber that went on would
/// miss later topics, or find news for ever.
#[test]
fn a_count_of_topics_that_shrinks_ends_the_session() {
    for local_join in [true, false] {
        for (raised, then) in [(0, 1), (5, 1), (u32::MAX, 1), (1, 0)] {
            let directory = tempfile::tempdir().expect("a directory");
            let domain = open(directory.path(), local_join);
            let publisher = domain.publisher("a").expect("a publisher");
            let mut subscriber = domain.subscriber(&["a", "b"]).expect("a subscriber");
            join(&mut subscriber);
            write_topics(directory.path(), &publisher, raised);
            let mut events = poll(&mut subscriber);
            write_topics(directory.path(), &publisher, then);
            events.extend(poll(&mut subscriber));
            assert_eq!(events, [format!("left a {}", CloseReason::Damaged)], "{raised} {then}");
            let descriptor = subscriber.wakeup().expect("a descriptor");
            assert_eq!(wait_readable([descriptor], Some(LONG)), [true], "at first");
            while !poll(&mut subscriber).is_empty() {}
        }
    }
}

/// A count beyond the table is taken as the table's length, and no news for ever.
#[test]
fn a_count_of_topics_beyond_the_table_is_no_news_for_ever() {
    for local_join in [true, false] {
        let directory = tempfile::tempdir().expect("a directory");
        let domain = open(directory.path(), local_join);
        let publisher = domain.publisher("a").expect("a publisher");
        let mut subscriber = domain.subscriber(&["a", "b"]).expect("a subscriber");
        subscriber.wakeup().expect("a descriptor");
        join(&mut subscriber);
        write_topics(directory.path(), &publisher, u32::MAX);
        assert!(poll(&mut subscriber).is_empty(), "entries without names");
        assert!(poll(&mut subscriber).is_empty());
        let descriptor = subscriber.wakeup().expect("a descriptor");
        assert_eq!(wait_readable([descriptor], Some(Duration::ZERO)), [false], "no news");
    }
}
