//! Tests of a consumer's sleep, on one thread.

use super::{ByteConsumer, single_producer};
use std::time::Duration;

fn messages(consumer: &mut ByteConsumer) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    consumer.poll(usize::MAX, |message| all.push(message.to_vec()));
    all
}

/// The producer's cursor is behind such a consumer until the stride is full.
#[test]
fn a_consumer_that_has_pulled_sleeps_until_the_next_message() {
    let mut build = single_producer(256).unwrap().stride(8, Duration::ZERO);
    let mut consumer = build.consumer();
    let mut producer = build.producer().unwrap();
    producer.try_send(b"held back").unwrap();
    assert_eq!(messages(&mut consumer), [b"held back"]);
    assert!(consumer.mark_asleep(), "nothing to read");
    assert!(consumer.readers()[0].word().is_some());
    producer.try_send(b"next").unwrap();
    assert!(!consumer.mark_asleep(), "it would sleep through a message");
    assert_eq!(messages(&mut consumer), [b"next"]);
}
