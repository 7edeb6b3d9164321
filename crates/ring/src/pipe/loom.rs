//! Pipes, explored by loom. A block holds two values here and a chunk of a chain one block, so
//! that few steps cross all borders; slots are cells that loom watches, so an access that is
//! too early is reported as a data race.

use super::build::chain;
use super::{Bounded, Capacity, Peer, Reader, bounded, channel, fan_in, unbounded};
use crate::signal::{Semaphore, Signal, Signals};
use lanecast_base::WaitStrategy;
use lanecast_base::sync::without_light_fences;
use loom::sync::Arc;
use loom::thread;
use std::time::Duration;

/// Explores a model without sleepers.
fn check(model: impl Fn() + Sync + Send + 'static) {
    without_light_fences(|| check_sleep(3, model));
}

/// Explores a model with sleepers, whose light fences are full ones.
fn check_sleep(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    if builder.preemption_bound.is_none() {
        builder.preemption_bound = Some(preemptions);
    }
    builder.check(model);
}

fn read_all(reader: &mut Reader<u64>, numbers: core::ops::Range<u64>) {
    for number in numbers {
        loop {
            match reader.try_read() {
                Some(value) => break assert_eq!(value, number),
                None => thread::yield_now(),
            }
        }
    }
}

#[test]
fn values_arrive_whole_through_a_chain() {
    check(|| {
        let (mut writer, mut reader) = unbounded();
        let sender = thread::spawn(move || {
            for number in 0..5 {
                if number == 2 {
                    writer.write(number);
                    let _ = writer.flush();
                } else {
                    let _ = writer.write_and_flush(number);
                }
            }
        });
        read_all(&mut reader, 0..5);
        sender.join().unwrap();
    });
}

#[test]
fn values_arrive_whole_through_a_circle() {
    check(|| {
        let (mut writer, mut reader) = bounded(1).unwrap();
        let sender = thread::spawn(move || {
            for number in 0..7 {
                while writer.try_write_and_flush(number).is_err() {
                    thread::yield_now();
                }
            }
        });
        read_all(&mut reader, 0..7);
        sender.join().unwrap();
    });
}

#[test]
fn a_batch_over_several_blocks_appears_at_once() {
    check(|| {
        let (mut writer, mut reader) = unbounded();
        writer.write(0);
        let _ = writer.flush();
        let sender = thread::spawn(move || {
            (1..6).for_each(|number| writer.write(number));
            let _ = writer.flush();
        });
        read_all(&mut reader, 0..1);
        if reader.try_read() == Some(1) {
            assert!((2..6).all(|number| reader.try_read() == Some(number)), "it came in parts");
        }
        sender.join().unwrap();
    });
}

#[test]
fn a_message_of_parts_appears_at_once_and_taken_back_ones_never() {
    check(|| {
        let (mut writer, mut reader) = unbounded();
        let sender = thread::spawn(move || {
            (0..3).for_each(|number| writer.write_part(number));
            let _ = writer.flush();
            (90..93).for_each(|number| writer.write_part(number));
            while writer.unwrite() != Some(90) {}
            writer.write(3);
            writer.write_part(99);
            let _ = writer.flush();
        });
        if reader.try_read() == Some(0) {
            assert!((1..4).all(|number| reader.try_read() == Some(number)), "it came in parts");
            assert_eq!(reader.try_read(), None);
        }
        sender.join().unwrap();
    });
}

#[test]
fn the_end_comes_after_the_last_value() {
    check(|| {
        let (mut writer, mut reader) = unbounded();
        let sender = thread::spawn(move || {
            writer.write(7);
            drop(writer);
        });
        if reader.is_closed() {
            panic!("the end overtook the value");
        }
        let value = reader.try_read();
        if value.is_none() && reader.is_closed() {
            panic!("the end overtook the value");
        }
        sender.join().unwrap();
    });
}

#[test]
fn the_last_end_drops_the_remaining_values() {
    // loom reports what is dropped never, or twice.
    for is_bounded in [false, true] {
        check(move || {
            let value = Arc::new(());
            let (mut writer, mut reader) =
                if is_bounded { bounded(4).unwrap() } else { chain::<_, Bounded>() };
            let sender = thread::spawn(move || {
                for _ in 0..3 {
                    let _ = writer.try_write(Arc::clone(&value));
                    let _ = writer.flush();
                }
                let _ = writer.try_write_part(value);
            });
            drop(reader.try_read());
            drop(reader);
            sender.join().unwrap();
        });
    }
}

/// A reader that sleeps on a semaphore, and a writer that owes it signals.
fn sleep_and_wake(count: u64, fenced: bool) {
    let (mut writer, mut reader) = unbounded();
    let mut semaphore = Semaphore::new();
    let signal = semaphore.sender();
    if fenced {
        reader.fence_always();
    }
    let sender = thread::spawn(move || {
        for number in 0..count {
            if writer.write_and_flush(number) == Peer::Asleep {
                signal.signal();
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
            None => {
                semaphore.poll(Duration::MAX);
            }
        }
    }
    assert_eq!(next, count);
    sender.join().unwrap();
}

#[test]
fn a_sleeping_reader_is_woken() {
    check_sleep(3, || sleep_and_wake(1, false));
}

#[test]
fn a_reader_that_asks_for_fences_is_woken() {
    without_light_fences(|| check_sleep(3, || sleep_and_wake(1, true)));
}

#[test]
fn a_reader_that_sleeps_twice_is_woken() {
    check_sleep(2, || sleep_and_wake(2, false));
}

#[test]
fn a_sender_without_room_is_woken() {
    check_sleep(2, || {
        let (mut sender, mut receiver) = channel(Capacity::Bounded(1), WaitStrategy::Park).unwrap();
        let sending = thread::spawn(move || (0..5).for_each(|number| sender.send(number).unwrap()));
        (0..5).for_each(|number| assert_eq!(receiver.recv(), Ok(number)));
        sending.join().unwrap();
    });
}

#[test]
fn a_sender_without_a_receiver_is_told() {
    check_sleep(2, || {
        let (mut sender, receiver) = channel(Capacity::Bounded(1), WaitStrategy::Park).unwrap();
        let sending = thread::spawn(move || while sender.send(1).is_ok() {});
        drop(receiver);
        sending.join().unwrap();
    });
}

#[test]
fn a_fan_in_hears_all_its_senders() {
    check_sleep(2, || {
        let (senders, mut receiver) = fan_in(2, Capacity::Unbounded, WaitStrategy::Park).unwrap();
        let sending: Vec<_> = senders
            .into_iter()
            .map(|mut sender| thread::spawn(move || sender.send(1).unwrap()))
            .collect();
        let mut heard = [0; 2];
        while let Ok((sender, value)) = receiver.recv() {
            heard[sender] += value;
        }
        assert_eq!(heard, [1, 1]);
        sending.into_iter().for_each(|thread| thread.join().unwrap());
    });
}
