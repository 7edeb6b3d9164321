//! Requests of a subscriber, over shared memory.

use super::*;
use lanecast::Context;
use lanecast_base::sync::{AtomicU64, Ordering};
use lanecast_filter::FilterLimits;
use lanecast_filter::message_type::MessageType;
use lanecast_transport::Publish;
use lanecast_wire::content::ContentFrame;
use std::collections::BTreeSet;

/// A context of one process and of no other test, whose windows are small and whose sessions have
/// at most `topics_max` topics.
fn context(topics_max: u32) -> Context {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let directory = format!("requests-{}", NEXT.fetch_add(1, Ordering::Relaxed));
    let settings = [("transports", "shm"), ("shm.visibility", "process")];
    let own = [("shm.window", "64KiB"), ("shm.directory", &directory)];
    let settings = settings.into_iter().chain(own);
    let builder = settings.fold(Context::builder(), |builder, (key, value)| {
        builder.set(key, value).expect("a setting")
    });
    let builder = builder.shm(move |settings| settings.topics_max = topics_max);
    builder.build().expect("a context")
}

fn settings(retry_interval: Duration) -> ContentSettings {
    let limits = FilterLimits { length_bytes: 64 << 10, ..FilterLimits::DEFAULT };
    ContentSettings { retry_interval, limits, ..ContentSettings::new(MessageType::Fix) }
}

/// A subscriber to the topics `t.*`, which requests its filter with each poll.
fn of_pattern(context: &Context, filter: &str) -> Subscriber<Context> {
    let patterns = vec![TopicPattern::wildcard("t.*").expect("a pattern")];
    let settings = settings(Duration::ZERO);
    Subscriber::of_patterns(context, (patterns, 100), filter, &settings).expect("a subscriber")
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(60), "not yet: {what}");
    }
}

/// Topics that come and go leave no sessions of requests behind.
#[test]
fn sessions_of_requests_do_not_add_up() {
    let context = context(2);
    let mut subscriber = of_pattern(&context, "/38 = 1");
    let _stays = Transport::publisher(&context, "t.stays?content").expect("a publisher");
    for round in 0..20 {
        let topic = format!("t.{round}?content");
        let publisher = Transport::publisher(&context, &topic).expect("a publisher");
        until("both are joined", || {
            subscriber.poll(64, |_| ());
            subscriber.streams() == 2
        });
        subscriber.poll(64, |_| ());
        drop(publisher);
        until("one has left", || {
            subscriber.poll(64, |_| ());
            subscriber.streams() == 1
        });
        let sessions = subscriber.controls.sessions().len();
        assert!((1..=3).contains(&sessions), "{sessions} sessions in round {round}");
    }
}

/// Publishers that never answer do not take the room of all requests: each has its turn.
#[test]
fn requests_without_room_have_their_turn() {
    const TOPICS: usize = 40;
    let context = context(64);
    let filter = format!("/38 = '{}'", "x".repeat(4_000));
    let mut subscriber = of_pattern(&context, &filter);
    let mut publisher = Transport::publisher(&context, "t.0?content").expect("a publisher");
    for number in 1..TOPICS {
        publisher.add_topic(&format!("t.{number}?content")).expect("a topic");
    }
    let controls: Vec<String> = (0..TOPICS).map(|number| format!("t.{number}?filters")).collect();
    let controls: Vec<&str> = controls.iter().map(|topic| &**topic).collect();
    let mut requests = Transport::subscriber(&context, &controls).expect("a subscriber");
    let mut requested = BTreeSet::new();
    until("each is asked", || {
        subscriber.poll(64, |_| ());
        requests.poll(usize::MAX, |event| {
            if let Event::Message(message) = event {
                let frame = ContentFrame::read(message.bytes());
                let ContentFrame::Wanted { sessions, filter: wanted } = frame.expect("a frame")
                else {
                    panic!("no request")
                };
                assert!(sessions.iter().map(|it| it.get()).eq([publisher.session().0]));
                assert_eq!(wanted, filter);
                requested.insert(message.stream().topic.clone());
            }
        });
        requested.len() == TOPICS
    });
}

/// A filter that no request has room for is refused in words, and not left without an answer.
#[test]
fn a_filter_longer_than_a_message_is_refused() {
    let context = context(64);
    let filter = format!("/38 = '{}'", "x".repeat(9_000));
    let opened = Subscriber::new(&context, "t", &filter, &settings(Duration::ZERO));
    let mut subscriber = opened.expect("a subscriber");
    let _publisher = Transport::publisher(&context, "t?content").expect("a publisher");
    let mut reasons = Vec::new();
    until("it is refused", || {
        subscriber.poll(64, |event| {
            if let Event::FilterRefused(stream, reason) = event {
                reasons.push((stream.topic.clone(), reason.to_owned()));
            }
        });
        !reasons.is_empty()
    });
    subscriber.poll(64, |event| panic!("{event:?}"));
    let [(topic, reason)] = &reasons[..] else { panic!("{reasons:?}") };
    assert_eq!(topic, "t");
    assert!(reason.contains("longer than the transport's longest message"), "{reason}");
    assert!(!subscriber.state.is_requesting());
}

/// A wait ends when a request is due: it may have found no publisher listening.
#[test]
fn waits_end_with_the_next_request() {
    const HOUR: Duration = Duration::from_secs(3_600);
    let context = context(64);
    let opened = Subscriber::new(&context, "t", "/38 = 1", &settings(HOUR));
    let mut subscriber = opened.expect("a subscriber");
    assert_eq!(subscriber.until_request(), Duration::MAX, "there is no publisher");
    let publisher = Transport::publisher(&context, "t?content").expect("a publisher");
    until("it is joined", || {
        subscriber.poll(64, |_| ());
        subscriber.streams() == 1
    });
    let left = subscriber.until_request();
    assert!(!left.is_zero() && left <= HOUR, "{left:?}");
    subscriber.retry_interval = Duration::ZERO;
    assert_eq!(subscriber.until_request(), Duration::ZERO);
    drop(publisher);
    until("it has left", || {
        subscriber.poll(64, |_| ());
        subscriber.streams() == 0
    });
    assert_eq!(subscriber.until_request(), Duration::MAX);
}
