//! No thread sleeps through the event it waits for.

use super::{Watched, check, check_sleep, try_send};
use crate::park_flag::{ParkFlag, Sleeper};
use crate::rings::{multi_producer, single_producer};
use lanecast_base::WaitStrategy;
use lanecast_base::sync::{Arc, AtomicU64, Ordering};
use loom::thread;

#[test]
fn a_consumer_that_sleeps_is_woken_by_values_and_by_their_end() {
    check_sleep(|| {
        let mut build = single_producer(2, Watched::new).unwrap().wait(WaitStrategy::Park);
        let mut consumer = build.consumer().unwrap();
        let mut producer = build.producer().unwrap();
        let writer = thread::spawn(move || assert!(try_send(&mut producer, 1)));
        let mut count = 0;
        while !consumer.is_closed() {
            let work = consumer.drain(9, |run| assert_eq!(run[0].read(), 1));
            count += work;
            consumer.wait(work);
        }
        assert_eq!(count, 1);
        writer.join().unwrap();
    });
}

#[test]
fn a_sleeping_producer_is_woken_by_room_and_by_leaving_consumers() {
    check_sleep(|| {
        let mut build = single_producer(1, Watched::new).unwrap().wait(WaitStrategy::Park);
        let mut consumer = build.consumer().unwrap();
        let mut producer = build.producer().unwrap();
        assert!(try_send(&mut producer, 1));
        let reader = thread::spawn(move || assert_eq!(consumer.drain(1, |_| {}), 1));
        // Space for one, and then all consumers are gone.
        if let Ok(claim) = producer.claim(1) {
            claim.commit();
            assert!(producer.claim(1).is_err());
        }
        reader.join().unwrap();
    });
}

#[test]
fn a_sleeper_on_a_chain_is_woken_by_the_end() {
    check_sleep(|| {
        let mut build = single_producer(1, Watched::new).unwrap().wait(WaitStrategy::Park);
        let first = build.consumer().unwrap();
        let mut last = build.after(&[&first]).unwrap();
        let producer = build.producer().unwrap();
        let writer = thread::spawn(move || drop(producer));
        while !last.is_closed() {
            last.wait(0);
        }
        writer.join().unwrap();
        drop(first);
    });
}

#[test]
fn a_sleeper_is_woken_while_a_stride_delays_publication() {
    check_sleep(|| {
        let build = single_producer(2, Watched::new).unwrap();
        let mut build = build.wait(WaitStrategy::Park).stride(2, super::LONG);
        let mut consumer = build.consumer().unwrap();
        let mut producer = build.producer().unwrap();
        let writer = thread::spawn(move || {
            assert!(try_send(&mut producer, 1));
            producer
        });
        // Never polled before it sleeps, so it can only be woken.
        consumer.wait(0);
        drop(writer.join().unwrap());
    });
}

#[test]
fn a_consumer_that_has_pulled_is_woken() {
    check_sleep(|| {
        let build = single_producer(4, Watched::new).unwrap();
        let mut build = build.wait(WaitStrategy::Park).stride(4, std::time::Duration::ZERO);
        let mut consumer = build.consumer().unwrap();
        let mut producer = build.producer().unwrap();
        assert!(try_send(&mut producer, 1));
        assert_eq!(consumer.drain(1, |_| {}), 1, "beyond the tail");
        consumer.wait(1);
        let writer = thread::spawn(move || {
            assert!(try_send(&mut producer, 2));
            producer
        });
        let mut count = 0;
        while count == 0 {
            count = consumer.drain(9, |run| assert_eq!(run[0].read(), 2));
            consumer.wait(count);
        }
        drop(writer.join().unwrap());
    });
}

#[test]
fn publishers_fence_for_one_that_sleeps_often() {
    // As in products: only the fence that is asked for.
    check(|| {
        let shared = Arc::new((ParkFlag::default(), AtomicU64::new(0)));
        let publisher = Arc::clone(&shared);
        let mut sleeper = Sleeper::default();
        // So weary that the second time it has publishers fence, and itself pays little.
        for _ in 0..4 {
            shared.0.mark(&mut sleeper);
            assert!(shared.0.unmark());
        }
        let other = thread::spawn(move || {
            publisher.1.store(1, Ordering::Relaxed);
            publisher.0.must_wake()
        });
        shared.0.mark(&mut sleeper);
        let seen = shared.1.load(Ordering::Relaxed) == 1;
        let owed = other.join().unwrap();
        assert!(seen || owed, "slept through it");
        shared.0.forget(&mut sleeper);
    });
}

#[test]
fn a_sleeper_on_several_lanes_is_woken_by_each_and_by_their_end() {
    check_sleep(|| {
        let mut build = multi_producer(2, 1, Watched::new).unwrap().wait(WaitStrategy::Park);
        let mut consumer = build.consumer().unwrap();
        let mut producers = build.producers().unwrap();
        let mut writes = producers.pop().unwrap();
        drop(producers);
        let writer = thread::spawn(move || assert!(try_send(&mut writes, 1)));
        let mut count = 0;
        while !consumer.is_closed() {
            let work = consumer.drain(9, |run| assert_eq!(run[0].read(), 1));
            count += work;
            consumer.wait(work);
        }
        assert_eq!(count, 1);
        writer.join().unwrap();
    });
}

#[test]
fn workers_that_sleep_are_woken_one_after_the_other() {
    check_sleep(|| {
        let mut build = single_producer(2, Watched::new).unwrap().wait(WaitStrategy::Park);
        let workers = build.workers(2).unwrap();
        let mut producer = build.producer().unwrap();
        let work = |mut worker: crate::rings::Worker<Watched>| {
            move || {
                let mut count = 0;
                while !worker.is_closed() {
                    let work = worker.take(1, |_| {});
                    count += work;
                    worker.wait(work);
                }
                count
            }
        };
        let [one, mut other] = <[_; 2]>::try_from(workers).unwrap().map(work);
        let worker = thread::spawn(one);
        let writer = thread::spawn(move || assert!(try_send(&mut producer, 1)));
        let count = other();
        assert_eq!(count + worker.join().unwrap(), 1);
        writer.join().unwrap();
    });
}

#[test]
fn a_producer_that_waits_for_a_worker_is_woken_when_it_loses_a_race() {
    check_sleep(|| {
        let mut build = single_producer(2, Watched::new).unwrap().wait(WaitStrategy::Park);
        let [mut first, mut second] = <[_; 2]>::try_from(build.workers(2).unwrap()).unwrap();
        let mut producer = build.producer().unwrap();
        assert!(try_send(&mut producer, 1) && try_send(&mut producer, 2));
        let writer = thread::spawn(move || producer.claim(1).unwrap().commit());
        let worker = thread::spawn(move || first.take(1, |_| {}));
        let mut writer = Some(writer);
        second.take(1, |run| {
            // The slot of value 1 is free, or the other worker's to free: a run that waits for the
            // producer must not keep it asleep.
            if run[0].read() == 2 {
                writer.take().unwrap().join().unwrap();
            }
        });
        worker.join().unwrap();
        if let Some(writer) = writer {
            writer.join().unwrap();
        }
    });
}
