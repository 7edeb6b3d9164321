//! The descriptor of a publisher that serves filters: of two sessions, whose claims are refused one
//! by one.

use crate::stage::{Stage, until};
use lanecast::{
    Batch, Claim, ClaimError, Event, FilterablePublisher, FilteredSubscriber, Publish, Subscribe,
    Subscriber, TopicId,
};
use lanecast_os::event::wait_readable;
use std::time::Duration;

/// A message that matches if `matching`, of some length.
fn body(matching: bool, length: usize) -> Vec<u8> {
    format!("38={}\u{1}58={}\u{1}", u8::from(matching), "x".repeat(length)).into_bytes()
}

fn read(subscriber: &mut impl Subscribe) -> usize {
    subscriber.poll(64, |event| match event {
        Event::Lost(_) | Event::Left(..) | Event::FilterInactive(_) => panic!("{event:?}"),
        _ => {}
    })
}

fn is_readable(publisher: &mut FilterablePublisher, limit: Duration) -> bool {
    let descriptor = publisher.wakeup().expect("a descriptor");
    wait_readable([descriptor], Some(limit)) == [true]
}

/// Offers a message; returns whether it is refused for want of room.
fn is_refused(publisher: &mut FilterablePublisher, bytes: &[u8]) -> bool {
    match publisher.try_send(bytes) {
        Ok(()) => false,
        Err(ClaimError::BackPressured(_)) => true,
        Err(other) => panic!("{other}"),
    }
}

/// Offers a message until it is refused for good: what is sent still may make room.
fn fill(publisher: &mut FilterablePublisher, bytes: &[u8]) {
    until("a full window", || {
        is_refused(publisher, bytes) && !is_readable(publisher, Duration::from_millis(20))
    });
}

fn meet(stage: &Stage) -> (FilterablePublisher, FilteredSubscriber) {
    let mut publisher =
        stage.publishers.topic("market").filterable().publisher().expect("a publisher");
    let mut filtered =
        stage.subscribers.topic("market").filter("/38 = 1").subscriber().expect("a subscriber");
    until("the filter is active", || {
        publisher.serve_filters();
        read(&mut filtered);
        filtered.active_streams() == 1
    });
    assert!(!is_readable(&mut publisher, Duration::ZERO), "nothing was refused");
    (publisher, filtered)
}

/// Room in one session, while the other refuses: a loop that claims each time it is woken sleeps.
fn a_loop_sleeps_while_either_session_is_full(stage: &Stage) {
    let (mut publisher, mut filtered) = meet(stage);
    let mut plain = stage.subscribers.subscriber("market").expect("a subscriber");
    until("the plain one is there", || {
        publisher.serve_filters();
        read(&mut plain);
        publisher.subscribers() == 2
    });
    let (long, short) = (body(true, publisher.longest_message() - 100), body(false, 100));
    until("no room for matching messages", || {
        let refused = is_refused(&mut publisher, &long);
        while read(&mut plain) > 0 {}
        refused && !is_readable(&mut publisher, Duration::from_millis(20))
    });
    // A short one that does not match needs little room there.
    fill(&mut publisher, &short);
    until("all is read without a filter", || {
        while read(&mut plain) > 0 {}
        is_readable(&mut publisher, Duration::from_millis(20))
    });
    until("a claim that is refused with the descriptor unreadable", || {
        assert!(is_refused(&mut publisher, &long), "the filtered one has not read");
        !is_readable(&mut publisher, Duration::from_millis(20))
    });
    until("room for the long one", || {
        read(&mut filtered);
        is_readable(&mut publisher, Duration::ZERO) && !is_refused(&mut publisher, &long)
    });
    assert!(!is_readable(&mut publisher, Duration::from_millis(20)), "nothing is refused");
}

/// A filter is gone for which a message was refused: no message needs that room any more.
fn a_loop_sleeps_after_the_last_filter_is_gone(stage: &Stage) {
    let (mut publisher, filtered) = meet(stage);
    let long = body(true, 1_500);
    fill(&mut publisher, &long);
    drop(filtered);
    until("there is no filter", || {
        publisher.serve_filters();
        publisher.filters() == 0
    });
    until("a claim with the descriptor unreadable", || {
        !is_refused(&mut publisher, &long)
            && !is_readable(&mut publisher, Duration::from_millis(20))
    });
}

/// A subscriber of a topic that reads nothing until it is asked to.
fn plain(stage: &Stage, publisher: &mut FilterablePublisher, topic: &str) -> Subscriber {
    let before = publisher.subscribers();
    let mut plain = stage.subscribers.subscriber(topic).expect("a subscriber");
    until("it is there", || {
        publisher.serve_filters();
        read(&mut plain);
        publisher.subscribers() > before
    });
    plain
}

/// A batch is refused for want of room for matching messages, which is there again; messages that
/// do not match fill the other session.
fn a_loop_sleeps_after_a_batch_was_refused(stage: &Stage) {
    let (mut publisher, mut filtered) = meet(stage);
    let mut plain = plain(stage, &mut publisher, "market");
    let (long, short) = (body(true, 1_500), body(false, 100));
    (0..10).for_each(|_| publisher.try_send(&long).expect("room"));
    until("all is read without a filter", || {
        while read(&mut plain) > 0 {}
        let refused = is_refused(&mut publisher, &short);
        !refused && !is_readable(&mut publisher, Duration::from_millis(20))
    });
    publisher.try_claim(short.len()).expect("room").abort();
    let mut batch = publisher.batch();
    while batch.try_add(TopicId::FIRST, long.len()).is_ok() {}
    drop(batch);
    until("the room is there again", || {
        read(&mut filtered);
        is_readable(&mut publisher, Duration::from_millis(20))
    });
    fill(&mut publisher, &short);
}

/// A message is refused for want of room for matching messages, which is there again; messages on
/// another topic fill the other session.
fn a_loop_sleeps_while_another_topic_is_full(stage: &Stage) {
    let (mut publisher, mut filtered) = meet(stage);
    let other = publisher.add_topic("elsewhere").expect("a topic");
    let _unread = plain(stage, &mut publisher, "elsewhere");
    let long = body(true, 1_500);
    fill(&mut publisher, &long);
    until("the room is there again", || {
        read(&mut filtered);
        is_readable(&mut publisher, Duration::from_millis(20))
    });
    until("the other topic is full", || {
        let sent = publisher.try_send_on(other, &long);
        sent.is_err() && !is_readable(&mut publisher, Duration::from_millis(20))
    });
}

macro_rules! over_each_transport {
    ($($transports:ident: $name:literal $(with $own:expr)?,)*) => {
        $(mod $transports {
            use super::Stage;

            fn stage() -> Stage {
                Stage::with($name, &[$($own)?])
            }

            #[test]
            fn a_loop_sleeps_while_either_session_is_full() {
                super::a_loop_sleeps_while_either_session_is_full(&stage());
            }

            #[test]
            fn a_loop_sleeps_after_the_last_filter_is_gone() {
                super::a_loop_sleeps_after_the_last_filter_is_gone(&stage());
            }

            #[test]
            fn a_loop_sleeps_after_a_batch_was_refused() {
                super::a_loop_sleeps_after_a_batch_was_refused(&Stage::new($name));
            }

            #[test]
            fn a_loop_sleeps_while_another_topic_is_full() {
                super::a_loop_sleeps_while_another_topic_is_full(&Stage::new($name));
            }
        })*
    };
}

// A message over tcp takes the room of whole frames, a short one as much as any that fits in one.
// In a window of 64 KiB none is longer than a frame, so that a short one would be refused with the
// long one.
over_each_transport! {
    threads: "threads",
    shm: "shm",
    rm: "rm",
    ru: "ru",
    tcp: "tcp" with ("net.window", "1MiB"),
    shm_and_ru: "shm+ru",
}
