//! Tests of shared work, on one thread.

use crate::rings::{BuildError, Producer, PushError, Worker, single_producer};
use std::panic::{AssertUnwindSafe, catch_unwind};

fn group<const N: usize>(capacity: usize) -> (Producer<u64>, [Worker<u64>; N]) {
    let mut build = single_producer(capacity, || 0).unwrap();
    let workers = build.workers(N).unwrap();
    (build.producer().unwrap(), <[_; N]>::try_from(workers).unwrap())
}

fn take(worker: &mut Worker<u64>, max: usize) -> Vec<u64> {
    let mut all = Vec::new();
    worker.take(max, |values| all.extend(values.iter_mut().map(core::mem::take)));
    all
}

#[test]
fn each_value_goes_to_one_worker() {
    let (mut producer, [mut a, mut b]) = group(8);
    (1..=8).for_each(|value| producer.push(value).unwrap());
    assert_eq!(a.pop(), Some(1));
    assert_eq!(take(&mut b, 3), [2, 3, 4]);
    assert_eq!(take(&mut a, 2), [5, 6]);
    assert_eq!(producer.try_claim(8).map(|claim| claim.len()), Some(6));
    (9..=14).for_each(|value| producer.push(value).unwrap());
    assert_eq!(producer.try_push(15), Err(PushError::Full(15)));
    assert_eq!(take(&mut b, 99), [7, 8]);
    assert_eq!(take(&mut a, 4), [9, 10, 11, 12]);
    (15..=18).for_each(|value| producer.push(value).unwrap());
    assert_eq!(take(&mut b, 99), [13, 14, 15, 16, 17, 18], "over the end of the memory");
    assert_eq!((a.pop(), take(&mut b, 9)), (None, vec![]));
    drop(producer);
    assert!(a.is_closed() && b.is_closed());
}

#[test]
fn an_unfinished_run_gates_only_its_producer() {
    let (mut producer, [mut slow, mut fast]) = group(4);
    (0..4).for_each(|value| producer.push(value).unwrap());
    slow.take(2, |run| {
        assert_eq!(run, [0, 1]);
        assert_eq!((fast.pop(), fast.pop()), (Some(2), Some(3)));
        assert_eq!(producer.try_push(4), Err(PushError::Full(4)), "comes round to this run");
    });
    (4..8).for_each(|value| producer.push(value).unwrap());
    assert_eq!(take(&mut slow, 9), [4, 5, 6, 7]);
}

#[test]
fn a_panic_consumes_the_run_and_gates_no_producer() {
    let (mut producer, [mut clumsy, mut other]) = group(4);
    (0..4).for_each(|value| producer.push(value).unwrap());
    let fall = AssertUnwindSafe(|| clumsy.take(3, |_| panic!("as it should")));
    assert!(catch_unwind(fall).is_err());
    (4..7).for_each(|value| producer.push(value).unwrap());
    assert_eq!(take(&mut clumsy, 1), [3]);
    assert_eq!(take(&mut other, 9), [4, 5, 6]);
}

#[test]
fn a_leaving_worker_leaves_its_work_to_the_others() {
    let (mut producer, [gone, mut left]) = group(2);
    (0..2).for_each(|value| producer.push(value).unwrap());
    drop(gone);
    assert_eq!(producer.try_push(2), Err(PushError::Full(2)));
    assert_eq!(take(&mut left, 9), [0, 1]);
    producer.push(2).unwrap();
    drop(left);
    producer.push(3).unwrap();
    assert_eq!(producer.try_push(4), Err(PushError::Closed(4)), "no worker is left");
}

#[test]
fn one_that_is_leaked_in_a_run_keeps_its_run() {
    let (mut producer, [mut leaked, mut left]) = group(2);
    (0..2).for_each(|value| producer.push(value).unwrap());
    assert_eq!(leaked.pop(), Some(0));
    core::mem::forget(leaked);
    assert_eq!(left.pop(), Some(1));
    (2..4).for_each(|value| producer.push(value).unwrap());
    assert_eq!(take(&mut left, 9), [2, 3]);
}

#[test]
fn workers_behind_consumers_have_no_siblings() {
    let mut build = single_producer(4, || 0_u64).unwrap();
    let mut reader = build.consumer().unwrap();
    assert_eq!(build.workers(1).unwrap_err(), BuildError::NotExclusive);
    let mut workers = build.workers_after(2, &[&reader]).unwrap();
    assert_eq!(build.consumer().unwrap_err(), BuildError::NotExclusive);
    let mut producer = build.producer().unwrap();
    producer.push(5).unwrap();
    assert_eq!(workers[1].pop(), None, "not read yet");
    assert_eq!(reader.drain(9, |_| {}), 1);
    assert_eq!(workers[1].pop(), Some(5));
    drop(reader);
    producer.push(6).unwrap();
    assert_eq!(workers[0].pop(), Some(6), "the worker they followed is gone");
}
