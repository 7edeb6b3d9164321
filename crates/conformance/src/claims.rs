//! Claims and batches: committed or aborted as a whole.

use crate::record::{fill, gather};
use crate::{Body, Record};
use lanecast_transport::{Batch, Claim, ClaimError, Publish, Subscribe, TopicId, Transport};
use std::thread;

/// A dropped or aborted claim is never published; the next one takes its place.
pub fn a_dropped_claim_is_never_seen<C: Transport>(transport: &C) {
    let (mut publisher, mut subscriber) = pair(transport);
    let mut record = Record::new();
    for number in 0..200u64 {
        let mut claim = publisher.claim(300).expect("room");
        claim.fill(0xee);
        if number % 2 == 0 {
            claim.abort()
        } else {
            drop(claim)
        }
        record.exhaust(&mut subscriber);
        assert_eq!(record.message_count() as u64, number, "an aborted claim is invisible");
        publisher.send(&Body::new(number, 300).bytes()).expect("room");
        record.listen(&mut subscriber, |record| record.message_count() as u64 > number);
        Body::new(number, 300).check(record.message(number as usize));
    }
    record.check_lives();
}

/// `commit_and_claim_next` publishes even if there is no next.
pub fn a_commit_claims_the_next<C: Transport>(transport: &C) {
    let (mut publisher, mut subscriber) = pair(transport);
    let longest = publisher.longest_message();
    let body = |number| Body::of_length(number, 40 + number as usize);
    let mut claim = publisher.claim(body(0).len()).expect("room");
    for number in 0..20 {
        body(number).write(&mut claim);
        claim = claim.commit_and_claim_next(body(number + 1).len()).expect("room");
    }
    body(20).write(&mut claim);
    let refused = claim.commit_and_claim_next(longest + 1);
    assert_eq!(refused.err(), Some(ClaimError::TooLong { longest }));
    let mut record = Record::new();
    record.listen(&mut subscriber, |record| record.message_count() >= 21);
    record.exhaust(&mut subscriber);
    assert_eq!(record.message_count(), 21);
    (0..21).for_each(|number| body(number).check(record.message(number as usize)));
}

/// All messages of a batch, or none.
pub fn a_batch_becomes_visible_at_once<C: Transport>(transport: &C) {
    const BATCH: usize = 5;
    let (mut publisher, mut subscriber) = pair(transport);
    let other = publisher.add_topic("other").expect("a topic");
    let writer = thread::spawn(move || {
        for round in 0..300u64 {
            crate::record::until("room for a batch", || {
                let mut batch = publisher.batch();
                for place in 0..BATCH as u64 {
                    let body = Body::new(round * BATCH as u64 + place, 300);
                    let topic = if place == 3 { other } else { TopicId::FIRST };
                    let Ok(room) = batch.try_add(topic, body.len()) else { return false };
                    body.write(room);
                }
                assert_eq!(batch.len(), BATCH);
                batch.publish() == BATCH
            });
        }
        assert!(publisher.close(crate::PATIENCE).is_complete());
    });
    let mut record = Record::new();
    let wanted = 4;
    while record.left().is_empty() {
        let before = record.message_count();
        let work = subscriber.poll(usize::MAX, |event| record.note(event));
        let news = record.message_count() - before;
        assert_eq!(news % wanted, 0, "part of a batch");
        subscriber.wait(work);
    }
    writer.join().expect("the writer");
    record.check_lives();
    let numbers = (0..300 * BATCH as u64).filter(|number| number % 5 != 3);
    assert_eq!(record.message_count(), 300 * wanted);
    numbers.zip(record.messages()).for_each(|(number, bytes)| Body::new(number, 300).check(bytes));
}

/// A dropped batch leaves no trace, wherever its messages stood.
pub fn a_dropped_batch_is_never_seen<C: Transport>(transport: &C) {
    let (mut publisher, mut subscriber) = pair(transport);
    let mut record = Record::new();
    assert_eq!(publisher.batch().publish(), 0, "an empty batch is nothing");
    for number in 0..300u64 {
        let mut batch = publisher.batch();
        assert!(batch.is_empty());
        for _ in 0..4 {
            batch.try_add(TopicId::FIRST, 24).expect("room").fill(0xee);
        }
        drop(batch);
        record.exhaust(&mut subscriber);
        assert_eq!(record.message_count() as u64, number, "a dropped batch is invisible");
        // As long as a staged message, so that what follows it is a staged one's old place.
        publisher.send(&Body::of_length(number, 24).bytes()).expect("room");
        record.listen(&mut subscriber, |record| record.message_count() as u64 > number);
        record.exhaust(&mut subscriber);
        assert_eq!(record.message_count() as u64, number + 1, "one message, no ghosts");
        Body::of_length(number, 24).check(record.message(number as usize));
    }
}

/// A batch that finds no room for one more publishes what it has.
pub fn a_batch_without_room_keeps_what_it_has<C: Transport>(transport: &C) {
    let (mut publisher, mut subscriber) = pair(transport);
    let length = publisher.longest_message() / 2;
    let mut batch = publisher.batch();
    let mut count = 0u64;
    let refused = loop {
        match batch.try_add(TopicId::FIRST, length) {
            Ok(room) => Body::of_length(count, length).write(room),
            Err(error) => break error,
        }
        count += 1;
    };
    assert!(matches!(refused, ClaimError::BackPressured(_)), "{refused}");
    assert!(count >= 2, "a window holds some messages");
    assert_eq!(batch.publish() as u64, count);
    // A layer that promises more room than a message takes may end a batch earlier.
    assert!(fill(&mut publisher, count, length) <= count, "the batch took most of the window");
    let mut record = Record::new();
    record.listen(&mut subscriber, |record| record.message_count() as u64 >= count);
    (0..count)
        .zip(record.messages())
        .for_each(|(number, bytes)| Body::of_length(number, length).check(bytes));
}

/// Claims that are too long or name an unknown topic are refused with the reason, without effect.
pub fn a_message_that_cannot_be_is_refused<C: Transport>(transport: &C) {
    let (mut publisher, mut subscriber) = pair(transport);
    let longest = publisher.longest_message();
    let too_long = ClaimError::TooLong { longest };
    let stranger = TopicId(77);
    for length in [longest + 1, longest * 9, usize::MAX] {
        assert_eq!(publisher.try_claim(length).err(), Some(too_long));
        assert_eq!(publisher.claim(length).err(), Some(too_long));
        assert_eq!(publisher.batch().try_add(TopicId::FIRST, length).err(), Some(too_long));
    }
    assert_eq!(publisher.try_send(&vec![0; longest + 1]), Err(too_long));
    assert_eq!(publisher.try_claim_on(stranger, 1).err(), Some(ClaimError::NoSuchTopic));
    assert_eq!(publisher.send_on(stranger, b"x"), Err(ClaimError::NoSuchTopic));
    assert_eq!(publisher.batch().try_add(stranger, 1).err(), Some(ClaimError::NoSuchTopic));
    publisher.send(b"fine").expect("room");
    let mut record = Record::new();
    record.listen(&mut subscriber, |record| record.message_count() > 0);
    assert_eq!(record.messages(), [b"fine"]);
}

/// A publisher and a joined subscriber of topic `a`.
fn pair<C: Transport>(transport: &C) -> (C::Publisher, C::Subscriber) {
    let subscriber = transport.subscriber(&["a"]).expect("a subscriber");
    let mut publisher = transport.publisher("a").expect("a publisher");
    gather(&mut publisher, 1);
    (publisher, subscriber)
}
