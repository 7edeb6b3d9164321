//! Claims that are refused, and the news that there is room for them.

use lanecast_os::event::wait_readable;
use lanecast_shm::{Domain, DomainSettings, Publisher, Visibility};
use lanecast_transport::{Batch, Publish, PublisherEvent, Subscribe, TopicId, Transport};
use std::os::fd::BorrowedFd;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(30);
const WINDOW_BYTES: u64 = 64 << 10;
/// Length of a message: no number of them fills the window to its last bytes.
const BYTES: usize = 1_100;

/// A domain within this process, with the smallest window.
fn open(name: &str) -> Domain {
    let settings = DomainSettings {
        visibility: Visibility::Process,
        directory: name.into(),
        window_bytes: WINDOW_BYTES,
        ..DomainSettings::default()
    };
    Domain::open(settings).expect("a domain")
}

/// Number of times that one poll tells of room.
fn writable(publisher: &mut Publisher) -> usize {
    let mut count = 0;
    publisher.poll_events(|event| count += usize::from(matches!(event, PublisherEvent::Writable)));
    count
}

fn is_readable(descriptor: BorrowedFd<'_>) -> bool {
    wait_readable([descriptor], Some(Duration::ZERO)) == [true]
}

/// Adds messages to a batch until one is refused; publishes the batch, or drops it.
fn fill_batch(publisher: &mut Publisher, publishes: bool) -> usize {
    let mut batch = publisher.batch();
    let mut count = 0;
    while batch.try_add(TopicId::FIRST, BYTES).is_ok() {
        count += 1;
    }
    if publishes { batch.publish() } else { count }
}

fn fill(publisher: &mut Publisher) {
    while publisher.try_send(&[0; BYTES]).is_ok() {}
}

/// The refused message alone needs room, and not once more the batch that it was refused in.
#[test]
fn a_batch_that_took_the_whole_window_is_followed_by_room() {
    let domain = open("whole window");
    let mut publisher = domain.publisher("t").expect("a publisher");
    for (publishes, has_reader) in [(true, false), (false, false), (true, true), (false, true)] {
        let mut reader = has_reader.then(|| domain.subscriber(&["t"]).expect("a subscriber"));
        writable(&mut publisher);
        let count = fill_batch(&mut publisher, publishes);
        assert!(count > 50, "most of the window");
        if let Some(reader) = reader.as_mut().filter(|_| publishes) {
            assert_eq!(writable(&mut publisher), 0, "nothing is read");
            while reader.poll(64, |_| {}) > 0 {}
        }
        assert_eq!(writable(&mut publisher), 1, "published {publishes}, reader {has_reader}");
        publisher.try_send(&[0; BYTES]).expect("room");
    }
}

/// Only the batch's own messages took the room, and only its end frees it.
#[test]
fn the_end_of_a_batch_makes_the_descriptor_readable() {
    let domain = open("end of a batch");
    let mut publisher = domain.publisher("t").expect("a publisher");
    for publishes in [true, false] {
        assert!(!is_readable(publisher.wakeup().expect("a descriptor")));
        fill_batch(&mut publisher, publishes);
        assert!(is_readable(publisher.wakeup().expect("a descriptor")), "published {publishes}");
        publisher.try_send(&[0; BYTES]).expect("room");
    }
    assert!(!is_readable(publisher.wakeup().expect("a descriptor")), "the claim succeeded");
}

#[test]
fn a_claim_that_succeeds_takes_the_refusal_back() {
    for bytes in [BYTES, 1] {
        let domain = open("taken back");
        let mut publisher = domain.publisher("t").expect("a publisher");
        let mut subscriber = domain.subscriber(&["t"]).expect("a subscriber");
        writable(&mut publisher);
        fill(&mut publisher);
        while subscriber.poll(64, |_| {}) > 0 {}
        publisher.try_send(&vec![0; bytes]).expect("all was read");
        assert_eq!(writable(&mut publisher), 0, "of {bytes} bytes: the program has its room");
        fill(&mut publisher);
        while subscriber.poll(64, |_| {}) > 0 {}
        publisher.send(&vec![0; bytes]).expect("all was read");
        assert_eq!(writable(&mut publisher), 0, "of {bytes} bytes, waited for");
        fill(&mut publisher);
        while subscriber.poll(64, |_| {}) > 0 {}
        assert_eq!(writable(&mut publisher), 1, "not claimed again");
        assert_eq!(writable(&mut publisher), 0, "told once");
    }
}

#[test]
fn a_descriptor_asked_for_after_a_refusal_tells_of_the_room() {
    let domain = open("asked for later");
    let mut publisher = domain.publisher("t").expect("a publisher");
    let mut subscriber = domain.subscriber(&["t"]).expect("a subscriber");
    fill(&mut publisher);
    // It may be readable at once; the claim that this leads to settles or arms it.
    if is_readable(publisher.wakeup().expect("a descriptor")) {
        assert!(publisher.try_send(&[0; BYTES]).is_err(), "nothing is read");
    }
    assert!(!is_readable(publisher.wakeup().expect("a descriptor")), "refused, nothing is read");
    while subscriber.poll(64, |_| {}) > 0 {}
    let descriptor = publisher.wakeup().expect("a descriptor");
    assert_eq!(wait_readable([descriptor], Some(LONG)), [true], "all was read");
    publisher.try_send(&[0; BYTES]).expect("room");
    assert!(!is_readable(publisher.wakeup().expect("a descriptor")), "the claim succeeded");
}

/// A publisher over two transports looks again and again: it waits, and is not refused.
#[test]
fn looks_of_one_wait_are_no_refusals() {
    let domain = open("looks");
    let mut publisher = domain.publisher("t").expect("a publisher");
    let mut subscriber = domain.subscriber(&["t"]).expect("a subscriber");
    fill(&mut publisher);
    let before = publisher.back_pressured();
    let mut next = publisher.try_claim(1).expect("room for one byte").commit_before_next();
    for _ in 0..5 {
        assert_eq!(next.has_space(BYTES), Ok(false));
    }
    assert_eq!(publisher.back_pressured() - before, 1, "one wait");
    assert_eq!(writable(&mut publisher), 0);
    while subscriber.poll(64, |_| {}) > 0 {}
    assert_eq!(writable(&mut publisher), 0, "no claim was refused");
    let mut next = publisher.try_claim(1).expect("room").commit_before_next();
    assert_eq!(next.has_space(BYTES), Ok(true));
}
