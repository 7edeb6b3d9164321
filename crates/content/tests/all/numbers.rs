//! Messages have the number of the publisher's count on its topic: the same with a filter and
//! without, for early and late subscribers, over every transport.

use crate::stage::{Stage, until};
use lanecast::{
    Batch, Claim, Context, Event, FilterablePublisher, FilteredSubscriber, Publish, Subscribe,
    TopicId,
};

/// Numbers of the messages that a subscriber received, each of which has its number in tag 58.
type Numbers = Vec<u64>;

fn subscriber(context: &Context, filter: &str) -> FilteredSubscriber {
    context.topic("market").filter(filter).subscriber().expect("a subscriber")
}

/// The bytes of message `number`: tag 38 runs from 0 to 9.
fn body(number: u64) -> Vec<u8> {
    format!("38={}\u{1}58={number}\u{1}", number % 10).into_bytes()
}

/// Polls once; each message must be the one of its number.
fn read(subscriber: &mut impl Subscribe, numbers: &mut Numbers) {
    subscriber.poll(64, |event| match event {
        Event::Message(message) => {
            assert_eq!(message.bytes(), body(message.number()), "another message's number");
            numbers.push(message.number());
        }
        Event::Lost(_) | Event::FilterInactive(_) => panic!("{event:?}"),
        _ => {}
    });
}

/// Publishes messages from `next` on: by claims, chained ones and batches, with others in between
/// that are aborted and count for nothing.
fn publish(publisher: &mut FilterablePublisher, other: TopicId, next: u64) -> u64 {
    let put = |room: &mut [u8], number| room.copy_from_slice(&body(number));
    let length = |number| body(number).len();
    publisher.send(&body(next)).expect("room");
    publisher.send_on(other, b"elsewhere").expect("room");
    publisher.claim(5).expect("room").abort();
    let mut claim = publisher.claim(length(next + 1)).expect("room");
    put(&mut claim, next + 1);
    let mut claim = claim.commit_and_claim_next(length(next + 2)).expect("room");
    put(&mut claim, next + 2);
    claim.commit_and_claim_next(7).expect("room").abort();
    let mut batch = publisher.batch();
    batch.try_add(TopicId::FIRST, 5).expect("room").copy_from_slice(b"38=1\x01");
    drop(batch);
    let mut batch = publisher.batch();
    for number in [next + 3, next + 4] {
        put(batch.try_add(TopicId::FIRST, length(number)).expect("room"), number);
    }
    assert_eq!(batch.publish(), 2);
    next + 5
}

fn numbers_are_the_publisher_s(stage: &Stage) {
    let mut publisher =
        stage.publishers.topic("market").filterable().publisher().expect("a publisher");
    let other = publisher.add_topic("elsewhere").expect("a topic");
    // Counted without any subscriber too.
    let mut next = publish(&mut publisher, other, 0);
    let mut everything = stage.subscribers.subscriber("market").expect("a subscriber");
    let mut filtered = Vec::new();
    let (mut all, mut some) = (Numbers::new(), Vec::new());
    // From which number on each filtered subscriber receives: the later ones join late.
    let mut starts = Vec::new();
    for filter in ["/38 >= 7", "/38 = 2 or /38 = 8", "/38 >= 7"] {
        filtered.push(subscriber(&stage.subscribers, filter));
        some.push(Numbers::new());
        until("it is served", || {
            publisher.serve_filters();
            read(&mut everything, &mut all);
            for (subscriber, numbers) in filtered.iter_mut().zip(&mut some) {
                read(subscriber, numbers);
            }
            publisher.subscribers() == 1 + filtered.len()
                && everything.streams() == 1
                && filtered.iter().all(|subscriber| subscriber.active_streams() == 1)
        });
        starts.push(next);
        for _ in 0..10 {
            next = publish(&mut publisher, other, next);
            read(&mut everything, &mut all);
            for (subscriber, numbers) in filtered.iter_mut().zip(&mut some) {
                read(subscriber, numbers);
            }
        }
    }
    let wanted: [fn(u64) -> bool; 3] = [|n| n >= 7, |n| n == 2 || n == 8, |n| n >= 7];
    let wanted: Vec<Numbers> = wanted
        .into_iter()
        .zip(&starts)
        .map(|(matches, start)| (*start..next).filter(|number| matches(number % 10)).collect())
        .collect();
    until("all has come", || {
        read(&mut everything, &mut all);
        for (subscriber, numbers) in filtered.iter_mut().zip(&mut some) {
            read(subscriber, numbers);
        }
        all.last() == Some(&(next - 1))
            && some.iter().zip(&wanted).all(|(some, wanted)| some.len() >= wanted.len())
    });
    assert_eq!(some, wanted);
    assert!(all.iter().copied().eq(starts[0]..next), "{all:?}");
}

#[test]
fn numbers_are_the_publisher_s_over_each_transport() {
    for transports in ["threads", "shm", "rm", "ru", "tcp", "shm+rm"] {
        numbers_are_the_publisher_s(&Stage::new(transports));
    }
}

/// Messages of publishers that serve no filters have the numbers of the transport.
#[test]
fn numbers_of_plain_publishers_are_kept() {
    let stage = Stage::new("shm");
    let mut publisher = stage.publishers.publisher("market").expect("a publisher");
    let mut subscriber = subscriber(&stage.subscribers, "/38 >= 7");
    until("they have met", || {
        read(&mut subscriber, &mut Numbers::new());
        publisher.subscribers() == 1 && subscriber.active_streams() == 1
    });
    let mut numbers = Numbers::new();
    for number in 0..40 {
        publisher.send(&body(number)).expect("room");
    }
    until("all has come", || {
        read(&mut subscriber, &mut numbers);
        numbers.len() >= 12
    });
    assert!(numbers.iter().copied().eq((0..40).filter(|number| number % 10 >= 7)));
}
