//! Rings, explored by loom: the code of products.
//!
//! A value is a cell that the model checker watches, so that a consumer that looks too early, or
//! a producer or worker that writes too early, is reported as a data race. A sleep without a
//! wake-up is reported as a deadlock.

mod sharing;
mod sleeping;

use crate::rings::{Consumer, Producer, single_producer};
use lanecast_base::sync::{UnsafeCell, without_light_fences};
use loom::thread;
use std::sync::Arc;

/// A value whose readings and writings the model checker sees.
#[derive(Debug)]
struct Watched(UnsafeCell<u64>);

// SAFETY: the model checker tells when two threads touch it at once.
unsafe impl Send for Watched {}
// SAFETY: as above.
unsafe impl Sync for Watched {}

impl Watched {
    fn new() -> Self {
        Self(UnsafeCell::new(0))
    }
    fn read(&self) -> u64 {
        // SAFETY: the model reports writes at the same time.
        self.0.with(|value| unsafe { *value })
    }
    fn write(&mut self, new: u64) {
        // SAFETY: as for `read`.
        self.0.with_mut(|value| unsafe { *value = new });
    }
}

/// Explores a model without sleepers.
fn check(model: impl Fn() + Sync + Send + 'static) {
    without_light_fences(|| check_sleep(model));
}

/// Explores a model with sleepers, whose light fences are full ones.
fn check_sleep(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    if builder.preemption_bound.is_none() {
        builder.preemption_bound = Some(2);
    }
    builder.check(model);
}

/// Writes and publishes `value` in place, if there is room.
fn try_send(producer: &mut Producer<Watched>, value: u64) -> bool {
    let Some(mut claim) = producer.try_claim(1) else { return false };
    claim[0].write(value);
    claim.commit();
    true
}

fn send(producer: &mut Producer<Watched>, value: u64) {
    while !try_send(producer, value) {
        thread::yield_now();
    }
}

/// Reads `values`, in this order.
fn read(consumer: &mut Consumer<Watched>, values: core::ops::RangeInclusive<u64>) {
    let mut next = *values.start();
    while next <= *values.end() {
        let work = consumer.drain(1, |run| {
            assert_eq!(run[0].read(), next);
            next += 1;
        });
        if work == 0 {
            thread::yield_now();
        }
    }
}

#[test]
fn published_values_are_whole_and_not_overwritten_before_they_are_read() {
    check(|| {
        let mut build = single_producer(2, Watched::new).unwrap();
        let mut consumer = build.consumer().unwrap();
        let mut producer = build.producer().unwrap();
        let writer = thread::spawn(move || (1..=4).for_each(|value| send(&mut producer, value)));
        read(&mut consumer, 1..=4);
        writer.join().unwrap();
        assert!(consumer.is_closed());
    });
}

#[test]
fn the_end_comes_after_the_last_value() {
    check(|| {
        let mut build = single_producer(2, Watched::new).unwrap().stride(2, LONG);
        let mut consumer = build.consumer().unwrap();
        let mut producer = build.producer().unwrap();
        let writer = thread::spawn(move || assert!(try_send(&mut producer, 1)));
        let mut count = 0;
        while !consumer.is_closed() {
            count += consumer.drain(2, |run| assert_eq!(run[0].read(), 1));
            thread::yield_now();
        }
        assert_eq!(count, 1);
        writer.join().unwrap();
    });
}

#[test]
fn the_end_publishes_earlier_writes_of_the_producer() {
    check(|| {
        let mut build = single_producer(1, Watched::new).unwrap();
        let consumer = build.consumer().unwrap();
        let producer = build.producer().unwrap();
        let elsewhere = Arc::new(Watched::new());
        let written = Arc::clone(&elsewhere);
        let writer = thread::spawn(move || {
            // SAFETY: the model checker tells whether anybody reads it meanwhile.
            written.0.with_mut(|value| unsafe { *value = 1 });
            drop(producer);
        });
        while !consumer.is_closed() {
            thread::yield_now();
        }
        assert_eq!(elsewhere.read(), 1);
        writer.join().unwrap();
    });
}

/// Longer than a model: only the producer itself publishes in it.
const LONG: std::time::Duration = std::time::Duration::from_secs(100_000);

#[test]
fn every_consumer_sees_each_value_and_the_slowest_decides() {
    check(|| {
        let mut build = single_producer(1, Watched::new).unwrap();
        let mut one = build.consumer().unwrap();
        let mut other = build.consumer().unwrap();
        let mut producer = build.producer().unwrap();
        assert!(try_send(&mut producer, 1));
        let reader = thread::spawn(move || read(&mut one, 1..=1));
        let writer = thread::spawn(move || send(&mut producer, 2));
        read(&mut other, 1..=1);
        reader.join().unwrap();
        writer.join().unwrap();
    });
}

#[test]
fn a_downstream_consumer_sees_changes_of_its_upstream() {
    check(|| {
        let mut build = single_producer(2, Watched::new).unwrap();
        let mut changes = build.exclusive_consumer().unwrap();
        let mut last = build.after(&[&changes]).unwrap();
        let mut producer = build.producer().unwrap();
        assert!(try_send(&mut producer, 1) && try_send(&mut producer, 2));
        let middle = thread::spawn(move || {
            changes.drain_mut(9, |run| {
                run.iter_mut().for_each(|value| {
                    let new = value.read() + 10;
                    value.write(new);
                });
            });
        });
        read(&mut last, 11..=12);
        middle.join().unwrap();
    });
}

#[test]
fn a_taker_waits_for_those_before_one_that_goes() {
    check(|| {
        let mut build = single_producer(1, Watched::new).unwrap();
        let mut first = build.consumer().unwrap();
        let middle = build.after(&[&first]).unwrap();
        let mut last = build.exclusive_after(&[&middle]).unwrap();
        let mut producer = build.producer().unwrap();
        assert!(try_send(&mut producer, 1));
        let reader = thread::spawn(move || read(&mut first, 1..=1));
        let leaver = thread::spawn(move || drop(middle));
        while last.drain_mut(1, |run| run[0].write(2)) == 0 {
            thread::yield_now();
        }
        reader.join().unwrap();
        leaver.join().unwrap();
    });
}

#[test]
fn a_leaving_consumer_has_finished_reading() {
    check(|| {
        let mut build = single_producer(1, Watched::new).unwrap();
        let mut leaves = build.consumer().unwrap();
        let mut stays = build.consumer().unwrap();
        let mut producer = build.producer().unwrap();
        assert!(try_send(&mut producer, 1));
        let leaver = thread::spawn(move || {
            leaves.drain(1, |run| assert_eq!(run[0].read(), 1));
        });
        read(&mut stays, 1..=1);
        send(&mut producer, 2);
        read(&mut stays, 2..=2);
        leaver.join().unwrap();
    });
}

#[test]
fn unpublished_values_of_a_stride_are_pulled_whole() {
    check(|| {
        let mut build =
            single_producer(2, Watched::new).unwrap().stride(2, std::time::Duration::ZERO);
        let mut consumer = build.consumer().unwrap();
        let mut producer = build.producer().unwrap();
        let writer = thread::spawn(move || {
            assert!(try_send(&mut producer, 1));
            producer
        });
        read(&mut consumer, 1..=1);
        drop(writer.join().unwrap());
        assert!(consumer.is_closed());
    });
}
