//! Every topology under every waiting strategy, with more threads than cores: nothing is lost,
//! nothing comes twice, each producer's values come in order, and everybody comes to an end.

use lanecast_base::WaitStrategy;
use lanecast_ring::rings::{self, Closed, Consumer, Lanes, Producer, Worker};
use std::thread;

/// Slots of each ring: so few that everybody often waits for everybody.
const CAPACITY: usize = 64;

/// A value: who made it, and its number there.
type Value = (usize, u64);

/// Values of each producer: few, since spinning threads on shared cores are slow.
const fn values(strategy: WaitStrategy) -> u64 {
    match strategy {
        WaitStrategy::BusySpin => 1_000,
        _ => 10_000,
    }
}

fn produce(mut producer: Producer<Value>, who: usize, count: u64) -> Result<(), Closed<Value>> {
    for number in 0..count {
        if number % 7 == 3 {
            // Some by claims, of which some are given back.
            let _ = producer.claim(3).map_err(|_| Closed((who, number)))?;
            let mut claim = producer.claim(1).map_err(|_| Closed((who, number)))?;
            claim[0] = (who, number);
            claim.commit();
        } else {
            producer.push((who, number))?;
        }
    }
    Ok(())
}

/// Next expected value of each producer.
struct Ledger(Vec<u64>);

impl Ledger {
    fn note(&mut self, &(who, number): &Value) {
        assert_eq!(number, self.0[who], "of producer {who}");
        self.0[who] += 1;
    }
}

fn read_all(mut consumer: Lanes<Consumer<Value>>, producers: usize, count: u64) {
    let mut ledger = Ledger(vec![0; producers]);
    while !consumer.is_closed() {
        let work = consumer.drain(usize::MAX, |run| run.iter().for_each(|v| ledger.note(v)));
        consumer.wait(work);
    }
    assert_eq!(ledger.0, vec![count; producers]);
}

/// Values of one worker: a part of each producer's, in order.
fn work_all(mut worker: Worker<Value>, producers: usize, singly: bool) -> Vec<u64> {
    let (mut next, mut sums) = (vec![0; producers], vec![0; producers]);
    let mut note = |(who, number): Value| {
        assert!(number >= next[who], "of producer {who}");
        next[who] = number + 1;
        sums[who] += number + 1;
    };
    while !worker.is_closed() {
        let work = if singly {
            worker.pop().map(&mut note).map_or(0, |()| 1)
        } else {
            worker.take(16, |run| run.iter().copied().for_each(&mut note))
        };
        worker.wait(work);
    }
    sums
}

fn readers_side_by_side(strategy: WaitStrategy, producers: usize, readers: usize) {
    let count = values(strategy);
    let mut build =
        rings::multi_producer(producers, CAPACITY, Value::default).unwrap().wait(strategy);
    let first: Vec<_> = (0..readers).map(|_| build.consumer().unwrap()).collect();
    let last = build.after(&first.iter().collect::<Vec<_>>()).unwrap();
    let ends = build.producers().unwrap();
    thread::scope(|scope| {
        for consumer in first.into_iter().chain([last]) {
            scope.spawn(move || read_all(consumer, producers, count));
        }
        for (who, producer) in ends.into_iter().enumerate() {
            scope.spawn(move || produce(producer, who, count).unwrap());
        }
    });
}

fn workers_share(strategy: WaitStrategy, producers: usize, workers: usize, singly: bool) {
    let count = values(strategy);
    let mut build =
        rings::multi_producer(producers, CAPACITY, Value::default).unwrap().wait(strategy);
    let workers = build.workers(workers).unwrap();
    let ends = build.producers().unwrap();
    let sums = thread::scope(|scope| {
        let workers = workers.into_iter();
        let threads: Vec<_> =
            workers.map(|w| scope.spawn(move || work_all(w, producers, singly))).collect();
        for (who, producer) in ends.into_iter().enumerate() {
            scope.spawn(move || produce(producer, who, count).unwrap());
        }
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    for who in 0..producers {
        let sum: u64 = sums.iter().map(|sums| sums[who]).sum();
        assert_eq!(sum, count * (count + 1) / 2, "of producer {who}");
    }
}

#[test]
fn a_diamond_with_one_producer() {
    WaitStrategy::ALL.into_iter().for_each(|strategy| readers_side_by_side(strategy, 1, 3));
}

#[test]
fn a_diamond_with_several_producers() {
    WaitStrategy::ALL.into_iter().for_each(|strategy| readers_side_by_side(strategy, 3, 2));
}

#[test]
fn workers_one_by_one() {
    WaitStrategy::ALL.into_iter().for_each(|strategy| workers_share(strategy, 1, 4, true));
}

#[test]
fn workers_of_several_producers_one_by_one() {
    WaitStrategy::ALL.into_iter().for_each(|strategy| workers_share(strategy, 4, 4, true));
}

#[test]
fn workers_of_several_producers_in_runs() {
    WaitStrategy::ALL.into_iter().for_each(|strategy| workers_share(strategy, 4, 4, false));
}
