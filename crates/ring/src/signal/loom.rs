//! Signals, explored by loom: a sleep that no wake ends is reported as a deadlock, and what was
//! done before a signal is an `UnsafeCell`, so a waiter that does not see it is a data race.

use super::{PollSet, Semaphore, Signal, Signals, SocketSignal};
use lanecast_base::sync::{Arc, AtomicU32, Ordering, UnsafeCell};
use loom::thread;
use std::time::Duration;

fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    if builder.preemption_bound.is_none() {
        builder.preemption_bound = Some(3);
    }
    builder.check(model);
}

/// Something done before the signal, by each sender.
type Cells = Arc<Vec<UnsafeCell<usize>>>;

fn send(signal: impl Signal + 'static, cells: &Cells, which: usize) -> thread::JoinHandle<()> {
    let cells = Arc::clone(cells);
    thread::spawn(move || {
        // SAFETY: loom checks that no other thread accesses it at the same time.
        cells[which].with_mut(|cell| unsafe { *cell = which + 1 });
        signal.signal();
    })
}

/// Waits until every sender has been heard.
fn hear_all(waiter: &mut impl Signals, cells: &Cells, numbers: &[usize]) {
    let mut missing: Vec<usize> = (0..numbers.len()).collect();
    while !missing.is_empty() {
        let taken = waiter.poll(Duration::MAX);
        missing.retain(|&which| {
            let is_taken = taken.contains(numbers[which]);
            if is_taken {
                // SAFETY: loom checks that no other thread writes it at the same time.
                assert_eq!(cells[which].with(|cell| unsafe { *cell }), which + 1);
            }
            !is_taken
        });
    }
}

fn model<W: Signals + 'static>(make: fn() -> W, numbers: &'static [usize])
where
    W::Signal: 'static,
{
    check(move || {
        let mut waiter = make();
        let cells: Cells = Arc::new(numbers.iter().map(|_| UnsafeCell::new(0)).collect());
        let threads: Vec<_> = (0..numbers.len())
            .map(|which| send(waiter.bind(numbers[which]).unwrap(), &cells, which))
            .collect();
        hear_all(&mut waiter, &cells, numbers);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

#[test]
fn a_semaphore_wakes_its_waiter() {
    model(Semaphore::new, &[0]);
}

#[test]
fn a_pollset_loses_no_signal() {
    model(PollSet::new, &[0, 62]);
}

#[test]
fn a_socket_signal_loses_none_in_one_word() {
    model(|| SocketSignal::new().unwrap(), &[3, 5]);
}

#[test]
fn a_socket_signal_loses_none_in_two_words() {
    model(|| SocketSignal::new().unwrap(), &[3, 200]);
}

/// Two signals of one sender, each heard with what was done before it.
fn model_twice<W: Signals + 'static>(make: fn() -> W)
where
    W::Signal: 'static,
{
    check(move || {
        let mut waiter = make();
        let signal = waiter.bind(0).unwrap();
        let done = Arc::new(AtomicU32::new(0));
        let cells: Cells = Arc::new(vec![UnsafeCell::new(0), UnsafeCell::new(0)]);
        let sender = thread::spawn({
            let (done, cells) = (Arc::clone(&done), Arc::clone(&cells));
            move || {
                for which in 0..2 {
                    // SAFETY: loom checks that no other thread reads it at the same time.
                    cells[which].with_mut(|cell| unsafe { *cell = which + 1 });
                    done.store(which as u32 + 1, Ordering::Relaxed);
                    signal.signal();
                }
            }
        });
        let mut heard = 0;
        while heard < 2 {
            assert!(!waiter.poll(Duration::MAX).is_empty());
            heard = done.load(Ordering::Relaxed) as usize;
            assert!(heard > 0, "a signal came before what it tells of");
        }
        sender.join().unwrap();
    });
}

#[test]
fn the_second_signal_wakes_as_well() {
    model_twice(Semaphore::new);
    model_twice(PollSet::new);
    model_twice(|| SocketSignal::new().unwrap());
}

#[test]
fn a_consumer_that_blocks_without_arming_is_woken() {
    check(|| {
        let mut waiter = SocketSignal::new().unwrap();
        let signals = [3, 5].map(|number| waiter.bind(number).unwrap());
        let sender = thread::spawn(move || signals.iter().for_each(Signal::signal));
        // Arms properly once, and then never again.
        let mut heard = waiter.arm().len();
        while heard < 2 {
            waiter.block();
            let taken = waiter.check().len();
            heard += taken;
            if taken == 0 {
                thread::yield_now();
            }
        }
        sender.join().unwrap();
    });
}
