//! Real threads, more of them than cores.

use super::*;
use std::thread;

const MESSAGES: u64 = if cfg!(miri) { 60 } else { 20_000 };

/// Spinners that wait for a thread without a core burn their whole turn.
fn messages(wait: WaitStrategy) -> u64 {
    if wait == WaitStrategy::BusySpin { MESSAGES / 20 } else { MESSAGES }
}

/// Bursts of any length, so that both ends get ahead, fall behind and sleep.
fn burst(number: u64) -> u64 {
    1 + number * 7 % 40
}

#[test]
fn channels_keep_order_under_every_strategy() {
    for wait in WaitStrategy::ALL {
        let messages = messages(wait);
        for capacity in [Capacity::Bounded(1), Capacity::Bounded(50), Capacity::Unbounded] {
            let pairs: Vec<_> = (0..3).map(|_| channel(capacity, wait).unwrap()).collect();
            let threads: Vec<_> = pairs
                .into_iter()
                .map(|(mut sender, mut receiver)| {
                    let reading = thread::spawn(move || {
                        assert!((0..messages).all(|number| receiver.recv() == Ok(number)));
                        assert_eq!(receiver.recv(), Err(Closed(())));
                    });
                    let writing = thread::spawn(move || {
                        let mut number = 0;
                        while number < messages {
                            let end = (number + burst(number)).min(messages);
                            sender.send_all(number..end).unwrap();
                            number = end;
                            thread::yield_now();
                        }
                    });
                    [reading, writing]
                })
                .collect();
            threads.into_iter().flatten().for_each(|thread| thread.join().unwrap());
        }
    }
}

#[test]
fn ping_and_pong_wake_each_other() {
    for wait in WaitStrategy::ALL {
        let (mut ping, mut pinged) = channel(Capacity::Bounded(4), wait).unwrap();
        let (mut pong, mut ponged) = channel(Capacity::Unbounded, wait).unwrap();
        let echo = thread::spawn(move || {
            while let Ok(number) = pinged.recv() {
                pong.send(number).unwrap();
            }
        });
        for number in 0..messages(wait) / 20 {
            ping.send(number).unwrap();
            assert_eq!(ponged.recv(), Ok(number));
        }
        drop(ping);
        echo.join().unwrap();
        assert_eq!(ponged.recv(), Err(Closed(())));
    }
}

#[test]
fn fan_in_hears_everybody() {
    const SENDERS: usize = if cfg!(miri) { 3 } else { 8 };
    for wait in WaitStrategy::ALL {
        let messages = messages(wait) / 20;
        // The first ones of many, so that silent pipes lie between those that send.
        let (senders, mut receiver) = fan_in(130, Capacity::Bounded(20), wait).unwrap();
        let mut senders = senders.into_iter().step_by(130 / SENDERS);
        let threads: Vec<_> = senders
            .by_ref()
            .take(SENDERS)
            .map(|mut sender| {
                thread::spawn(move || {
                    for number in 0..messages {
                        sender.send(number).unwrap();
                        if number % 64 == 0 {
                            thread::yield_now();
                        }
                    }
                })
            })
            .collect();
        drop(senders);
        let mut next = [0; 130];
        while let Ok((sender, number)) = receiver.recv() {
            assert_eq!(number, next[sender]);
            next[sender] += 1;
        }
        assert_eq!(next.iter().sum::<u64>(), messages * SENDERS as u64);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
}

#[test]
fn bare_pipes_with_any_signal_lose_no_wake() {
    use crate::signal::{PollSet, Semaphore, Signal, Signals, SocketSignal};
    fn go<W: Signals>(mut waiter: W)
    where
        W::Signal: 'static,
    {
        let signal = waiter.bind(0).unwrap();
        let (mut writer, mut reader) = unbounded();
        let writing = thread::spawn(move || {
            for number in 0..MESSAGES / 4 {
                writer.write(number);
                if number % 3 == 0 && writer.flush() == Peer::Asleep {
                    signal.signal();
                }
                if number % 64 == 0 {
                    thread::yield_now();
                }
            }
            if writer.close() == Peer::Asleep {
                signal.signal();
            }
        });
        let mut next = 0;
        loop {
            match reader.read() {
                Some(number) => {
                    assert_eq!(number, next);
                    next += 1;
                }
                None if reader.is_closed() => break,
                None => assert!(!waiter.poll(Duration::from_secs(20)).is_empty(), "no wake"),
            }
        }
        assert_eq!(next, MESSAGES / 4);
        writing.join().unwrap();
    }
    go(Semaphore::new());
    go(PollSet::new());
    if !cfg!(miri) {
        go(SocketSignal::new().unwrap());
    }
}
