//! Sessions joined again after an eviction.

use lanecast_shm::{Domain, DomainSettings, Publisher, SlowConsumerPolicy, Subscriber};
use lanecast_transport::{CloseReason, Event, Publish, Run, Subscribe, TopicId, Transport};
use std::path::Path;
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(30);

fn open(directory: &Path, local_join: bool) -> Domain {
    let settings = DomainSettings {
        directory: directory.to_owned(),
        window_bytes: 64 << 10,
        liveness: Duration::from_millis(20),
        slow_consumer: SlowConsumerPolicy::EvictAfter(Duration::from_millis(1)),
        local_join,
        ..DomainSettings::default()
    };
    Domain::open(settings).expect("a domain")
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < LONG, "waited in vain for {what}");
        std::thread::yield_now();
    }
}

/// Sends more than the window to a subscriber that does not poll.
fn evict(publisher: &mut Publisher) {
    for _ in 0..20 {
        until("the eviction", || publisher.try_send(&[0; 8_000]).is_ok());
    }
}

/// One event at a time, as text; messages by their topic.
fn take(subscriber: &mut Subscriber) -> Option<String> {
    let run = subscriber.take(1);
    run.iter().next().map(|event| match event {
        Event::Joined(stream) => format!("joined {}", stream.topic),
        Event::Left(stream, CloseReason::Evicted) => format!("left {}", stream.topic),
        Event::Lost(_) => "lost".to_owned(),
        Event::Message(message) => format!("message {}", message.stream().topic),
        other => panic!("{other:?}"),
    })
}

/// The eviction of one session is reported stream by stream: it is joined once, however often and
/// at which of these reports the program asks for it.
#[test]
fn an_evicted_session_is_joined_once() {
    for local_join in [true, false] {
        for asks_at in [&["left a", "left b"][..], &["left a"], &["left b"], &["lost", "left a"]] {
            let directory = tempfile::tempdir().expect("a directory");
            let domain = open(directory.path(), local_join);
            let mut publisher = domain.publisher("a").expect("a publisher");
            let b = publisher.add_topic("b").expect("a topic");
            let mut subscriber = domain.subscriber(&["a", "b"]).expect("a subscriber");
            until("the subscriber", || publisher.subscribers() == 1);
            evict(&mut publisher);
            let (mut joined, mut events) = (0, Vec::new());
            until("both streams anew", || {
                let Some(event) = take(&mut subscriber) else { return false };
                joined += usize::from(event.starts_with("joined"));
                if asks_at.contains(&event.as_str()) {
                    subscriber.rejoin();
                }
                events.push(event);
                joined == 4
            });
            until("one subscriber", || publisher.subscribers() == 1);
            assert_eq!(subscriber.streams(), 2, "{local_join} {asks_at:?}: {events:?}");
            publisher.send_on(TopicId::FIRST, b"one").expect("room");
            publisher.send_on(b, b"two").expect("room");
            let mut messages = Vec::new();
            until("the messages", || {
                messages.extend(take(&mut subscriber));
                messages.len() >= 2
            });
            messages.extend((0..20).filter_map(|_| take(&mut subscriber)));
            assert_eq!(messages, ["message a", "message b"], "{local_join} {asks_at:?}");
        }
    }
}
