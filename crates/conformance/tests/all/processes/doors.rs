//! Threads and processes at one session: each comes in by its own door, all read the same.

use super::child::Child;
use super::ledger::{Ledger, message};
use super::{PATIENCE, Scene, until};
use lanecast_shm::{Domain, DomainSettings, Subscriber};
use lanecast_transport::{CloseReason, Event, Publish, Subscribe, Transport};

const MESSAGES: u64 = 5_000;

/// Reads until every stream has left; the streams' sources, and what was seen.
fn read(mut subscriber: Subscriber, streams: usize) -> (Vec<String>, Ledger) {
    let (mut sources, mut ledger, mut left) = (Vec::new(), Ledger::default(), 0);
    while left < streams {
        let work = subscriber.poll(64, |event| {
            ledger.enter(&event).expect("a contract");
            match event {
                Event::Joined(stream) => sources.push(stream.source.clone()),
                Event::Left(..) => left += 1,
                _ => {}
            }
        });
        subscriber.wait(work);
    }
    (sources, ledger)
}

#[test]
fn a_thread_and_a_process_read_one_session() {
    let scene = Scene::new();
    let domain = scene.domain();
    let mut publisher = domain.publisher("t").expect("a publisher");
    let session = publisher.session();
    let inside = domain.subscriber(&["t"]).expect("a subscriber");
    assert_eq!(publisher.subscribers(), 1, "the thread need not be waited for");
    let mut outside = Child::start(&scene.path(), "subscriber streams=1");
    assert!(publisher.wait_for_subscribers(2, PATIENCE));
    let reader = std::thread::spawn(|| read(inside, 1));
    (0..MESSAGES).for_each(|number| publisher.send(&message(number)).expect("room"));
    assert!(publisher.close(PATIENCE).is_complete(), "both have read everything");
    let (sources, ledger) = reader.join().expect("it read");
    assert_eq!(sources, [format!("thread:{session}")]);
    let account = ledger.account(session.0).expect("it had joined");
    assert_eq!((account.first, account.next), (Some(0), MESSAGES));
    assert_eq!(account.left, Some(CloseReason::Closed));
    assert_eq!(outside.tells("source"), format!("shm:{session}"));
    assert_eq!((outside.tells_number("first"), outside.tells_number("next")), (0, MESSAGES));
    outside.ends();
}

#[test]
fn one_subscriber_comes_in_by_both_doors() {
    let scene = Scene::new();
    let domain = scene.domain();
    let subscriber = domain.subscriber(&["t"]).expect("a subscriber");
    let mut near = domain.publisher("t").expect("a publisher");
    let far = Child::start(&scene.path(), "publisher subscribers=1 count=1000");
    let reader = std::thread::spawn(|| read(subscriber, 2));
    (0..MESSAGES).for_each(|number| near.send(&message(number)).expect("room"));
    let session = near.session();
    assert!(near.close(PATIENCE).is_complete());
    assert!(far.ends().contains(&"drained=true".to_owned()));
    let (sources, ledger) = reader.join().expect("it read");
    assert!(sources.contains(&format!("thread:{session}")), "{sources:?}");
    assert_eq!(sources.iter().filter(|source| source.starts_with("shm:")).count(), 1);
    assert_eq!(ledger.account(session.0).expect("it had joined").next, MESSAGES);
}

/// Both doors lead to the same places: none is given away twice, and each that is given back can
/// be taken by anybody.
#[test]
fn places_are_for_all() {
    let scene = Scene::new();
    let settings = DomainSettings { subscribers_max: 2, ..scene.settings() };
    let domain = Domain::open(settings).expect("a domain");
    let mut publisher = domain.publisher("t").expect("a publisher");
    let first = domain.subscriber(&["t"]).expect("a subscriber");
    let mut second = Child::start(&scene.path(), "subscriber streams=1");
    second.tells("joined");
    let mut third = domain.subscriber(&["t"]).expect("a subscriber");
    third.poll(8, |_| {});
    assert_eq!((publisher.subscribers(), third.streams()), (2, 0), "the third is turned away");
    let slots = || scene.session().expect("the session").subscribers;
    let pids: Vec<u32> = slots().iter().map(|reader| reader.process.pid).collect();
    assert_eq!(pids, [std::process::id(), second.pid()]);
    drop(first);
    third.poll(8, |_| {});
    assert_eq!((publisher.subscribers(), third.streams()), (2, 1), "it takes the thread's place");
    second.kill();
    let mut fourth = domain.subscriber(&["t"]).expect("a subscriber");
    until("the dead one's place", || {
        fourth.poll(8, |_| {});
        fourth.streams() == 1
    });
    publisher.send(&message(0)).expect("room");
    assert_eq!(publisher.subscribers(), 2);
}

#[test]
fn a_killed_process_frees_a_publisher_that_has_a_thread_left() {
    let scene = Scene::new();
    let domain = scene.domain();
    let mut publisher = domain.publisher("t").expect("a publisher");
    let inside = domain.subscriber(&["t"]).expect("a subscriber");
    let mut outside = Child::start(&scene.path(), "subscriber read=1");
    assert!(publisher.wait_for_subscribers(2, PATIENCE));
    outside.tells("joined");
    let reader = std::thread::spawn(|| read(inside, 1));
    outside.kill();
    // More than a window: the dead one is in the way, the thread is not.
    (0..MESSAGES).for_each(|number| publisher.send(&message(number)).expect("room"));
    let session = publisher.session().0;
    assert!(!publisher.close(PATIENCE).timed_out(), "the killed one alone has not");
    let (_, ledger) = reader.join().expect("it read");
    let account = ledger.account(session).expect("it had joined");
    assert_eq!((account.first, account.next, account.lost), (Some(0), MESSAGES, false));
}
