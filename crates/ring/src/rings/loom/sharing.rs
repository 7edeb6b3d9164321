//! Several workers, several producers.

use super::{Watched, check, send, try_send};
use crate::rings::{Worker, multi_producer, single_producer};
use loom::thread;

/// Takes one value, leaving 0.
fn take(worker: &mut Worker<Watched>) -> u64 {
    let mut taken = 0;
    worker.take(1, |run| {
        taken = run[0].read();
        run[0].write(0);
    });
    taken
}

#[test]
fn each_value_goes_to_one_worker_and_none_is_overwritten_while_it_is_at_work() {
    check(|| {
        let mut build = single_producer(2, Watched::new).unwrap();
        let mut workers = build.workers(2).unwrap();
        let mut producer = build.producer().unwrap();
        assert!(try_send(&mut producer, 1) && try_send(&mut producer, 2));
        let mut one = workers.pop().unwrap();
        let mut other = workers.pop().unwrap();
        let worker = thread::spawn(move || (take(&mut one), one));
        let writer = thread::spawn(move || (try_send(&mut producer, 4), producer));
        let mut sum = take(&mut other);
        let (taken, _one) = worker.join().unwrap();
        let (written, _producer) = writer.join().unwrap();
        sum += taken;
        // No other worker is left: everything that was not taken is there.
        loop {
            match take(&mut other) {
                0 => break,
                taken => sum += taken,
            }
        }
        assert_eq!(sum, if written { 7 } else { 3 });
    });
}

#[test]
fn the_producer_comes_round_when_the_worker_is_done() {
    check(|| {
        let mut build = single_producer(1, Watched::new).unwrap();
        let mut worker = build.workers(1).unwrap().remove(0);
        let mut producer = build.producer().unwrap();
        let writer = thread::spawn(move || (1..=3).for_each(|value| send(&mut producer, value)));
        let mut next = 1;
        while next <= 3 {
            match take(&mut worker) {
                0 => thread::yield_now(),
                taken => {
                    assert_eq!(taken, next);
                    next += 1;
                }
            }
        }
        writer.join().unwrap();
    });
}

#[test]
fn a_worker_that_goes_has_finished_its_run() {
    check(|| {
        let mut build = single_producer(1, Watched::new).unwrap();
        let mut workers = build.workers(2).unwrap();
        let mut producer = build.producer().unwrap();
        assert!(try_send(&mut producer, 1));
        let mut goes = workers.pop().unwrap();
        let worker = thread::spawn(move || take(&mut goes));
        let written = try_send(&mut producer, 2);
        let taken = worker.join().unwrap();
        assert_eq!(taken, 1);
        assert!(written || try_send(&mut producer, 2));
        assert_eq!(take(&mut workers[0]), 2);
    });
}

#[test]
fn an_unfilled_claim_holds_up_no_other_producer() {
    check(|| {
        let mut build = multi_producer(2, 1, Watched::new).unwrap();
        let mut consumer = build.consumer().unwrap();
        let mut producers = build.producers().unwrap();
        let mut fills = producers.pop().unwrap();
        let claim = producers[0].try_claim(1).unwrap();
        let writer = thread::spawn(move || (1..=2).for_each(|value| send(&mut fills, value)));
        let mut next = 1;
        while next <= 2 {
            let work = consumer.drain(9, |run| {
                assert_eq!(run[0].read(), next);
                next += 1;
            });
            if work == 0 {
                thread::yield_now();
            }
        }
        writer.join().unwrap();
        claim.commit();
    });
}
