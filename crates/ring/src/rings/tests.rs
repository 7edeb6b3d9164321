//! Tests of each topology, on one thread.

use super::*;
use crate::builder::CAPACITY_MAX;
use lanecast_base::WaitStrategy;
use std::time::Duration;

fn values(consumer: &mut Consumer<u64>) -> Vec<u64> {
    let mut all = Vec::new();
    consumer.drain(usize::MAX, |values| all.extend_from_slice(values));
    all
}

#[test]
fn a_full_ring_gives_the_value_back() {
    let mut build = single_producer(2, || 0).unwrap();
    let mut consumer = build.consumer().unwrap();
    let mut producer = build.producer().unwrap();
    producer.push(1).unwrap();
    producer.push(2).unwrap();
    assert_eq!(producer.try_push(3), Err(PushError::Full(3)));
    assert_eq!(values(&mut consumer), [1, 2]);
    producer.try_push(3).unwrap();
    assert_eq!(values(&mut consumer), [3]);
    assert!(!consumer.is_closed());
    drop(producer);
    assert!(consumer.is_closed());
}

#[test]
fn a_consumer_never_overtakes_its_upstream() {
    let mut build = single_producer(8, || 0).unwrap();
    let mut first = build.consumer().unwrap();
    let mut beside = build.consumer().unwrap();
    let mut last = build.after(&[&first, &beside]).unwrap();
    let mut producer = build.producer().unwrap();
    (0..8).for_each(|value| producer.push(value).unwrap());
    assert_eq!(first.drain(5, |_| {}), 5);
    assert_eq!(beside.drain(3, |_| {}), 3);
    assert_eq!(values(&mut last), [0, 1, 2]);
    assert!(producer.try_claim(4).is_some_and(|claim| claim.len() == 3));
}

/// The values of a stride that is not full are no work for a consumer that has to follow another:
/// it sleeps until that one has read them.
#[test]
fn a_follower_sleeps_while_its_upstream_has_values_to_read() {
    for fills in [2, 4] {
        let mut build = single_producer(8, || 0).unwrap().stride(4, Duration::from_secs(3600));
        let mut slow = build.consumer().unwrap();
        let mut fast = build.after(&[&slow]).unwrap();
        let mut producer = build.producer().unwrap();
        (0..fills).for_each(|value| producer.push(value).unwrap());
        assert!(fast.mark() && fast.word().is_some(), "nothing to read after {fills}");
        (fills..4).for_each(|value| producer.push(value).unwrap());
        assert_eq!(values(&mut slow), [0, 1, 2, 3]);
        assert!(!fast.mark(), "the other one has read");
        assert_eq!(values(&mut fast), [0, 1, 2, 3]);
    }
}

/// Values of a stride that is not full would stay unread when the one that pulled them has left.
#[test]
fn a_follower_pulls_once_its_upstream_has_left() {
    let mut build = single_producer(8, || 0).unwrap().stride(4, Duration::ZERO);
    let first = build.consumer().unwrap();
    let second = build.after(&[&first]).unwrap();
    let mut last = build.after(&[&second]).unwrap();
    let mut producer = build.producer().unwrap();
    (0..2).for_each(|value| producer.push(value).unwrap());
    drop(second);
    assert_eq!(values(&mut last), [], "the first one has not read");
    drop(first);
    assert!(!last.mark(), "nothing before it, and values to read");
    assert_eq!(values(&mut last), [0, 1]);
}

/// The producer's cursor is behind such a consumer until the stride is full.
#[test]
fn a_consumer_that_has_pulled_sleeps_until_the_next_value() {
    let mut build = single_producer(8, || 0).unwrap().stride(4, Duration::ZERO);
    let mut consumer = build.consumer().unwrap();
    let mut producer = build.producer().unwrap();
    producer.push(0).unwrap();
    assert_eq!(values(&mut consumer), [0]);
    assert!(consumer.mark() && consumer.word().is_some(), "nothing to read");
    producer.push(1).unwrap();
    assert!(!consumer.mark(), "it would sleep through a value");
    assert_eq!(values(&mut consumer), [1]);
}

/// As a consumer.
#[test]
fn a_worker_that_has_pulled_sleeps_until_the_next_value() {
    let mut build = single_producer(8, || 0_u64).unwrap().stride(4, Duration::ZERO);
    let mut share = build.shares(1, &[]).unwrap().remove(0);
    let mut producer = build.producer().unwrap();
    producer.push(1).unwrap();
    assert_eq!(share.pop(), Some(1));
    assert!(share.mark() && share.word().is_some(), "nothing to read");
    producer.push(2).unwrap();
    assert!(!share.mark(), "it would sleep through a value");
    assert_eq!(share.pop(), Some(2));
}

/// Workers follow a handler as consumers do.
#[test]
fn a_worker_that_follows_sleeps_while_its_upstream_has_values_to_read() {
    let mut build = single_producer(8, || 0).unwrap().stride(4, Duration::from_secs(3600));
    let mut slow = build.consumer().unwrap();
    let mut share = build.shares(1, &[&slow]).unwrap().remove(0);
    let mut producer = build.producer().unwrap();
    (0..4).for_each(|value| producer.push(value).unwrap());
    assert!(share.mark() && share.word().is_some(), "nothing to claim");
    assert_eq!(values(&mut slow), [0, 1, 2, 3]);
    assert!(!share.mark(), "the other one has read");
}

#[test]
fn a_leaving_consumer_gates_no_producer() {
    let mut build = single_producer(4, || 0).unwrap();
    let mut first = build.consumer().unwrap();
    let last = build.after(&[&first]).unwrap();
    let slow = build.consumer().unwrap();
    let mut producer = build.producer().unwrap();
    (0..4).for_each(|value| producer.push(value).unwrap());
    drop(slow);
    assert!(producer.try_push(4).is_err(), "the others have not read");
    drop(last);
    assert!(producer.try_push(4).is_err(), "the one it followed has not read");
    assert_eq!(values(&mut first), [0, 1, 2, 3]);
    producer.push(4).unwrap();
    drop(first);
    (5..8).for_each(|value| producer.push(value).unwrap());
    assert_eq!(producer.try_push(9), Err(PushError::Closed(9)));
    assert!(producer.is_closed() && producer.try_claim(1).is_none());
    assert!(producer.claim(1).is_err());
}

#[test]
fn a_dropped_claim_was_never_there() {
    let (mut producer, mut exclusive_consumer) = unicast(4, || 0, WaitStrategy::SpinYield).unwrap();
    producer.claim(2).unwrap().copy_from_slice(&[7, 8]);
    assert_eq!(exclusive_consumer.pop(), None);
    let mut claim = producer.claim(3).unwrap();
    claim.copy_from_slice(&[1, 2, 3]);
    claim.commit_first(2);
    assert_eq!(
        (exclusive_consumer.pop(), exclusive_consumer.pop(), exclusive_consumer.pop()),
        (Some(1), Some(2), None)
    );
    assert_eq!(producer.claim(4).unwrap().len(), 2, "up to the end of the memory");
}

#[test]
fn a_stride_is_published_whole_or_pulled() {
    let mut build = single_producer(16, || 0).unwrap().stride(4, Duration::ZERO);
    let mut pulls = build.consumer().unwrap();
    let mut producer = build.producer().unwrap();
    producer.push(1).unwrap();
    assert_eq!(values(&mut pulls), [1], "dry for longer than no time");
    let mut build = single_producer(16, || 0).unwrap().stride(4, Duration::from_secs(1000));
    let mut waits = build.consumer().unwrap();
    let mut producer = build.producer().unwrap();
    (0..3).for_each(|value| producer.push(value).unwrap());
    assert!(values(&mut waits).is_empty());
    producer.push(3).unwrap();
    assert_eq!(values(&mut waits), [0, 1, 2, 3]);
    producer.push(4).unwrap();
    drop(producer);
    assert_eq!(values(&mut waits), [4]);
}

#[test]
fn an_invalid_topology_is_refused() {
    for asked in [0, 3, CAPACITY_MAX * 2] {
        let error = single_producer(asked, || 0).unwrap_err();
        assert_eq!(error, BuildError::Capacity { asked });
        assert!(error.to_string().contains("power of two"));
    }
    let build = single_producer(4, || 0).unwrap();
    assert_eq!(build.producer().unwrap_err(), BuildError::NoConsumer);
    let mut build = single_producer(4, || 0).unwrap();
    let stranger = single_producer(4, || 0).unwrap().consumer().unwrap();
    assert_eq!(build.after(&[&stranger]).unwrap_err(), BuildError::ForeignConsumer);
    let reader = build.consumer().unwrap();
    assert_eq!(build.exclusive_consumer().unwrap_err(), BuildError::NotExclusive);
    let exclusive_consumer = build.exclusive_after(&[&reader]).unwrap();
    assert_eq!(build.consumer().unwrap_err(), BuildError::NotExclusive);
    build.after(&[&exclusive_consumer]).unwrap();
}

#[test]
fn a_consumer_behind_a_leaving_one_is_gated_by_its_upstream() {
    let mut build = single_producer(4, || 0).unwrap();
    let mut first = build.consumer().unwrap();
    let middle = build.after(&[&first]).unwrap();
    let mut last = build.exclusive_after(&[&middle]).unwrap();
    let mut producer = build.producer().unwrap();
    producer.push(1).unwrap();
    drop(middle);
    assert_eq!(last.pop(), None, "the first may be reading it");
    assert_eq!(values(&mut first), [1]);
    assert_eq!(last.pop(), Some(1));
    drop(first);
    producer.push(2).unwrap();
    assert_eq!(last.pop(), Some(2));
}

#[test]
fn claims_of_any_size_are_cut_to_what_is_free() {
    let (mut producer, mut exclusive_consumer) = unicast(4, || 0, WaitStrategy::SpinYield).unwrap();
    producer.push(1).unwrap();
    assert_eq!(producer.try_claim(usize::MAX).map(|claim| claim.len()), Some(3));
    assert_eq!(producer.claim(usize::MAX).unwrap().len(), 3);
    assert_eq!(exclusive_consumer.pop(), Some(1));
}

#[test]
fn a_ring_that_was_never_completed_has_reached_its_end() {
    let mut build = single_producer(4, || 0).unwrap();
    let mut consumer = build.consumer().unwrap();
    assert!(!consumer.is_closed());
    drop(build);
    assert!(consumer.is_closed());
    consumer.wait(0);
}
