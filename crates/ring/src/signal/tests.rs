//! Tests of all kinds of signals.

use super::*;
use std::os::fd::AsFd;
use std::time::Duration;

const SECONDS: Duration = Duration::from_secs(20);

/// Wake-up calls of this thread while `work` runs.
fn wakes(work: impl FnOnce()) -> u32 {
    let before = WAKES.get();
    work();
    WAKES.get() - before
}

fn numbers(set: SignalSet) -> Vec<usize> {
    set.iter().collect()
}

/// The contract, for any waiter.
fn keeps_the_contract<W: Signals + Send>(mut waiter: W)
where
    W::Signal: 'static,
{
    let last = W::COUNT - 1;
    assert!(waiter.check().is_empty());
    assert!(waiter.poll(Duration::ZERO).is_empty());
    let refused = waiter.bind(W::COUNT).err().unwrap().to_string();
    assert!(refused.contains(&format!("no signal {}", W::COUNT)), "{refused}");
    assert!(refused.contains(&last.to_string()), "{refused}");

    let signal = waiter.bind(last).unwrap();
    let calls = wakes(|| {
        signal.signal();
        signal.clone().signal();
        waiter.bind(0).unwrap().signal();
    });
    assert_eq!(calls, 0, "a signal without a sleeper costs no system call");
    let taken = waiter.poll(Duration::MAX);
    assert_eq!(taken.len(), if last == 0 { 1 } else { 2 });
    assert!(taken.contains(0) && taken.contains(last) && !taken.contains(W::COUNT));
    assert!(waiter.check().is_empty(), "taken once");
    assert!(waiter.poll(Duration::from_millis(1)).is_empty(), "the time is up");

    let sleeper = std::thread::spawn({
        let signal = waiter.bind(last).unwrap();
        move || wakes(|| signal.signal())
    });
    assert_eq!(numbers(waiter.poll(SECONDS)), [last]);
    assert!(sleeper.join().unwrap() <= 1);
    assert!(waiter.check().is_empty());
}

#[test]
fn every_waiter_keeps_the_contract() {
    keeps_the_contract(Semaphore::new());
    keeps_the_contract(PollSet::new());
    // Miri knows no ppoll, here and below.
    if !cfg!(miri) {
        keeps_the_contract(SocketSignal::new().unwrap());
    }
}

/// Several senders at once, many rounds: none is forgotten.
fn loses_nothing<W: Signals>(mut waiter: W, senders: usize)
where
    W::Signal: 'static,
{
    const ROUNDS: u32 = if cfg!(miri) { 3 } else { 300 };
    let step = W::COUNT / senders;
    let threads: Vec<_> = (0..senders)
        .map(|sender| {
            let signal = waiter.bind(sender * step).unwrap();
            let (go, turn) = std::sync::mpsc::channel::<()>();
            let thread = std::thread::spawn(move || {
                while turn.recv().is_ok() {
                    signal.signal();
                }
            });
            (go, thread)
        })
        .collect();
    for _ in 0..ROUNDS {
        threads.iter().for_each(|(go, _)| go.send(()).unwrap());
        let mut missing: Vec<usize> = (0..senders).map(|sender| sender * step).collect();
        while !missing.is_empty() {
            let taken = waiter.poll(SECONDS);
            assert!(!taken.is_empty(), "{missing:?} are lost");
            missing.retain(|&number| !taken.contains(number));
        }
    }
    for (go, thread) in threads {
        drop(go);
        thread.join().unwrap();
    }
}

#[test]
fn no_signal_is_lost_among_more_threads_than_cores() {
    loses_nothing(Semaphore::new(), 1);
    loses_nothing(PollSet::new(), 5);
    if !cfg!(miri) {
        loses_nothing(SocketSignal::new().unwrap(), 5);
    }
}

#[test]
fn many_signals_cost_one_wake() {
    let mut waiter = PollSet::new();
    let signals: Vec<_> = (0..63).map(|number| waiter.bind(number).unwrap()).collect();
    let thread = std::thread::spawn(move || waiter.poll(SECONDS).len());
    // The first signal wakes the thread if it sleeps already.
    assert!(wakes(|| signals.iter().for_each(Signal::signal)) <= 2);
    assert!(thread.join().unwrap() >= 1);
}

#[test]
fn sets_are_ascending() {
    let waiter = &mut SocketSignal::new().unwrap();
    for number in [255, 0, 64, 63, 128] {
        waiter.bind(number).unwrap().signal();
    }
    let taken = waiter.check();
    assert_eq!(numbers(taken), [0, 63, 64, 128, 255]);
    assert_eq!(taken.len(), 5);
    assert!(!taken.contains(256) && !taken.contains(usize::MAX));
}

fn is_readable(waiter: &SocketSignal) -> bool {
    lanecast_os::event::wait_readable([waiter.as_fd()], Some(Duration::ZERO)) == [true]
}

#[test]
#[cfg_attr(miri, ignore = "it knows no ppoll")]
fn the_descriptor_is_quiet_only_while_armed() {
    let mut waiter = SocketSignal::new().unwrap();
    let signal = waiter.bind(9).unwrap();
    assert!(is_readable(&waiter), "blocking without arming must not block");
    assert_eq!(wakes(|| signal.signal()), 0);
    assert_eq!(numbers(waiter.arm()), [9], "arming takes what is there");
    assert!(waiter.arm().is_empty());
    assert!(!is_readable(&waiter));
    assert!(waiter.check().is_empty());
    assert!(!is_readable(&waiter), "looking does not disarm");
    assert_eq!(wakes(|| (0..5).for_each(|_| signal.signal())), 1, "the first signal rings");
    assert!(is_readable(&waiter));
    assert_eq!(numbers(waiter.check()), [9]);
    assert_eq!(wakes(|| signal.signal()), 0, "the waiter is awake");
    assert!(is_readable(&waiter), "still not armed");
}
