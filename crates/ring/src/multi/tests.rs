//! Tests of several producers.

use super::*;
use crate::rings::PushError;

fn values(consumer: &mut Lanes<Consumer<u64>>) -> Vec<u64> {
    let mut all = Vec::new();
    consumer.drain(usize::MAX, |values| all.extend_from_slice(values));
    all
}

#[test]
fn a_delayed_producer_delays_no_other() {
    let mut build = multi_producer(2, 4, || 0).unwrap();
    let mut consumer = build.consumer().unwrap();
    let mut workers = build.workers_after(2, &[&consumer]).unwrap();
    let [mut stuck, mut other] = <[_; 2]>::try_from(build.producers().unwrap()).unwrap();
    // Claimed and never published, while the other goes round its memory again and again.
    let claim = stuck.claim(4).unwrap();
    for value in 0..40 {
        other.push(value).unwrap();
        assert_eq!(values(&mut consumer), [value]);
        let worker = &mut workers[(value % 2) as usize];
        // One of them only helps out in this lane.
        assert_eq!((0..1000).find_map(|_| worker.pop()), Some(value));
    }
    drop(claim);
    // A full lane does not block the other producer.
    (0..4).for_each(|value| stuck.push(value).unwrap());
    assert_eq!(stuck.try_push(4), Err(PushError::Full(4)));
    other.push(7).unwrap();
    assert_eq!(values(&mut consumer).len(), 5);
}

#[test]
fn every_lane_has_its_turn() {
    let mut build = multi_producer(3, 8, || 0).unwrap();
    let mut consumer = build.consumer().unwrap();
    let mut producers = build.producers().unwrap();
    for (lane, producer) in producers.iter_mut().enumerate() {
        (0..8).for_each(|_| producer.push(lane as u64).unwrap());
    }
    let mut seen = Vec::new();
    for _ in 0..6 {
        assert_eq!(consumer.drain(1, |values| seen.extend_from_slice(values)), 1);
    }
    assert_eq!(seen, [0, 1, 2, 0, 1, 2]);
    assert!(!consumer.is_closed());
    drop(producers);
    assert_eq!(consumer.drain(usize::MAX, |_| {}), 18);
    assert!(consumer.is_closed());
}

#[test]
fn a_diamond_holds_in_every_lane() {
    let mut build = multi_producer(2, 4, || 0).unwrap();
    let mut first = build.consumer().unwrap();
    let mut last = build.exclusive_after(&[&first]).unwrap();
    assert!(matches!(build.consumer(), Err(BuildError::NotExclusive)));
    let mut after = build.after(&[&last]).unwrap();
    let mut producers = build.producers().unwrap();
    for (lane, producer) in producers.iter_mut().enumerate() {
        producer.push(lane as u64 + 1).unwrap();
    }
    assert_eq!((last.pop(), values(&mut after)), (None, Vec::new()));
    assert_eq!(values(&mut first), [1, 2]);
    assert_eq!(last.drain_mut(9, |values| values.iter_mut().for_each(|value| *value *= 10)), 2);
    assert_eq!(values(&mut after), [10, 20]);
}

#[test]
fn unknown_and_absent_certificates_are_refused() {
    assert_eq!(multi_producer(0, 4, || 0).unwrap_err(), BuildError::NoProducer);
    assert_eq!(multi_producer(2, 3, || 0).unwrap_err(), BuildError::Capacity { asked: 3 });
    let build = multi_producer(2, 4, || 0).unwrap();
    assert_eq!(build.producers().unwrap_err(), BuildError::NoConsumer);
    let mut build = multi_producer(2, 4, || 0).unwrap();
    let stranger = multi_producer(1, 4, || 0).unwrap().consumer().unwrap();
    assert_eq!(build.after(&[&stranger]).unwrap_err(), BuildError::ForeignConsumer);
    assert_eq!(build.workers(0).unwrap_err(), BuildError::NoConsumer);
}

#[test]
fn a_consumer_without_producers_has_reached_the_end() {
    let mut build = multi_producer(2, 4, || 0).unwrap();
    let mut consumer = build.consumer().unwrap();
    let mut worker = build.workers_after(1, &[&consumer]).unwrap().remove(0);
    drop(build);
    assert!(consumer.is_closed() && worker.is_closed());
    consumer.wait(0);
    worker.wait(0);
}
