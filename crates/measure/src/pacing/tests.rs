//! Schedules on a simulated clock.

use super::*;
use proptest::prelude::*;
use std::cell::Cell;

const GIGA: u64 = 1_000_000_000;
const NEVER: &dyn Fn() -> bool = &|| false;

/// The same schedule by the definition, in numbers that cannot wrap.
fn due(index: u64, rate: u64, start: u64, ticks_per_second: u64) -> u64 {
    due_in_bursts(index, rate, 1, start, ticks_per_second)
}

fn due_in_bursts(index: u64, rate: u64, burst: u64, start: u64, ticks_per_second: u64) -> u64 {
    let index = index / burst * burst;
    let elapsed = u128::from(index) * u128::from(ticks_per_second) / u128::from(rate);
    start + u64::try_from(elapsed).unwrap()
}

/// A schedule that has already handed out `index` messages, on time.
fn resumed(index: u64, rate: u64, count: u64, ticks_per_second: u64) -> Bursts {
    let mut pace = Bursts::even(rate, count, 0, ticks_per_second);
    pace.index = index;
    pace.looked_at = index;
    pace.due = due(index, rate, 0, ticks_per_second);
    let owed = u128::from(index) * u128::from(ticks_per_second) % u128::from(rate);
    pace.owed = u64::try_from(owed).unwrap();
    pace
}

/// Runs `pace` on a clock that moves by `step` ticks at each reading.
fn run(pace: &mut impl Pace, clock: &Cell<u64>, step: u64, mut send: impl FnMut(Slot, u64)) {
    let now = || {
        clock.set(clock.get() + step);
        clock.get()
    };
    while let Some(burst) = pace.next_burst(now, NEVER) {
        for slot in burst {
            send(slot, clock.get());
        }
    }
}

#[test]
fn on_time_messages_are_evenly_spaced() {
    let (rate, count, start) = (250_000, 10_000, 77);
    let mut pace = Bursts::even(rate, count, start, GIGA);
    let clock = Cell::new(start);
    let mut sent = Vec::new();
    run(&mut pace, &clock, 10, |slot, at| sent.push((slot, at)));

    assert_eq!(sent.len() as u64, count);
    for (index, (slot, at)) in sent.iter().enumerate() {
        let expected = start + index as u64 * 4000;
        assert_eq!(*slot, Slot { index: index as u64, due: Some(expected) });
        assert!(*at >= expected && *at - expected <= 10, "message {index} at {at}");
    }
    assert_eq!((pace.sent(), pace.largest_burst()), (count, 1));
}

#[test]
fn a_stall_is_caught_up_in_one_burst() {
    let mut pace = Bursts::even(1_000_000, 1000, 0, GIGA);
    let clock = Cell::new(0);
    let mut sent = Vec::new();
    run(&mut pace, &clock, 10, |slot, at| {
        sent.push((slot, at));
        if slot.index == 499 {
            clock.set(at + 100_000);
        }
    });

    assert_eq!(sent.len(), 1000);
    let burst: Vec<_> = sent.iter().filter(|(_, at)| *at == sent[500].1).collect();
    assert_eq!(burst.len(), 100, "a stall of 100 µs holds up 100 messages at 1 M/s");
    assert_eq!(burst[0].0.due, Some(500_000), "their due times stay on the schedule");
    let on_time = |(slot, at): &&(Slot, u64)| at - slot.due.unwrap() <= 10;
    assert_eq!(sent.iter().filter(on_time).count(), 901, "the last of the burst is on time again");
    assert_eq!(pace.largest_burst(), 100);
}

#[test]
fn bursts_leave_together_and_the_rate_holds() {
    let (rate, burst, count) = (1_000_000, 50, 10_020);
    let mut pace = Bursts::new(rate, burst, count, 0, GIGA);
    let clock = Cell::new(0);
    let mut sent = Vec::new();
    run(&mut pace, &clock, 10, |slot, at| sent.push((slot, at)));

    assert_eq!(sent.len() as u64, count);
    for (index, (slot, at)) in (0..).zip(&sent) {
        let expected = index / 50 * 50_000;
        assert_eq!(slot.due, Some(expected), "message {index}");
        assert!(*at >= expected && *at - expected <= 10, "message {index} at {at}");
    }
    assert_eq!(pace.largest_burst(), 50);
    let (last, _) = sent[10_000];
    assert_eq!(last.due, Some(10_000_000), "10 000 messages at 1 M/s take 10 ms");
}

#[test]
fn a_stall_is_caught_up_in_bursts_too() {
    let mut pace = Bursts::new(1_000_000, 10, 1000, 0, GIGA);
    let clock = Cell::new(0);
    let mut sent = Vec::new();
    run(&mut pace, &clock, 10, |slot, at| {
        sent.push((slot, at));
        if slot.index == 509 {
            clock.set(500_000 + 95_000);
        }
    });
    assert_eq!(sent.len(), 1000);
    let late: Vec<_> = sent.iter().filter(|(slot, at)| at - slot.due.unwrap() > 10).collect();
    assert_eq!(late.len(), 90, "the bursts due at 510, 520, ... 590 µs were held up");
    assert_eq!((late[0].0.index, late[0].0.due), (510, Some(510_000)));
    assert_eq!(pace.largest_burst(), 90);
}

#[test]
fn the_longest_gap_is_that_of_the_waiting_thread() {
    let mut pace = Bursts::even(1_000_000, 100, 0, GIGA);
    let (clock, readings) = (Cell::new(0), Cell::new(0));
    let now = || {
        readings.set(readings.get() + 1);
        // Held up for 700 ns while it waits, once.
        clock.set(clock.get() + if readings.get() == 500 { 700 } else { 10 });
        clock.get()
    };
    let mut sent = 0;
    while let Some(burst) = pace.next_burst(now, NEVER) {
        for _ in burst {
            // Sending takes its time, now and then: that is no gap.
            clock.set(clock.get() + if sent == 50 { 5000 } else { 50 });
            sent += 1;
        }
    }
    assert_eq!(pace.longest_gap(), Some(700));
    assert_eq!(Bursts::even(1, 0, 0, GIGA).longest_gap(), None);
}

#[test]
fn the_highest_rate_does_not_wrap_after_twenty_seconds() {
    // `elapsed_ns × rate` outgrows 64 bits after 18.4 s of this rate.
    const RATE: u64 = 999_999_999;
    for (seconds, ticks_per_second) in [(18, GIGA), (20, GIGA), (20, 2_100_000_123), (1000, GIGA)] {
        let first = RATE * seconds;
        let start = due(first, RATE, 0, ticks_per_second);
        let mut pace = resumed(first, RATE, first + 500_000, ticks_per_second);
        let clock = Cell::new(start);
        let mut next = first;
        run(&mut pace, &clock, ticks_per_second / 10_000, |slot, at| {
            assert_eq!(slot.index, next);
            assert_eq!(slot.due, Some(due(next, RATE, 0, ticks_per_second)));
            assert!(at >= slot.due.unwrap(), "message {next} was sent before its time");
            next += 1;
        });
        assert_eq!(next, first + 500_000);
        assert!((99_999..=100_001).contains(&pace.largest_burst()), "{}", pace.largest_burst());
    }
}

#[test]
fn a_rate_beyond_reach_sends_back_to_back_and_reads_the_clock_between_bursts() {
    let clock = Cell::new(0);
    let readings = Cell::new(0);
    let mut pace = Bursts::even(999_999_999, 1_000_000, 0, GIGA);
    let now = || {
        readings.set(readings.get() + 1);
        clock.get()
    };
    while let Some(burst) = pace.next_burst(now, NEVER) {
        for _ in burst {
            clock.set(clock.get() + 5);
        }
        clock.set(clock.get() + 60);
    }
    assert_eq!(pace.sent(), 1_000_000);
    assert!(readings.get() < 100, "{} readings", readings.get());
}

#[test]
fn flat_out_reads_no_clock() {
    let mut pace = FlatOut::new(200_000);
    let mut next = 0;
    while let Some(mut burst) = pace.next_burst(|| panic!("the clock was read"), NEVER) {
        for slot in &mut burst {
            assert_eq!(slot, Slot { index: next, due: None });
            next += 1;
        }
        assert_eq!(burst.run_is_over(), next == 200_000);
    }
    assert_eq!((pace.sent(), pace.largest_burst()), (200_000, 200_000));
}

#[test]
fn a_stop_ends_a_run_between_bursts_and_while_waiting() {
    let mut pace = FlatOut::new(u64::MAX);
    pace.next_burst(|| 0, NEVER).unwrap().for_each(drop);
    assert!(pace.next_burst(|| 0, &|| true).is_none());
    assert_eq!(pace.sent(), STRETCH);

    let mut pace = Bursts::even(1, 5, 1000, GIGA);
    let looks = Cell::new(0);
    let stop = || {
        looks.set(looks.get() + 1);
        looks.get() > 10
    };
    assert!(pace.next_burst(|| 0, &stop).is_none());
    assert_eq!(pace.sent(), 0);
}

#[test]
fn zero_messages_make_no_burst() {
    assert!(Bursts::even(1000, 0, 0, GIGA).next_burst(|| 5, NEVER).is_none());
    assert!(FlatOut::new(0).next_burst(|| 5, NEVER).is_none());
}

proptest! {
    #[test]
    fn due_times_are_those_of_the_definition(
        rate in 1..3_000_000_000u64, burst in 1..300u64, start in 0..1u64 << 60,
        ticks_per_second in 1_000_000..5_000_000_000u64, count in 1..2000u64,
    ) {
        let mut pace = Bursts::new(rate, burst, count, start, ticks_per_second);
        let end = due(count, rate, start, ticks_per_second);
        let all = pace.next_burst(|| end, NEVER).unwrap();
        let dues: Vec<_> = all.map(|slot| slot.due.unwrap()).collect();
        let defined: Vec<_> = (0..count)
            .map(|index| due_in_bursts(index, rate, burst, start, ticks_per_second))
            .collect();
        prop_assert_eq!(dues, defined);
        prop_assert_eq!(pace.largest_burst(), count);
    }

    #[test]
    fn no_message_leaves_early_and_every_stall_is_caught_up(
        rate in 1_000..20_000_000u64, burst in 1..20u64, step in 1..200u64,
        stalls in prop::collection::btree_map(0..600u64, 1..1_000_000u64, 0..4),
    ) {
        const COUNT: u64 = 600;
        let mut pace = Bursts::new(rate, burst, COUNT, 0, GIGA);
        let clock = Cell::new(0);
        let mut sent = Vec::new();
        run(&mut pace, &clock, step, |slot, at| {
            sent.push((slot, at));
            clock.set(clock.get() + stalls.get(&slot.index).unwrap_or(&0));
        });
        // By the definition: look, send all that is due by then, look again.
        let (mut now, mut index, mut largest) = (0, 0, 0);
        let mut defined = Vec::new();
        while index < COUNT {
            now += step;
            let (looked_at, first) = (now, index);
            let due = |index| due_in_bursts(index, rate, burst, 0, GIGA);
            while index < COUNT && due(index) <= looked_at {
                defined.push((Slot { index, due: Some(due(index)) }, now));
                now += stalls.get(&index).unwrap_or(&0);
                index += 1;
            }
            largest = largest.max(index - first);
        }
        prop_assert!(sent.iter().all(|(slot, at)| *at >= slot.due.unwrap()), "none leaves early");
        prop_assert_eq!(sent, defined);
        prop_assert_eq!(pace.largest_burst(), largest);
    }
}
