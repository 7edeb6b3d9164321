//! Subscribers that live, but do not read.

use super::child::Child;
use super::ledger::message;
use super::{PATIENCE, Scene, until};
use lanecast_os::process::State;
use lanecast_shm::SlowConsumerPolicy;
use lanecast_transport::{
    ClaimError, DepartureReason, IncompleteReason, Publish, PublisherEvent, Transport,
};
use rustix::process::Signal;
use std::time::Duration;

#[test]
fn a_stopped_subscriber_is_seen_and_waited_for() {
    let scene = Scene::new();
    let mut publisher = scene.domain().publisher("t").expect("a publisher");
    let mut subscriber = Child::start(&scene.path(), "subscriber streams=1");
    assert!(publisher.wait_for_subscribers(1, PATIENCE));
    subscriber.stop();
    let mut number = 0;
    until("it to be seen, stopped and behind", || {
        while publisher.try_send(&message(number)).is_ok() {
            number += 1;
        }
        let report = scene.session().expect("the session");
        let [reader] = report.subscribers.as_slice() else { panic!("one subscriber") };
        assert!(reader.is_alive && !reader.is_evicted);
        assert_eq!(reader.process.pid, subscriber.pid());
        reader.state == Some(State::Stopped) && reader.lag_bytes > 32_000
    });
    let refused = publisher.try_send(&message(number));
    assert!(matches!(refused, Err(ClaimError::BackPressured(_))), "no policy, no eviction");
    subscriber.signal(Signal::CONT);
    publisher.send(&message(number)).expect("room");
    assert!(publisher.close(PATIENCE).is_complete());
    assert_eq!(subscriber.tells("left"), "closed");
    assert_eq!(
        (subscriber.tells_number("first"), subscriber.tells_number("next")),
        (0, number + 1)
    );
    subscriber.ends();
}

/// Waits until `child`, a subscriber, has read everything.
fn until_read(scene: &Scene, child: &Child) {
    until("the other one to have read everything", || {
        let report = scene.session().expect("the session");
        let mut readers = report.subscribers.iter();
        readers.any(|reader| reader.process.pid == child.pid() && reader.lag_bytes == 0)
    });
}

#[test]
fn a_stopped_subscriber_is_evicted_by_policy_and_learns_it() {
    let mut scene = Scene::new();
    scene.slow_consumer = SlowConsumerPolicy::EvictAfter(Duration::from_millis(150));
    let mut publisher = scene.domain().publisher("t").expect("a publisher");
    let mut stopped = Child::start(&scene.path(), "subscriber streams=1");
    let mut other = Child::start(&scene.path(), "subscriber streams=1");
    assert!(publisher.wait_for_subscribers(2, PATIENCE));
    stopped.tells("joined");
    stopped.stop();
    // Far more than a window: each send waits for room as long as it takes. Only the stopped one
    // can be in its way then, however long a busy machine keeps the other one waiting.
    for number in 0..1_000 {
        if publisher.try_send(&message(number)).is_err() {
            until_read(&scene, &other);
            publisher.send(&message(number)).expect("room");
        }
    }
    until_read(&scene, &other);
    let report = scene.session().expect("the session");
    let evicted = report.subscribers.iter().find(|reader| reader.is_evicted);
    let evicted = evicted.expect("the stopped one has lost its place");
    assert_eq!((evicted.process.pid, evicted.state), (stopped.pid(), Some(State::Stopped)));
    assert_eq!(report.evictions, 1);
    stopped.signal(Signal::CONT);
    assert!(stopped.tells("lost").contains("evicted"));
    assert_eq!(stopped.tells("left"), "evicted");
    stopped.ends();
    let mut left = Vec::new();
    publisher.poll_events(|event| {
        if let PublisherEvent::SubscriberLeft(info, why) = event {
            left.push((info.pid, why));
        }
    });
    let pid = Some(evicted.process.pid);
    assert_eq!(left, [(pid, DepartureReason::Evicted)]);
    let report = publisher.close(PATIENCE);
    assert!(!report.timed_out() && !report.is_complete(), "{report}");
    let [one] = report.incomplete() else { panic!("one is evicted: {report}") };
    let reason = IncompleteReason::Departed(DepartureReason::Evicted);
    assert_eq!((one.subscriber.pid, one.reason, report.complete()), (pid, reason, 1));
    assert_eq!(other.tells("left"), "closed");
    assert_eq!((other.tells_number("first"), other.tells_number("next")), (0, 1_000));
    other.ends();
}

#[test]
fn a_message_in_hand_stays_whole_through_an_eviction() {
    let mut scene = Scene::new();
    scene.slow_consumer = SlowConsumerPolicy::EvictAfter(Duration::from_millis(150));
    let mut publisher = scene.domain().publisher("t").expect("a publisher");
    let mut holder = Child::start(&scene.path(), "holder");
    assert!(publisher.wait_for_subscribers(1, PATIENCE));
    publisher.send(&message(0)).expect("room");
    assert_eq!(holder.tells("whole"), "true");
    // More than a window: where the message stood in the ring is written over.
    (1..500).for_each(|number| publisher.send(&message(number)).expect("room"));
    assert_eq!(scene.session().expect("the session").evictions, 1);
    holder.say("go on");
    assert_eq!(holder.tells("intact"), "true");
    assert_eq!(holder.tells("after"), "held,lost,left");
    holder.ends();
}
