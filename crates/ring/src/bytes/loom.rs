//! The byte ring's hand-offs, explored by loom: the code that products run.
//!
//! Every access to the ring's bytes is told to the model checker, so that a consumer that looks
//! too early, or a producer that writes too early, is found as a data race.

use super::{ByteConsumer, ByteProducer, ClaimError, multi_producer, single_producer};
use lanecast_base::WaitStrategy;
use lanecast_base::sync::{Arc, AtomicBool, Ordering, without_light_fences};
use loom::thread;
use std::time::Duration;

/// The smallest ring: four messages of 8 bytes, or two of 24.
const CAPACITY: usize = 64;

fn check(model: impl Fn() + Sync + Send + 'static) {
    without_light_fences(|| check_sleep(model));
}

/// Explores a model with sleepers, whose light fences are full ones.
fn check_sleep(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    if builder.preemption_bound.is_none() {
        builder.preemption_bound = Some(3);
    }
    builder.check(model);
}

fn send(producer: &mut ByteProducer, message: &[u8]) {
    while let Err(error) = producer.try_send(message) {
        assert_eq!(error, ClaimError::Full);
        thread::yield_now();
    }
}

/// Reads until the messages in `expected` have come.
fn read(consumer: &mut ByteConsumer, expected: &[&[u8]]) {
    let mut count = 0;
    while count < expected.len() {
        let work = consumer.poll(usize::MAX, |message| {
            assert_eq!(message, expected[count]);
            count += 1;
        });
        if work == 0 {
            thread::yield_now();
        }
    }
}

#[test]
fn a_published_message_is_whole_and_the_end_comes_last() {
    check(|| {
        let mut build = single_producer(CAPACITY).unwrap();
        let mut consumer = build.consumer();
        let mut producer = build.producer().unwrap();
        let writer = thread::spawn(move || {
            send(&mut producer, b"one");
            send(&mut producer, b"eleven bytes");
        });
        read(&mut consumer, &[b"one", b"eleven bytes"]);
        while !consumer.is_closed() {
            assert_eq!(consumer.poll(9, |_| ()), 0);
            thread::yield_now();
        }
        writer.join().unwrap();
    });
}

#[test]
fn values_are_not_overwritten_before_they_are_read() {
    check(|| {
        let mut build = single_producer(CAPACITY).unwrap();
        let mut consumer = build.consumer();
        let mut producer = build.producer().unwrap();
        let writer = thread::spawn(move || {
            // The third is padded to the start and waits for the first; so does the fourth.
            send(&mut producer, &[1; 24]);
            send(&mut producer, &[2; 8]);
            send(&mut producer, &[3; 16]);
            send(&mut producer, &[4; 24]);
        });
        read(&mut consumer, &[&[1; 24], &[2; 8], &[3; 16], &[4; 24]]);
        writer.join().unwrap();
    });
}

#[test]
fn the_next_owner_sees_released_writes() {
    check(|| {
        let mut build = single_producer(CAPACITY).unwrap();
        let mut first = build.consumer();
        let mut second = build.after(&[&first]).unwrap();
        let mut producer = build.producer().unwrap();
        send(&mut producer, &[1; 24]);
        send(&mut producer, &[2; 24]);
        let middle = thread::spawn(move || read(&mut first, &[&[1; 24], &[2; 24]]));
        read(&mut second, &[&[1; 24], &[2; 24]]);
        middle.join().unwrap();
    });
}

#[test]
fn the_last_of_a_chain_holds_the_producer_up() {
    check(|| {
        let mut build = single_producer(CAPACITY).unwrap();
        let mut first = build.consumer();
        let mut second = build.after(&[&first]).unwrap();
        let mut producer = build.producer().unwrap();
        send(&mut producer, &[1; 24]);
        send(&mut producer, &[2; 24]);
        let writer = thread::spawn(move || send(&mut producer, &[3; 24]));
        read(&mut first, &[&[1; 24], &[2; 24]]);
        read(&mut second, &[&[1; 24], &[2; 24]]);
        read(&mut first, &[&[3; 24]]);
        read(&mut second, &[&[3; 24]]);
        writer.join().unwrap();
    });
}

#[test]
fn the_last_of_a_chain_waits_for_those_before_one_that_leaves() {
    check(|| {
        let mut build = single_producer(CAPACITY).unwrap();
        let mut first = build.consumer();
        let middle = build.after(&[&first]).unwrap();
        let mut last = build.after(&[&middle]).unwrap();
        let mut producer = build.producer().unwrap();
        send(&mut producer, &[1; 24]);
        let has_read = Arc::new(AtomicBool::new(false));
        let reads = Arc::clone(&has_read);
        let reader = thread::spawn(move || {
            first.poll(1, |_| reads.store(true, Ordering::Relaxed));
        });
        let leaver = thread::spawn(move || drop(middle));
        while last.poll(1, |_| assert!(has_read.load(Ordering::Relaxed))) == 0 {
            thread::yield_now();
        }
        reader.join().unwrap();
        leaver.join().unwrap();
    });
}

#[test]
fn a_batch_becomes_visible_as_a_whole() {
    check(|| {
        let mut build = single_producer(CAPACITY).unwrap();
        let mut consumer = build.consumer();
        let mut producer = build.producer().unwrap();
        let writer = thread::spawn(move || {
            let mut batch = producer.batch();
            for number in 1..=3 {
                batch.try_add(8).unwrap().fill(number);
            }
            batch.publish();
        });
        let mut seen = 0;
        while seen == 0 {
            seen = consumer.poll(9, |_| ());
            thread::yield_now();
        }
        assert_eq!(seen, 3);
        writer.join().unwrap();
    });
}

#[test]
fn a_leaving_consumer_has_finished_reading() {
    check(|| {
        let mut build = single_producer(CAPACITY).unwrap();
        let mut leaving = build.consumer();
        let mut staying = build.consumer();
        let mut producer = build.producer().unwrap();
        send(&mut producer, &[1; 24]);
        send(&mut producer, &[2; 24]);
        let leaver = thread::spawn(move || {
            leaving.poll(1, |message| assert_eq!(message, [1; 24]));
        });
        read(&mut staying, &[&[1; 24], &[2; 24]]);
        send(&mut producer, &[3; 24]);
        leaver.join().unwrap();
        drop(staying);
        while producer.try_send(&[4; 24]) != Err(ClaimError::Closed) {}
    });
}

/// Longer than a model: only the producer itself can publish a message.
const LONG: Duration = Duration::from_secs(100_000);

#[test]
fn a_message_that_is_held_back_wakes_who_sleeps() {
    check_sleep(|| {
        let build = single_producer(CAPACITY).unwrap();
        let mut build = build.wait(WaitStrategy::Park).stride(100, LONG);
        let mut consumer = build.consumer();
        let mut producer = build.producer().unwrap();
        let writer = thread::spawn(move || {
            producer.try_send(b"held").unwrap();
            producer
        });
        // Never polled before it sleeps, so it can only be woken.
        consumer.wait(0);
        let producer = writer.join().unwrap();
        drop(producer);
        read(&mut consumer, &[b"held"]);
    });
}

#[test]
fn a_sleeper_on_several_lanes_is_woken_by_each_and_by_their_end() {
    check_sleep(|| {
        let mut build = multi_producer(2, CAPACITY).unwrap().wait(WaitStrategy::Park);
        let mut consumer = build.consumer();
        let mut producers = build.producers().unwrap();
        let mut writes = producers.pop().unwrap();
        drop(producers);
        let writer = thread::spawn(move || writes.try_send(b"new").unwrap());
        let mut count = 0;
        while !consumer.is_closed() {
            let work = consumer.poll(9, |message| assert_eq!(message, b"new"));
            count += work;
            consumer.wait(work);
        }
        assert_eq!(count, 1);
        writer.join().unwrap();
    });
}

#[test]
fn a_producer_that_sleeps_is_woken_by_the_slowest() {
    check_sleep(|| {
        let build = single_producer(CAPACITY).unwrap();
        let mut build = build.wait(WaitStrategy::Park);
        let mut consumer = build.consumer();
        let mut producer = build.producer().unwrap();
        producer.try_send(&[1; 24]).unwrap();
        producer.try_send(&[2; 24]).unwrap();
        let writer = thread::spawn(move || producer.send(&[3; 24]).unwrap());
        read(&mut consumer, &[&[1; 24], &[2; 24]]);
        writer.join().unwrap();
        read(&mut consumer, &[&[3; 24]]);
    });
}

#[test]
fn producers_do_not_meet() {
    check(|| {
        let mut build = multi_producer(2, CAPACITY).unwrap();
        let mut consumer = build.consumer();
        let mut producers = build.producers().unwrap();
        let mut late = producers.pop().unwrap();
        let mut early = producers.pop().unwrap();
        // An abandoned claim.
        let forgotten = early.try_claim(24).unwrap();
        let writer = thread::spawn(move || send(&mut late, b"late"));
        read(&mut consumer, &[b"late"]);
        forgotten.abort();
        writer.join().unwrap();
    });
}
