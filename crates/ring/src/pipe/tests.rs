//! Tests of pipes and channels, on one thread and under stress.

mod model;
mod panics;
mod refusals;
mod stress;

use super::build::chain;
use super::*;
use lanecast_base::WaitStrategy;
use std::rc::Rc;
use std::time::{Duration, Instant};

#[test]
fn absurd_capacities_are_refused_and_others_rounded_up() {
    assert_eq!(bounded::<u64>(0).err(), Some(CapacityError::Zero));
    // The last has a layout, but no memory; Miri does not survive such an attempt.
    for asked in [usize::MAX, usize::MAX / 8, if cfg!(miri) { usize::MAX } else { 1 << 58 }] {
        let error = bounded::<u64>(asked).err().unwrap();
        assert_eq!(error, CapacityError::TooLarge { asked, size: 8 });
        assert!(error.to_string().contains("ask for fewer"), "{error}");
    }
    for asked in [1, 6, 7, 8, 64, 100, 1000, 10_000] {
        let (mut writer, mut reader) = bounded::<u64>(asked).unwrap();
        let capacity = writer.capacity().unwrap();
        assert!(capacity >= asked && capacity < asked + 7, "{asked}: {capacity}");
        // Wherever the ends are, the capacity fits.
        for round in 0..20 {
            let read = reader.drain(round * 3, drop);
            let _ = read;
            while writer.try_write(1).is_ok() {}
            let _ = writer.flush();
            let held = reader.drain(usize::MAX, drop);
            assert!(held >= capacity, "{held} of {capacity} fitted");
            assert!(held <= capacity + capacity / 8 + 14, "{held} for {capacity}");
            (0..round as u64 % 11).for_each(|value| writer.try_write(value).unwrap());
            let _ = writer.flush();
        }
    }
}

#[test]
fn a_flush_says_once_that_the_reader_sleeps() {
    let (mut writer, mut reader) = unbounded();
    writer.write(1);
    assert_eq!(writer.flush(), Peer::Awake);
    assert_eq!(reader.read(), Some(1));
    for number in 2..20 {
        assert_eq!(reader.read(), None);
        assert!(!reader.check(), "asked twice, asleep once");
        assert_eq!(writer.flush(), Peer::Awake, "nothing new, nothing owed");
        writer.write(number);
        assert_eq!(writer.flush(), Peer::Asleep);
        writer.write(number);
        assert_eq!(writer.flush(), Peer::Awake, "owed once");
        assert!(reader.check());
        assert_eq!((reader.read(), reader.try_read()), (Some(number), Some(number)));
        assert_eq!(reader.try_read(), None, "which only looks");
        writer.write(0);
        assert_eq!(writer.flush(), Peer::Awake);
        assert_eq!(reader.read(), Some(0));
    }
}

#[test]
fn incomplete_messages_are_invisible() {
    let (mut writer, mut reader) = unbounded();
    for parts in [1, 2, 6, 7, 8, 14, 20] {
        writer.write(100);
        (0..parts).for_each(|part| writer.write_part(part));
        let _ = writer.flush();
        assert_eq!((reader.try_read(), reader.try_read()), (Some(100), None));
        assert_eq!(writer.flush(), Peer::Awake);
        assert_eq!(reader.try_read(), None);
        writer.write(parts);
        assert_eq!(reader.try_read(), None);
        let _ = writer.flush();
        assert!((0..=parts).eq(core::iter::from_fn(|| reader.try_read())));
    }
}

#[test]
fn unwriting_takes_back_what_is_not_flushed() {
    let (mut writer, mut reader) = unbounded();
    assert_eq!(writer.unwrite(), None);
    writer.write(0);
    let _ = writer.flush();
    assert_eq!(writer.unwrite(), None, "flushed");
    (1..30).for_each(|part| writer.write_part(part));
    writer.write(30);
    writer.write(31);
    assert_eq!((writer.unwrite(), writer.unwrite()), (Some(31), Some(30)));
    let _ = writer.flush();
    assert_eq!((reader.try_read(), reader.try_read()), (Some(0), None), "incomplete again");
    assert!((1..30).rev().eq(core::iter::from_fn(|| writer.unwrite())));
    writer.write(40);
    let _ = writer.flush();
    assert_eq!((reader.try_read(), reader.try_read()), (Some(40), None));
}

#[test]
fn either_end_closes() {
    let (mut writer, mut reader) = unbounded();
    assert!(!reader.is_closed());
    writer.write("last");
    assert_eq!(writer.flush(), Peer::Awake);
    assert_eq!(reader.read(), Some("last"));
    assert!(!reader.check());
    writer.write("very last");
    writer.write_part("never complete");
    assert_eq!(writer.close(), Peer::Asleep);
    assert!(!reader.is_closed());
    assert_eq!(reader.read(), Some("very last"));
    assert_eq!(reader.try_read(), None);
    assert!(reader.is_closed());

    let (mut writer, reader) = bounded(1).unwrap();
    assert!(!writer.is_closed());
    drop(reader);
    assert!(writer.is_closed());
    while writer.try_write(1).is_ok() {}
    assert_eq!(writer.flush(), Peer::Gone);
    assert_eq!(writer.try_write(1), Err(Full(1)), "a reader that is gone gives back no room");
    assert_eq!(writer.close(), Peer::Gone);
}

#[test]
fn values_of_any_size_go_through() {
    fn go<T: PartialEq + core::fmt::Debug>(make: impl Fn(u64) -> T) {
        let (mut unbounded, mut first) = unbounded();
        let (mut bounded, mut second) = bounded(50).unwrap();
        for round in 0..50 {
            for number in 0..50 {
                unbounded.write(make(round * number));
                bounded.try_write(make(round * number)).unwrap();
            }
            let _ = (unbounded.flush(), bounded.flush());
            for number in 0..50 {
                assert_eq!(first.try_read(), Some(make(round * number)));
                assert_eq!(second.try_read(), Some(make(round * number)));
            }
        }
    }
    #[derive(Debug, PartialEq)]
    #[repr(align(128))]
    struct Wide(u64);
    go(|_| ());
    go(|number| number as u8);
    go(|number| number);
    go(|number| number.to_string());
    go(|number| [number; 3]);
    go(|number| [number; 33]);
    go(Wide);
}

#[test]
fn values_are_dropped_once_in_any_order_of_ends() {
    // So many in all: read, flushed and not read, not flushed, parts of an incomplete message.
    for counts in [[0, 0, 0, 0], [3, 4, 5, 6], [0, 7, 7, 7], [9, 30, 0, 3], [300, 200, 100, 50]] {
        for writer_first in [false, true] {
            for is_bounded in [false, true] {
                let token = Rc::new(());
                drop_pipe(&token, counts, writer_first, is_bounded);
                assert_eq!(Rc::strong_count(&token), 1, "{counts:?} {writer_first} {is_bounded}");
            }
        }
    }
}

fn drop_pipe(token: &Rc<()>, counts: [usize; 4], writer_first: bool, is_bounded: bool) {
    let (mut writer, mut reader) =
        if is_bounded { bounded(1000).unwrap() } else { chain::<Rc<()>, Bounded>() };
    let [read, flushed, written, parts] = counts;
    let write = |writer: &mut Writer<_, _>, count| {
        (0..count).for_each(|_| writer.try_write(Rc::clone(token)).unwrap());
    };
    write(&mut writer, read + flushed);
    let _ = writer.flush();
    assert_eq!(reader.drain(read, drop), read);
    write(&mut writer, written);
    (0..parts).for_each(|_| writer.try_write_part(Rc::clone(token)).unwrap());
    assert_eq!(Rc::strong_count(token), 1 + flushed + written + parts);
    if writer_first {
        drop(writer);
        assert_eq!(Rc::strong_count(token), 1 + flushed + written, "complete ones stay");
        drop(reader);
    } else {
        drop(reader);
        assert_eq!(Rc::strong_count(token), 1 + written + parts);
        write(&mut writer, 1);
        let _ = writer.flush();
        drop(writer);
    }
}

#[test]
#[cfg_attr(miri, ignore = "Miri allocates by itself")]
fn a_warm_pipe_allocates_nothing() {
    let (mut writer, mut reader) = unbounded::<[u64; 4]>();
    let mut through = |count: u64| {
        for number in 0..count {
            writer.write([number; 4]);
            let _ = writer.flush();
            if number % 100 == 99 {
                assert_eq!(reader.drain(usize::MAX, drop), 100);
            }
        }
    };
    through(2000);
    let allocations = allocation_counter::measure(|| through(20_000));
    assert_eq!(allocations.count_total, 0);
}

#[test]
fn a_channel_says_when_its_other_end_is_gone() {
    for wait in WaitStrategy::ALL {
        for capacity in [Capacity::Bounded(10), Capacity::Unbounded] {
            let (mut sender, mut receiver) = channel(capacity, wait).unwrap();
            assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
            sender.send(1).unwrap();
            sender.try_send(2).unwrap();
            drop(sender);
            assert_eq!((receiver.recv(), receiver.try_recv()), (Ok(1), Ok(2)));
            assert_eq!(receiver.recv(), Err(Closed(())));
            assert_eq!(receiver.try_recv(), Err(TryRecvError::Closed));
            let timeout = receiver.recv_timeout(Duration::MAX);
            assert_eq!(timeout, Err(RecvTimeoutError::Closed));

            let (mut sender, receiver) = channel(capacity, wait).unwrap();
            sender.send(1).unwrap();
            drop(receiver);
            assert!(sender.is_closed());
            assert_eq!(sender.send(2), Err(Closed(2)));
            assert_eq!(sender.try_send(3), Err(TrySendError::Closed(3)));
            assert_eq!(sender.send_all([4, 5]), Err(Closed(4)));
        }
    }
    assert!(channel::<u8>(Capacity::Bounded(0), WaitStrategy::Park).is_err());
}

#[test]
fn a_full_channel_gives_the_value_back() {
    let (mut sender, mut receiver) = channel(Capacity::Bounded(1), WaitStrategy::Park).unwrap();
    let sent = (0..).take_while(|&number| sender.try_send(number).is_ok()).count();
    assert_eq!(sender.try_send(77), Err(TrySendError::Full(77)));
    assert_eq!(receiver.drain(usize::MAX, drop), sent);
    sender.try_send(77).unwrap();
    assert_eq!(receiver.recv(), Ok(77));
}

#[test]
fn a_time_limit_is_kept() {
    let limit = Duration::from_millis(5);
    for wait in WaitStrategy::ALL {
        let (_sender, mut receiver) = channel::<u8>(Capacity::Unbounded, wait).unwrap();
        let (_senders, mut many) = fan_in::<u8>(2, Capacity::Unbounded, wait).unwrap();
        let start = Instant::now();
        assert_eq!(receiver.recv_timeout(limit), Err(RecvTimeoutError::Timeout));
        assert_eq!(many.recv_timeout(limit), Err(RecvTimeoutError::Timeout));
        assert!(start.elapsed() >= 2 * limit, "{wait}");
    }
}

#[test]
fn fan_in_serves_all_in_turns() {
    const SENDERS: usize = 150;
    let (mut senders, mut receiver) =
        fan_in(SENDERS, Capacity::Unbounded, WaitStrategy::BusySpin).unwrap();
    senders.iter_mut().for_each(|sender| sender.send_all(0..200).unwrap());
    let first: Vec<usize> = (0..SENDERS * 64).map(|_| receiver.recv().unwrap().0).collect();
    assert!(first.chunk_by(|a, b| a == b).all(|turn| turn.len() == 64), "64 each");
    drop(senders);
    let mut left = vec![200 - 64; SENDERS];
    while receiver.drain(1000, |sender, _| left[sender] -= 1) > 0 {}
    assert_eq!(left, [0; SENDERS]);
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Closed));
    assert_eq!(receiver.recv(), Err(Closed(())));
}

#[test]
fn a_fan_in_without_producers_is_closed() {
    let (senders, mut receiver) = fan_in::<u8>(0, Capacity::Unbounded, WaitStrategy::Park).unwrap();
    assert!(senders.is_empty() && receiver.is_closed());
    assert_eq!(receiver.recv(), Err(Closed(())));
}
