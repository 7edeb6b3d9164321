//! Values through pipes and channels whose ends sleep and wake each other, under
//! ThreadSanitizer (`make tsan`).
//!
//! The producer passes a fence of its own here, or none at all, and ThreadSanitizer knows
//! neither: what this sees is the values' way from hand to hand. The fences are loom's.

use lanecast_base::WaitStrategy;
use lanecast_ring::pipe::{self, Capacity, Closed};
use lanecast_ring::signal::{PollSet, Semaphore, Signal, Signals, SocketSignal};
use std::time::Duration;

const MESSAGES: u64 = 20_000;

/// Passes boxed values from one thread to another, so that the sanitizer sees every error.
fn through_a_channel(capacity: Capacity, wait: WaitStrategy) {
    let (mut sender, mut receiver) = pipe::channel(capacity, wait).expect("it fits");
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut number = 0;
            while number < MESSAGES {
                let end = MESSAGES.min(number + 1 + number % 30);
                sender.send_all((number..end).map(Box::new)).expect("the receiver is there");
                number = end;
            }
        });
        for number in 0..MESSAGES {
            assert_eq!(receiver.recv(), Ok(Box::new(number)));
        }
        assert_eq!(receiver.recv(), Err(Closed(())));
    });
}

fn through_a_fan_in(senders: usize) {
    let (ends, mut receiver) =
        pipe::fan_in(senders, Capacity::Bounded(30), WaitStrategy::SpinPark).expect("it fits");
    std::thread::scope(|scope| {
        for mut sender in ends {
            scope.spawn(move || {
                for number in 0..MESSAGES / 10 {
                    sender.send(Box::new(number)).expect("the receiver is there");
                }
            });
        }
        let mut next = vec![0; senders];
        while let Ok((sender, number)) = receiver.recv() {
            assert_eq!(*number, next[sender]);
            next[sender] += 1;
        }
        assert!(next.iter().all(|&count| count == MESSAGES / 10));
    });
}

fn through_signals<W: Signals>(mut waiter: W)
where
    W::Signal: 'static,
{
    let signal = waiter.bind(0).expect("there is one");
    let (mut writer, mut reader) = pipe::unbounded();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for number in 0..MESSAGES {
                writer.write(Box::new(number));
                if writer.flush() == pipe::Peer::Asleep {
                    signal.signal();
                }
            }
        });
        for number in 0..MESSAGES {
            while !reader.check() {
                waiter.poll(Duration::from_millis(100));
            }
            assert_eq!(reader.read(), Some(Box::new(number)));
        }
    });
}

fn main() {
    for wait in [WaitStrategy::SpinYield, WaitStrategy::SpinPark, WaitStrategy::Park] {
        through_a_channel(Capacity::Bounded(20), wait);
        through_a_channel(Capacity::Unbounded, wait);
    }
    through_a_fan_in(5);
    through_signals(Semaphore::new());
    through_signals(PollSet::new());
    through_signals(SocketSignal::new().expect("a descriptor"));
    println!("every value came once, in order");
}
