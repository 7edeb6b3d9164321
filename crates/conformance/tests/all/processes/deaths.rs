//! Ends, good and bad, of one process as the others see them.

use super::child::Child;
use super::ledger::{Ledger, fill, message};
use super::{PATIENCE, Scene, until};
use lanecast_shm::{Domain, Subscriber, clean, inspect};
use lanecast_transport::{
    CloseReason, DepartureReason, IncompleteReason, Publish, PublisherEvent, Subscribe, Transport,
};

#[test]
fn order_is_kept_between_processes() {
    let scene = Scene::new();
    for publisher_first in [true, false] {
        let publisher = |scene: &Scene| {
            let mut child = Child::start(&scene.path(), "publisher subscribers=1 count=20000");
            child.tells("session");
            child
        };
        let subscriber = |scene: &Scene| {
            let mut child = Child::start(&scene.path(), "subscriber streams=1");
            child.tells("began");
            child
        };
        let (publisher, mut subscriber) = if publisher_first {
            let publisher = publisher(&scene);
            (publisher, subscriber(&scene))
        } else {
            let subscriber = subscriber(&scene);
            (publisher(&scene), subscriber)
        };
        assert_eq!(subscriber.tells("left"), "closed");
        assert_eq!(
            (subscriber.tells_number("first"), subscriber.tells_number("next")),
            (0, 20_000)
        );
        let told = publisher.ends();
        assert!(told.contains(&"drained=true".to_owned()), "{told:?}");
        subscriber.ends();
    }
    assert!(inspect(&scene.path()).expect("the directory").is_empty(), "nothing is left");
}

#[test]
fn a_killed_subscriber_frees_a_blocked_publisher() {
    let scene = Scene::new();
    let mut publisher = scene.domain().publisher("t").expect("a publisher");
    let mut times = Vec::new();
    for round in 0..3 {
        let mut subscriber = Child::start(&scene.path(), "subscriber read=5");
        assert!(publisher.wait_for_subscribers(1, PATIENCE));
        let mut number = 0;
        fill(&mut publisher, &mut number);
        subscriber.tells("joined");
        // It has read its five messages by the time that nothing fits any more.
        until("a window full for good", || {
            let before = number;
            fill(&mut publisher, &mut number);
            let lag = scene.session().map_or(0, |session| session.subscribers[0].lag_bytes);
            before == number && lag > 60_000
        });
        subscriber.kill();
        let start = std::time::Instant::now();
        if round == 0 {
            until("room", || publisher.try_send(&message(number)).is_ok());
        } else {
            publisher.send(&message(number)).expect("room");
        }
        times.push(start.elapsed());
        assert!(start.elapsed() < PATIENCE, "freed after {:?}", start.elapsed());
        assert_eq!(publisher.subscribers(), 0);
        let mut events = Vec::new();
        publisher.poll_events(|event| match event {
            PublisherEvent::SubscriberJoined(info) => events.push((info.pid, None)),
            PublisherEvent::SubscriberLeft(info, why) => events.push((info.pid, Some(why))),
            _ => {}
        });
        let pid = Some(subscriber.pid());
        assert_eq!(events, [(pid, None), (pid, Some(DepartureReason::Died))]);
        let report = publisher.drain(PATIENCE);
        assert!(!report.timed_out() && !report.is_complete(), "{report}");
        let dead = report.incomplete().last().expect("the dead one");
        assert_eq!(dead.subscriber.pid, pid, "{report}");
        assert_eq!(dead.reason, IncompleteReason::Departed(DepartureReason::Died));
        assert_eq!((report.complete(), report.incomplete().len()), (0, round + 1), "{report}");
    }
    println!("freed after {times:?}, liveness {:?}", scene.liveness);
    assert_eq!(scene.session().expect("the session").evictions, 0, "the dead are no evictions");
}

#[test]
fn a_killed_publisher_leaves_the_same_to_all() {
    let scene = Scene::new();
    let mut subscribers = [(); 3].map(|()| Child::start(&scene.path(), "subscriber streams=1"));
    let mut publisher = Child::start(&scene.path(), "publisher subscribers=3");
    publisher.tells("publishing");
    until("some windows", || scene.session().is_some_and(|session| session.messages > 2_000));
    // Stopped first, so that its counter can be read before its death.
    publisher.stop();
    let counted = scene.session().expect("the session").messages;
    publisher.kill();
    let ends = subscribers.each_mut().map(|subscriber| {
        assert_eq!(subscriber.tells("left"), "died");
        (subscriber.tells_number("first"), subscriber.tells_number("next"))
    });
    assert_eq!(ends[0].0, 0);
    assert!(ends.iter().all(|end| *end == ends[0]), "{ends:?}");
    let next = ends[0].1;
    assert!(next == counted || next == counted + 1, "{next} read, {counted} counted");
    for subscriber in subscribers {
        let told = subscriber.ends();
        let count = |key: &str| told.iter().filter(|line| line.starts_with(key)).count();
        assert_eq!((count("joined="), count("left="), count("lost=")), (1, 1, 0), "{told:?}");
    }
}

#[test]
fn a_restarted_publisher_is_a_new_stream() {
    let scene = Scene::new();
    let mut subscriber = Child::start(&scene.path(), "subscriber");
    let mut sessions = Vec::new();
    for _ in 0..3 {
        let mut publisher = Child::start(&scene.path(), "publisher subscribers=1");
        let session = publisher.tells("session");
        assert_eq!(subscriber.tells("joined"), session);
        publisher.tells("publishing");
        publisher.kill();
        assert_eq!(subscriber.tells("left"), "died");
        assert!(!sessions.contains(&session));
        sessions.push(session);
    }
    subscriber.say("stop");
    subscriber.ends();
}

#[test]
fn resources_of_the_dead_are_reclaimed() {
    let scene = Scene::new();
    let mut publisher = Child::start(&scene.path(), "publisher");
    publisher.tells("publishing");
    assert!(scene.session().expect("the session").is_alive);
    assert!(clean(&scene.path(), false).expect("the directory").is_empty(), "it lives");
    publisher.kill();
    assert!(!scene.session().expect("its files are there").is_alive);
    let stale = clean(&scene.path(), true).expect("the directory");
    assert_eq!(stale.len(), 3, "ring, gate and counters: {stale:?}");
    assert!(stale.iter().all(|file| file.path.exists() && file.bytes > 0), "nothing was removed");
    let _domain = scene.domain();
    assert!(stale.iter().all(|file| !file.path.exists()), "the next one removes it");
    assert!(scene.session().is_none());
}

#[test]
fn one_of_three_dies_and_two_see_everything() {
    let scene = Scene::new();
    let mut subscribers = [(); 3].map(|()| Child::start(&scene.path(), "subscriber streams=1"));
    let mut publisher = Child::start(&scene.path(), "publisher subscribers=3");
    publisher.tells("publishing");
    until("some windows", || scene.session().is_some_and(|session| session.messages > 1_000));
    subscribers[1].kill();
    let killed_at = scene.session().expect("the session").messages;
    until("the publisher to go on", || {
        scene.session().is_some_and(|session| session.messages > killed_at + 1_000)
    });
    publisher.say("stop");
    let sent = publisher.tells_number("sent");
    let [first, _, third] = subscribers;
    for mut subscriber in [first, third] {
        assert_eq!(subscriber.tells("left"), "closed");
        assert_eq!((subscriber.tells_number("first"), subscriber.tells_number("next")), (0, sent));
        subscriber.ends();
    }
}

#[test]
fn a_subscriber_here_outlives_a_publisher_there() {
    let scene = Scene::new();
    let domain: Domain = scene.domain();
    let mut subscriber: Subscriber = domain.subscriber(&["t"]).expect("a subscriber");
    let mut publisher = Child::start(&scene.path(), "publisher subscribers=1");
    let session = publisher.tells_number("session");
    let mut ledger = Ledger::default();
    let mut killed = false;
    until("the end of the stream", || {
        let work = subscriber.poll(16, |event| ledger.enter(&event).expect("in order"));
        subscriber.wait(work);
        let account = ledger.account(session);
        if !killed && account.is_some_and(|account| account.next > 1_000) {
            publisher.kill();
            killed = true;
        }
        account.is_some_and(|account| account.left == Some(CloseReason::Died))
    });
    assert_eq!(subscriber.streams(), 0);
}
