//! Every value that is ever made is dropped once: by factories, pushes, claims and takers.

use super::value::{Value, assert_all_dropped, live};
use lanecast_ring::rings::{self, Consumer, EventInfo, ExclusiveConsumer, Producer, PushError};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::thread;

const CAPACITY: usize = 4;

fn fall() {
    resume_unwind(Box::new("of the test"));
}

/// Two readers, and an exclusive consumer behind them.
fn three() -> (Producer<Value>, [Consumer<Value>; 2], ExclusiveConsumer<Value>) {
    let mut build = rings::single_producer(CAPACITY, Value::default).unwrap();
    let readers = [(); 2].map(|()| build.consumer().unwrap());
    let exclusive_consumer = build.exclusive_after(&[&readers[0], &readers[1]]).unwrap();
    (build.producer().unwrap(), readers, exclusive_consumer)
}

fn orders(left: Vec<usize>) -> Vec<Vec<usize>> {
    if left.is_empty() {
        return vec![Vec::new()];
    }
    let begin_with = |first: &usize| {
        let rest = left.iter().copied().filter(|other| other != first).collect();
        let first = *first;
        orders(rest).into_iter().map(move |rest| [vec![first], rest].concat())
    };
    left.iter().flat_map(begin_with).collect()
}

#[test]
fn a_factory_that_panics() {
    let mut made = 0;
    let factory = || {
        made += 1;
        if made == 3 {
            fall();
        }
        Value::default()
    };
    let built =
        catch_unwind(AssertUnwindSafe(|| rings::single_producer(CAPACITY, factory).is_ok()));
    assert!(built.is_err());
    assert_all_dropped();
}

#[test]
fn ends_that_go_in_any_order() {
    for order in orders((0..4).collect()) {
        for (pushed, read, popped) in [(0, 0, 0), (3, 3, 1), (4, 2, 2), (4, 4, 4)] {
            let (mut producer, [mut first, mut second], mut exclusive_consumer) = three();
            (0..pushed).for_each(|number| producer.push(Value::new(Some((0, number)))).unwrap());
            assert_eq!((first.drain(read, |_| {}), second.drain(read, |_| {})), (read, read));
            for _ in 0..popped {
                assert!(exclusive_consumer.pop().is_some());
            }
            assert_eq!(live(), CAPACITY, "whatever was taken out has left a default");
            let ends: [Box<dyn Any>; 4] = [
                Box::new(producer),
                Box::new(first),
                Box::new(second),
                Box::new(exclusive_consumer),
            ];
            let mut ends = ends.map(Some);
            for &end in &order {
                assert_eq!(live(), CAPACITY);
                ends[end] = None;
            }
            assert_all_dropped();
        }
    }
}

#[test]
fn claims_that_are_dropped_or_leaked() {
    let (mut producer, [first, second], mut exclusive_consumer) = three();
    drop((first, second));
    for lap in 0..3 * CAPACITY {
        let mut claim = producer.try_claim(3).unwrap();
        claim.fill_with(Value::default);
        drop(claim);
        let mut claim = producer.try_claim(2).unwrap();
        claim.fill_with(|| Value::new(Some((lap, 1))));
        core::mem::forget(claim);
        let claim = producer.try_claim(1).unwrap();
        assert_eq!(*claim[0].label, Some((lap, 1)), "still there");
        claim.commit();
        assert!(exclusive_consumer.pop().is_some());
        assert_eq!(live(), CAPACITY);
    }
    drop((producer, exclusive_consumer));
    assert_all_dropped();
}

#[test]
fn values_without_consumers() {
    let (mut producer, [first, second], exclusive_consumer) = three();
    (0..CAPACITY).for_each(|_| producer.push(Value::default()).unwrap());
    let Err(PushError::Full(back)) = producer.try_push(Value::default()) else { panic!("full") };
    assert_eq!(live(), CAPACITY + 1);
    drop((first, second, exclusive_consumer));
    let Err(rings::Closed(again)) = producer.push(back) else { panic!("closed") };
    assert_eq!(live(), CAPACITY + 1);
    drop((producer, again));
    assert_all_dropped();
}

#[test]
fn a_value_whose_handler_panics_is_consumed() {
    let (mut producer, [mut first, second], mut exclusive_consumer) = three();
    drop(second);
    for _ in 0..5 {
        (0..CAPACITY).for_each(|_| producer.try_push(Value::default()).unwrap());
        for _ in 0..2 {
            let fallen = catch_unwind(AssertUnwindSafe(|| first.drain(2, |_| fall())));
            assert!(fallen.is_err());
        }
        assert_eq!(first.drain(9, |_| {}), 0, "all of them are consumed");
        let take = |values: &mut [Value]| {
            drop(core::mem::take(&mut values[0]));
            fall();
        };
        assert!(
            catch_unwind(AssertUnwindSafe(|| exclusive_consumer.drain_mut(CAPACITY, take)))
                .is_err()
        );
        assert!(exclusive_consumer.pop().is_none());
        assert_eq!(live(), CAPACITY);
    }
    drop((exclusive_consumer, first, producer));
    assert_all_dropped();
}

#[test]
fn workers_that_fall_or_go() {
    let mut build = rings::multi_producer(2, CAPACITY, Value::default).unwrap();
    let mut workers = build.workers(2).unwrap();
    let mut producers = build.producers().unwrap();
    for round in 0..6 {
        let lane = round % 2;
        (0..CAPACITY).for_each(|_| producers[lane].try_push(Value::default()).unwrap());
        let take = |values: &mut [Value]| {
            drop(core::mem::take(&mut values[0]));
            fall();
        };
        let fallen = catch_unwind(AssertUnwindSafe(|| workers[lane].take(CAPACITY, take)));
        assert!(fallen.is_err());
        assert_eq!(live(), 2 * CAPACITY);
    }
    producers[0].try_push(Value::default()).unwrap();
    drop(workers);
    drop(producers);
    assert_all_dropped();
}

/// The count of an `Arc` is exact on all threads.
#[test]
fn values_that_end_on_other_threads() {
    let counted = Arc::new(());
    let mut build = rings::multi_producer(2, 8, || Some(Arc::clone(&counted))).unwrap();
    let workers = build.workers(2).unwrap();
    let producers = build.producers().unwrap();
    assert_eq!(Arc::strong_count(&counted), 17);
    let count = if cfg!(miri) { 20 } else { 2_000 };
    thread::scope(|scope| {
        for mut producer in producers {
            let counted = &counted;
            scope.spawn(move || {
                (0..count).all(|_| producer.push(Some(Arc::clone(counted))).is_ok())
            });
        }
        for (number, mut worker) in workers.into_iter().enumerate() {
            scope.spawn(move || {
                // One of them goes in the middle, the other before the end.
                for _ in 0..count / (number + 2) {
                    let work = usize::from(worker.pop().is_some());
                    worker.wait(work);
                }
            });
        }
    });
    assert_eq!(Arc::strong_count(&counted), 1);
}

#[test]
fn handlers_that_panic() {
    let counted = Arc::new(());
    let ring = rings::single_producer(4, || (0, Arc::clone(&counted))).unwrap();
    let fall_at = |value: &(u32, Arc<()>), _: EventInfo| {
        if value.0 == 5 {
            fall();
        }
    };
    let look = |value: &(u32, Arc<()>), _: EventInfo| assert!(Arc::strong_count(&value.1) > 1);
    let mut handlers = ring.handle_with((fall_at, look)).start().unwrap();
    let producer = handlers.producer();
    // Pushed until the panic has closed the ring, or the end.
    let _ = (0..20).all(|number| producer.push((number, Arc::clone(&counted))).is_ok());
    assert!(handlers.finish().is_err());
    assert_eq!(Arc::strong_count(&counted), 1);
}
