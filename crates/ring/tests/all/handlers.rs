//! Handlers on threads of their own: order, panics, endings.
#![cfg(not(loom))]
#![forbid(unsafe_code)]

use lanecast_base::WaitStrategy;
use lanecast_ring::rings::{self, EventInfo, Handler, OnPanic, StartError, named};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

const DEADLINE: Duration = Duration::from_secs(60);

/// Runs `test` and fails if it hangs.
fn bounded(test: impl FnOnce() + Send + 'static) {
    let (done, is_done) = channel();
    let thread = thread::spawn(move || {
        test();
        let _ = done.send(());
    });
    let is_stuck =
        is_done.recv_timeout(DEADLINE) == Err(std::sync::mpsc::RecvTimeoutError::Timeout);
    assert!(!is_stuck, "it hangs");
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

/// A handler that notes what it sees, and what it has seen.
fn recorder() -> (impl FnMut(&u64, EventInfo) + Send + 'static, Receiver<(u64, EventInfo)>) {
    let (seen, all) = channel();
    (move |value: &u64, place: EventInfo| seen.send((*value, place)).unwrap_or_default(), all)
}

fn values(seen: Receiver<(u64, EventInfo)>) -> Vec<u64> {
    seen.iter().map(|(value, _)| value).collect()
}

#[test]
fn every_stage_sees_all_in_order_and_never_too_early() {
    bounded(|| {
        let count = if std::env::var_os("LONG_TESTS").is_some() { 200_000 } else { 5000 };
        for strategy in [WaitStrategy::SpinYield, WaitStrategy::SpinPark, WaitStrategy::Park] {
            // How far each of the seven handlers of three stages is.
            let at = Arc::new([const { Mutex::new(0_u64) }; 7]);
            let handler = |own: usize, before: core::ops::Range<usize>| {
                let at = Arc::clone(&at);
                move |value: &u64, place: EventInfo| {
                    assert_eq!(*value, place.sequence);
                    let is_late = |n: usize| *at[n].lock().unwrap() > *value;
                    assert!(before.clone().all(is_late), "{own} is early");
                    *at[own].lock().unwrap() += 1;
                }
            };
            let mut handlers = rings::single_producer(64, || 0)
                .unwrap()
                .wait(strategy)
                .handle_with((handler(0, 0..0), handler(1, 0..0), handler(2, 0..0)))
                .then(vec![handler(3, 0..3), handler(4, 0..3), handler(5, 0..3)])
                .then(handler(6, 3..6))
                .start()
                .unwrap();
            for value in 0..count {
                handlers.producer().push(value).unwrap();
            }
            let report = handlers.finish().unwrap();
            assert_eq!(report.handlers.len(), 7);
            assert!(report.handlers.iter().all(|handler| handler.messages == count), "{report:?}");
            assert_eq!(report.handlers[4].handler, "handler-2-2");
        }
    });
}

#[test]
fn the_last_of_a_batch_is_known() {
    bounded(|| {
        let (handler, seen) = recorder();
        let mut handlers =
            rings::single_producer(256, || 0).unwrap().handle_with(handler).start().unwrap();
        let mut claim = handlers.producer().try_claim(100).unwrap();
        claim.iter_mut().zip(0..).for_each(|(slot, value)| *slot = value);
        claim.commit();
        handlers.finish().unwrap();
        for (value, place) in seen {
            let expected = EventInfo { sequence: value, end_of_batch: value == 99 };
            assert_eq!(place, expected, "one batch, however often it is released on the way");
        }
    });
}

#[test]
fn a_panic_halts_its_handler_and_those_behind_it_only() {
    for stage in 0..3 {
        bounded(move || {
            let (mut handlers, mut seen) = (Vec::new(), Vec::new());
            for own in 0..3 {
                let (mut handler, all) = recorder();
                let failing = move |value: &u64, place: EventInfo| {
                    assert!(own != stage || *value != 40, "no forties");
                    handler(value, place);
                };
                handlers.push(named(format!("stage {own}"), failing));
                seen.push(all);
            }
            let (beside, beside_saw) = recorder();
            let mut handlers = handlers.into_iter();
            let mut next = || handlers.next().unwrap();
            let mut running = rings::single_producer(16, || 0)
                .unwrap()
                .handle_with((next(), beside))
                .then(next())
                .then(next())
                .start()
                .unwrap();
            let mut sent = 0;
            // More than any ring holds: in the end the ring is closed.
            while running.producer().push(sent).is_ok() {
                sent += 1;
                assert!(sent < 100, "a halted handler lets all pass");
            }
            assert!(running.producer().is_closed());
            let panicked = running.finish().unwrap_err();
            assert_eq!(panicked.handler, format!("stage {stage}"));
            assert_eq!((panicked.sequence, panicked.count), (40, 1));
            assert_eq!(panicked.message, "no forties");
            let text = panicked.to_string();
            assert!(text.contains("panicked at message 40: no forties"), "{text}");
            for (own, all) in seen.into_iter().enumerate() {
                let expected = if own < stage { sent } else { 40 };
                assert_eq!(values(all), (0..expected).collect::<Vec<_>>(), "stage {own}");
                assert_eq!(panicked.report.handlers[own + usize::from(own > 0)].messages, expected);
            }
            assert_eq!(values(beside_saw), (0..sent).collect::<Vec<_>>());
        });
    }
}

#[test]
fn a_panic_frees_a_producer_that_waits_for_room() {
    for strategy in [WaitStrategy::SpinPark, WaitStrategy::Park] {
        bounded(move || {
            let (go, may_go) = channel::<()>();
            let handler = move |_: &u64, _: EventInfo| {
                may_go.recv().unwrap_or_default();
                panic!("late");
            };
            let ring = rings::single_producer(2, || 0).unwrap().wait(strategy);
            let (mut producer, handlers) = ring.handle_with(handler).start().unwrap().split();
            producer.push(1).unwrap();
            producer.push(2).unwrap();
            let waiting = thread::spawn(move || producer.push(3).is_err());
            drop(go);
            assert!(waiting.join().unwrap(), "closed");
            assert_eq!(handlers.finish().unwrap_err().message, "late");
        });
    }
}

#[test]
fn a_skipped_panic_costs_its_message_only() {
    bounded(|| {
        let (mut handler, seen) = recorder();
        let (after, after_saw) = recorder();
        let odd = move |value: &u64, place: EventInfo| {
            assert!(value % 10 != 3, "value {value}");
            handler(value, place);
        };
        let mut handlers = rings::single_producer(8, || 0)
            .unwrap()
            .handle_with(odd)
            .then(after)
            .on_panic(OnPanic::Skip)
            .start()
            .unwrap();
        (0..50).for_each(|value| handlers.producer().push(value).unwrap());
        let panicked = handlers.finish().unwrap_err();
        assert_eq!((panicked.sequence, panicked.count), (3, 5));
        assert_eq!(panicked.message, "value 3");
        assert_eq!(panicked.report.handlers[0].messages, 45);
        assert_eq!(values(seen), (0..50).filter(|value| value % 10 != 3).collect::<Vec<_>>());
        assert_eq!(values(after_saw), (0..50).collect::<Vec<_>>());
    });
}

/// Panics where it is told to, and notes its calls.
struct Moody {
    panics_in: &'static str,
    calls: Arc<Mutex<Vec<&'static str>>>,
}

impl Moody {
    fn call(&self, what: &'static str) {
        let mut calls = self.calls.lock().unwrap();
        if calls.last() != Some(&what) {
            calls.push(what);
        }
        drop(calls);
        assert_ne!(what, self.panics_in);
    }
}

impl Handler<u64> for Moody {
    fn on_event(&mut self, _: &u64, _: EventInfo) {
        self.call("event");
    }
    fn on_start(&mut self) {
        self.call("start");
    }
    fn on_end(&mut self) {
        self.call("end");
    }
    fn on_idle(&mut self) {
        self.call("idle");
    }
}

impl Drop for Moody {
    fn drop(&mut self) {
        self.call("drop");
    }
}

#[test]
fn a_handlers_life_has_a_start_and_an_end_and_any_part_may_panic() {
    for panics_in in ["", "start", "event", "idle", "end", "drop"] {
        for on_panic in [OnPanic::Halt, OnPanic::Skip] {
            bounded(move || {
                let calls = Arc::new(Mutex::new(Vec::new()));
                let moody = Moody { panics_in, calls: Arc::clone(&calls) };
                let mut handlers = rings::single_producer(4, || 0)
                    .unwrap()
                    .handle_with(moody)
                    .on_panic(on_panic)
                    .start()
                    .unwrap();
                let is_pushed = handlers.producer().push(7).is_ok();
                // An idle moment comes only while the stream goes on.
                while panics_in != "start" && !calls.lock().unwrap().contains(&"event") {
                    thread::yield_now();
                }
                while ["", "idle"].contains(&panics_in) && !calls.lock().unwrap().contains(&"idle")
                {
                    thread::yield_now();
                }
                let result = handlers.finish();
                assert_eq!(result.is_err(), !panics_in.is_empty(), "{panics_in}: {result:?}");
                let calls = calls.lock().unwrap();
                assert_eq!((calls[0], calls[calls.len() - 1]), ("start", "drop"));
                let is_halted =
                    on_panic == OnPanic::Halt && ["start", "event", "idle"].contains(&panics_in);
                assert_eq!(calls.contains(&"end"), !is_halted, "{panics_in}: {calls:?}");
                assert!(is_pushed || is_halted);
            });
        }
    }
}

/// Counts those that live.
struct Counted(Arc<()>);

#[test]
fn dropped_without_finish_it_drains_and_every_value_is_dropped_once() {
    bounded(|| {
        let alive = Arc::new(());
        let (seen, all) = channel();
        let handler = move |value: &Option<Counted>, _: EventInfo| {
            assert!(value.as_ref().is_some_and(|value| Arc::strong_count(&value.0) > 1));
            seen.send(()).unwrap_or_default();
        };
        let mut handlers =
            rings::single_producer(8, || None).unwrap().handle_with(handler).start().unwrap();
        for _ in 0..100 {
            let value = Some(Counted(Arc::clone(&alive)));
            assert!(handlers.producer().push(value).is_ok());
        }
        drop(handlers);
        assert_eq!(all.iter().count(), 100, "the handler is gone, and has seen all");
        assert_eq!(Arc::strong_count(&alive), 1, "so are the values");
    });
}

#[test]
fn a_slow_handler_holds_up_and_is_waited_for() {
    bounded(|| {
        let (step, steps) = channel::<()>();
        let (fast, fast_saw) = recorder();
        let slow = move |_: &u64, _: EventInfo| steps.recv().unwrap_or_default();
        let (mut producer, handlers) = rings::single_producer(4, || 0)
            .unwrap()
            .handle_with((fast, slow))
            .start()
            .unwrap()
            .split();
        (0..4).for_each(|value| producer.push(value).unwrap());
        assert!(producer.try_push(4).is_err(), "the slow one has all still to do");
        for value in 0..4 {
            assert_eq!(fast_saw.recv_timeout(DEADLINE).unwrap().0, value);
        }
        let (finished, has_finished) = channel();
        let finisher = thread::spawn(move || {
            drop(producer);
            finished.send(handlers.finish()).unwrap_or_default();
        });
        for _ in 0..3 {
            step.send(()).unwrap();
        }
        assert!(has_finished.try_recv().is_err(), "one message is left");
        step.send(()).unwrap();
        assert!(has_finished.recv_timeout(DEADLINE).unwrap().is_ok());
        finisher.join().unwrap();
    });
}

#[test]
fn finishing_does_not_wait_for_producers_elsewhere() {
    bounded(|| {
        let (handler, seen) = recorder();
        let ring = rings::single_producer(4, || 0).unwrap();
        let (mut producer, handlers) = ring.handle_with(handler).start().unwrap().split();
        producer.push(1).unwrap();
        let report = handlers.finish().unwrap();
        assert_eq!(report.handlers[0].messages, 1);
        let more = (0..100).take_while(|_| producer.push(9).is_ok()).count();
        assert!(more <= 4, "closed, as soon as there is no room left that it knows of");
        assert_eq!(values(seen), [1]);
    });
}

#[test]
fn several_producers_feed_a_diamond() {
    bounded(|| {
        let (last, seen) = recorder();
        let mut ring = rings::multi_producer(3, 16, || 0).unwrap();
        ring = ring.wait(WaitStrategy::SpinPark);
        let ignore = |_: &u64, _: EventInfo| ();
        let mut handlers = ring.handle_with((ignore, ignore)).then(last).start().unwrap();
        let producers = handlers.producers();
        assert_eq!((producers.len(), handlers.producers().len()), (3, 0));
        let writers = producers.into_iter().zip(0..).map(|(mut producer, who)| {
            thread::spawn(move || {
                (0..2000).for_each(|number| producer.push(who << 32 | number).unwrap());
            })
        });
        writers.collect::<Vec<_>>().into_iter().for_each(|writer| writer.join().unwrap());
        let report = handlers.finish().unwrap();
        assert!(report.handlers.iter().all(|handler| handler.messages == 6000));
        let mut next = [0; 3];
        for value in values(seen) {
            let who = (value >> 32) as usize;
            assert_eq!(value & 0xFFFF_FFFF, next[who]);
            next[who] += 1;
        }
        assert_eq!(next, [2000; 3]);
    });
}

#[test]
fn shared_work_is_done_once() {
    for panics in [false, true] {
        bounded(move || {
            let (before, _seen) = recorder();
            let (done, all) = channel();
            let worker = |_: usize| {
                let done = done.clone();
                move |value: &u64, _: EventInfo| {
                    assert!(!panics || *value != 700, "no");
                    done.send(*value).unwrap_or_default();
                }
            };
            let ring = rings::multi_producer(2, 32, || 0).unwrap();
            let workers = (0..3).map(worker).collect();
            let mut handlers = ring.handle_with(before).share_among(workers).start().unwrap();
            drop(done);
            let mut sent = 0;
            let mut producers = handlers.producers();
            while sent < 1000 && producers[sent as usize % 2].push(sent).is_ok() {
                sent += 1;
            }
            drop(producers);
            assert_eq!(handlers.finish().is_err(), panics);
            assert!(panics || sent == 1000);
            let mut values: Vec<u64> = all.iter().collect();
            values.sort_unstable();
            let expected = (0..sent).filter(|&value| !panics || value != 700);
            assert_eq!(values, expected.collect::<Vec<_>>());
        });
    }
}

/// Signals its drop.
struct AtDrop(Sender<()>);

impl Drop for AtDrop {
    fn drop(&mut self) {
        self.0.send(()).unwrap_or_default();
    }
}

#[test]
fn the_share_of_a_halted_worker_is_handled_by_the_others() {
    bounded(|| {
        // One worker holds message 0 until the other one, to which the second lane belongs, has
        // failed in message 1: the rest of that lane is left to the first, at its end.
        const MORE: u64 = 9;
        let (seen, all) = channel();
        let (holds, is_held) = channel();
        let (halted, is_halted) = channel();
        let (fail, may_fail) = channel::<()>();
        let (is_halted, may_fail) = (Mutex::new(is_halted), Mutex::new(may_fail));
        let waits = Arc::new((is_halted, may_fail));
        let worker = |_: usize| {
            let (seen, holds, waits) = (seen.clone(), holds.clone(), Arc::clone(&waits));
            let end = AtDrop(halted.clone());
            move |value: &u64, _: EventInfo| {
                let _lives_as_long = &end;
                match *value {
                    0 => {
                        holds.send(()).unwrap();
                        waits.0.lock().unwrap().recv().unwrap();
                    }
                    1 => {
                        waits.1.lock().unwrap().recv().unwrap();
                        panic!("no");
                    }
                    _ => {}
                }
                seen.send(*value).unwrap();
            }
        };
        let ring = rings::multi_producer(2, 8, || 0).unwrap().wait(WaitStrategy::SpinYield);
        let mut handlers = ring.share_among((0..2).map(worker).collect()).start().unwrap();
        drop(seen);
        let mut producers = handlers.producers();
        producers[0].push(0).unwrap();
        is_held.recv().unwrap();
        (1..=3).for_each(|value| producers[1].push(value).unwrap());
        let finisher = thread::spawn(move || handlers.finish());
        while producers[0].push(MORE).is_ok() {}
        fail.send(()).unwrap();
        assert!(finisher.join().unwrap().is_err());
        let mut values: Vec<u64> = all.iter().filter(|value| *value != MORE).collect();
        values.sort_unstable();
        assert_eq!(values, [0, 2, 3]);
    });
}

#[test]
fn handlers_that_cannot_start_give_a_reason() {
    let ignore = |_: &u64, _: EventInfo| ();
    let ring = || rings::single_producer(4, || 0).unwrap();
    let none: Vec<fn(&u64, EventInfo)> = Vec::new();
    let error = ring().handle_with(ignore).then(none).start().unwrap_err();
    assert!(matches!(error, StartError::EmptyStage(2)), "{error}");
    let error = ring().share_among(vec![ignore]).then(ignore).start().unwrap_err();
    assert!(error.to_string().contains("let it be the last"), "{error}");
    bounded(move || {
        let pinned = ring().handle_with((ignore, named("far", ignore))).pin(&[0, 99_999]).start();
        let error = pinned.unwrap_err().to_string();
        assert!(error.contains("handler far") && error.contains("99999"), "{error}");
    });
}
