//! End of handlers, explored by loom: the code of products, on loom's threads.

use super::event_source::{EventSource, HandlerRing};
use super::handler_thread::{
    HandlerRecord, HandlerThread, HandlersShared, StageCount, StageGuard, run_handler,
};
use super::panics::OnPanic;
use super::start_signal::StartSignal;
use super::{EventInfo, Handler};
use crate::producer::Producer;
use crate::rings::{Rings, multi_producer, single_producer};
use lanecast_base::WaitStrategy;
use lanecast_base::sync::{AtomicU64, Ordering, without_light_fences};
use loom::cell::UnsafeCell;
use loom::thread;
use std::sync::Arc;

fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    if builder.preemption_bound.is_none() {
        builder.preemption_bound = Some(2);
    }
    builder.check(model);
}

/// A cell that one thread writes before it ends something, and another reads after that.
struct Trace(UnsafeCell<u64>);

// SAFETY: loom finds accesses that are not ordered.
unsafe impl Sync for Trace {}
// SAFETY: as above.
unsafe impl Send for Trace {}

impl Trace {
    fn new() -> Arc<Self> {
        Arc::new(Self(UnsafeCell::new(0)))
    }

    fn leave(&self) {
        // SAFETY: loom reports accesses at the same time.
        self.0.with_mut(|trace| unsafe { *trace = 1 });
    }

    fn find(&self) {
        // SAFETY: loom reports writes at the same time.
        assert_eq!(self.0.with(|trace| unsafe { *trace }), 1);
    }
}

fn ring() -> Rings<u64> {
    single_producer(2, || 0).unwrap().wait(WaitStrategy::Park)
}

fn complete(ring: Rings<u64>) -> (Producer<u64>, Arc<HandlersShared>) {
    let (producer, control) = ring.complete().unwrap();
    (producer, Arc::new(HandlersShared::new(control)))
}

fn attend(
    shared: &Arc<HandlersShared>,
    stage_count: &Arc<StageCount>,
    before: Option<&Arc<StageCount>>,
) -> StageGuard {
    let (shared, stage_count) = (Arc::clone(shared), Arc::clone(stage_count));
    StageGuard { shared, stage_count, before: before.map(Arc::clone) }
}

#[test]
fn earlier_writes_are_visible_at_the_start_signal() {
    check(|| {
        let (start_signal, trace) = (Arc::new(StartSignal::new()), Trace::new());
        let arriving = {
            let (start_signal, trace) = (Arc::clone(&start_signal), Arc::clone(&trace));
            thread::spawn(move || {
                trace.leave();
                start_signal.tell(true);
            })
        };
        assert!(start_signal.wait());
        trace.find();
        arriving.join().unwrap();
    });
}

#[test]
fn a_stage_is_over_when_all_of_it_are_done() {
    check(|| {
        let mut ring = ring();
        let _consumer = ring.consumer().unwrap();
        let (_producer, shared) = complete(ring);
        let (first, second) = (Arc::new(StageCount::new(2)), Arc::new(StageCount::new(1)));
        let leavers: Vec<_> = (0..2)
            .map(|_| {
                let (guard, trace) = (attend(&shared, &first, None), Trace::new());
                let left = Arc::clone(&trace);
                let leaver = thread::spawn(move || {
                    left.leave();
                    drop(guard);
                });
                (leaver, trace)
            })
            .collect();
        let behind = attend(&shared, &second, Some(&first));
        while !behind.is_over() {
            thread::yield_now();
        }
        leavers.iter().for_each(|(_, trace)| trace.find());
        leavers.into_iter().for_each(|(leaver, _)| leaver.join().unwrap());
    });
}

/// A handler's place, fed from `source`.
fn post(
    source: Box<dyn EventSource<u64>>,
    guard: StageGuard,
    handled: &Arc<AtomicU64>,
) -> HandlerThread<u64> {
    let record = HandlerRecord::new("model".to_owned(), OnPanic::Halt, Arc::clone(handled));
    HandlerThread { source, guard, record }
}

struct Quiet;

impl Handler<u64> for Quiet {
    fn on_event(&mut self, event: &u64, place: EventInfo) {
        assert_eq!((*event, place.sequence), (7, 0));
    }
}

#[test]
fn the_end_is_seen_after_all_earlier_values() {
    // No thread sleeps here, and full fences would hide a missing ordering.
    without_light_fences(|| {
        check(|| {
            let mut ring = ring();
            let mut consumer = ring.consumer().unwrap();
            let (mut producer, shared) = complete(ring);
            let guard = attend(&shared, &Arc::new(StageCount::new(1)), None);
            let reader = thread::spawn(move || {
                while !guard.is_over() {
                    thread::yield_now();
                }
                assert_eq!(consumer.drain(9, |values| assert_eq!(values, [7])), 1);
            });
            producer.push(7).unwrap();
            shared.close();
            reader.join().unwrap();
        });
    });
}

#[test]
fn a_sleeping_handler_receives_values_published_before_the_end() {
    check(|| {
        let mut ring = ring();
        let consumer = ring.consumer().unwrap();
        let (mut producer, shared) = complete(ring);
        let handled = Arc::new(AtomicU64::new(0));
        let guard = attend(&shared, &Arc::new(StageCount::new(1)), None);
        let post = post(Box::new(consumer), guard, &handled);
        let handler = thread::spawn(move || run_handler(post, Quiet));
        producer.push(7).unwrap();
        // The producer itself lives on.
        shared.close();
        let source = handler.join().unwrap();
        assert_eq!(handled.load(Ordering::Relaxed), 1);
        drop((source, producer));
    });
}

#[test]
fn a_handler_that_sleeps_is_woken_by_the_end_of_those_before_it() {
    check(|| {
        let mut ring = ring();
        let before = ring.consumer().unwrap();
        let consumer = ring.after(&[&before]).unwrap();
        let (producer, shared) = complete(ring);
        let (first, second) = (Arc::new(StageCount::new(1)), Arc::new(StageCount::new(1)));
        let handled = Arc::new(AtomicU64::new(0));
        let post = post(Box::new(consumer), attend(&shared, &second, Some(&first)), &handled);
        let leaving = attend(&shared, &first, None);
        let handler = thread::spawn(move || run_handler(post, Quiet));
        drop(leaving);
        drop(handler.join().unwrap());
        drop((before, producer));
    });
}

/// A handler of any values.
struct Counting;

impl Handler<u64> for Counting {
    fn on_event(&mut self, _: &u64, _: EventInfo) {}
}

#[test]
fn a_worker_that_ends_handles_the_share_of_one_that_stopped() {
    check(|| {
        let mut ring = multi_producer(2, 2, || 0).unwrap().wait(WaitStrategy::Park);
        let workers = ring.share(2, &[]).unwrap();
        let [working, mut stopping] = <[_; 2]>::try_from(workers).unwrap();
        let (mut producers, control) = ring.complete().unwrap();
        let shared = Arc::new(HandlersShared::new(control));
        let handled = Arc::new(AtomicU64::new(0));
        let stage_count = Arc::new(StageCount::new(1));
        let post = post(Box::new(working), attend(&shared, &stage_count, None), &handled);
        let handler = thread::spawn(move || run_handler(post, Counting));
        producers[1].push(1).unwrap();
        producers[1].push(2).unwrap();
        // It stops reading here, as one that a panic halts.
        let taken = stopping.take(1, |_| ()) as u64;
        shared.close();
        let source = handler.join().unwrap();
        assert_eq!(taken + handled.load(Ordering::Relaxed), 2);
        drop((source, producers, stopping));
    });
}

#[test]
fn a_producer_that_sleeps_is_woken_by_a_refusal() {
    check(|| {
        let mut ring = ring();
        let consumer = ring.consumer().unwrap();
        let (mut producer, shared) = complete(ring);
        producer.push(1).unwrap();
        producer.push(2).unwrap();
        let pushing = thread::spawn(move || producer.push(3).is_err());
        shared.control.stop_producer();
        assert!(pushing.join().unwrap());
        drop(consumer);
    });
}
