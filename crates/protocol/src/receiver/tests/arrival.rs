//! Delivery in order of arrival: at once, once, and with exact losses.

use super::super::*;
use super::contract::schedule;
use super::source::{Source, identify};
use super::subscriber::{Subscriber, address, settings};
use crate::rng::Rng;
use lanecast_wire::net::{Items, flag};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// Time after which gaps are given up.
const BOUND: Nanos = 1_000_000;

/// Messages of a subscriber, by topic and number of the source.
type Messages = BTreeSet<(u32, u64)>;

/// A receiver in order of arrival, and the messages that it has delivered and reported as lost.
struct Arrivals {
    receiver: Receiver,
    base: u64,
    read: Messages,
    lost: Messages,
    left: u32,
    out: Vec<Delivery>,
}

impl Arrivals {
    fn joined(settings: ReceiverSettings, source: &Source, base: u64) -> Self {
        let settings = ReceiverSettings { order: DeliveryOrder::Arrival, ..settings };
        let names: Vec<&str> = source.names.iter().map(String::as_str).collect();
        let mut receiver = Receiver::new(settings, 77, address(), &names, 0);
        let mut buffer = vec![0; 1_400];
        let length = receiver.next_transmit(1, &mut buffer).expect("a Join");
        let welcome = source.welcome(&buffer[..length]);
        let (read, lost) = (Messages::new(), Messages::new());
        let mut arrivals = Self { receiver, base, read, lost, left: 0, out: Vec::new() };
        arrivals.hear(2, &welcome);
        assert_eq!(arrivals.receiver.phase(), Phase::Live);
        arrivals
    }

    fn hear(&mut self, now: Nanos, bytes: &[u8]) {
        let (frame, _) = Frame::split(bytes).expect("a frame");
        self.receiver.on_frame(now, &frame, size_of::<FrameHeader>(), &mut self.out);
        self.account(bytes);
    }

    fn pass(&mut self, now: Nanos) {
        self.receiver.on_time(now, &mut self.out);
        self.account(&[]);
    }

    fn account(&mut self, buffer: &[u8]) {
        for delivery in std::mem::take(&mut self.out) {
            match delivery {
                Delivery::Joined { .. } => {}
                Delivery::Borrowed { first, start, end, .. } => {
                    self.take_items(first, &buffer[start as usize..end as usize]);
                }
                Delivery::Owned { first, items, .. } => self.take_items(first, &items),
                Delivery::Message { number, bytes, .. } => self.take(number, &bytes),
                Delivery::Lost { slot, first, count, .. } => {
                    let first = first.wrapping_sub(self.base);
                    for number in first..first + count {
                        assert!(self.lost.insert((slot, number)), "lost twice: {number}");
                        assert!(!self.read.contains(&(slot, number)), "read and lost: {number}");
                    }
                }
                Delivery::Left { why, .. } => {
                    assert_eq!(why, CloseReason::Closed);
                    self.left += 1;
                }
            }
        }
    }

    fn take_items(&mut self, first: u64, items: &[u8]) {
        for (at, item) in Items::new(items).enumerate() {
            assert!(item.flags.is_whole());
            self.take(first.wrapping_add(at as u64), item.bytes);
        }
    }

    fn take(&mut self, told: u64, bytes: &[u8]) {
        let message = identify(bytes);
        assert_eq!(told.wrapping_sub(self.base), message.1, "numbered as another");
        assert!(self.read.insert(message), "read twice: {message:?}");
        assert!(!self.lost.contains(&message), "lost and read: {message:?}");
    }
}

/// Datagrams with a part of each message.
fn parts(source: &Source) -> BTreeMap<(u32, u64), BTreeSet<usize>> {
    let mut parts = BTreeMap::<_, BTreeSet<usize>>::new();
    for (index, (_, inside)) in source.datagrams.iter().enumerate() {
        inside.iter().for_each(|message| _ = parts.entry(*message).or_default().insert(index));
    }
    parts
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_message_comes_as_soon_as_it_is_complete_or_is_reported(
        seed: u64,
        first in prop_oneof![Just(0), Just(u64::MAX - 9), any::<u64>()],
        base in prop_oneof![Just(0), Just(u64::MAX - 20), any::<u64>()],
        disorder in 0u64..30,
        loss in 0u64..50,
        topics in 1u32..4,
        repaired in 0u64..100,
    ) {
        let rng = &mut Rng::new(seed);
        let mut source = Source::new(first, topics, base);
        let bounded = ReceiverSettings { give_up_after: Some(BOUND), ..settings() };
        let mut arrivals = Arrivals::joined(bounded, &source, base);
        source.publish_some(60, rng);
        let parts = parts(&source);
        let mut order = schedule(source.datagrams.len(), disorder, loss, rng);
        let known: BTreeSet<usize> = order.iter().copied().collect();
        let missing = (0..source.datagrams.len()).filter(|index| !known.contains(index));
        order.extend(missing.filter(|_| rng.below(100) < repaired).collect::<Vec<_>>());
        let (mut now, mut arrived) = (10, BTreeSet::new());
        for index in order {
            now += 10;
            arrivals.hear(now, &source.datagrams[index].0);
            arrived.insert(index);
            let complete = parts.iter().filter(|(_, within)| within.is_subset(&arrived));
            let complete: Messages = complete.map(|(message, _)| *message).collect();
            prop_assert_eq!(&arrivals.read, &complete);
        }
        prop_assert!(arrivals.lost.is_empty(), "nothing was given up yet");
        arrivals.hear(now, &source.session_frame(0));
        arrivals.pass(now + BOUND);
        arrivals.hear(now + BOUND, &source.session_frame(flag::CLOSED));
        let all: Messages = parts.keys().copied().collect();
        let lost: Messages = all.difference(&arrivals.read).copied().collect();
        prop_assert_eq!(&arrivals.lost, &lost);
        prop_assert_eq!(arrivals.left, topics);
        let counters = arrivals.receiver.counters();
        prop_assert_eq!((counters.malformed, counters.overflowed), (0, 0));
        prop_assert_eq!(counters.messages, arrivals.read.len() as u64);
        prop_assert_eq!(counters.lost, lost.len() as u64);
        prop_assert_eq!(arrivals.receiver.session.topics.reorder_bytes(), 0);
    }
}

/// A source with one message of 90 bytes in each of `count` datagrams.
fn singles(count: u64) -> Source {
    let mut source = Source::new(0, 1, 0);
    for _ in 0..count {
        source.publish(0, 90, false);
        source.close();
    }
    source
}

#[test]
fn delivered_messages_take_no_room_behind_a_gap() {
    let mut source = Source::new(0, 1, 0);
    let mut arrivals = Arrivals::joined(settings(), &source, 0);
    for _ in 0..50 {
        source.publish(0, 90, false);
        source.close();
        source.publish(0, 700, false);
        source.close();
    }
    (1..source.datagrams.len()).for_each(|index| arrivals.hear(5, &source.datagrams[index].0));
    assert_eq!(arrivals.read.len(), 99, "all but the first");
    let kept = arrivals.receiver.reorder_bytes();
    assert!(kept <= 100 * source.datagrams.len(), "{kept} bytes for places alone");
    arrivals.hear(6, &source.datagrams[0].0);
    assert_eq!((arrivals.read.len(), arrivals.receiver.reorder_bytes()), (100, 0));
}

#[test]
fn a_gap_is_given_up_after_the_bound_and_reported_exactly() {
    let bounded = ReceiverSettings { give_up_after: Some(BOUND), ..settings() };
    let source = singles(9);
    let mut subscriber = Subscriber::joined(bounded, &Source::new(0, 1, 0));
    for index in [0, 1, 5] {
        subscriber.hear(10, &source.datagrams[index].0);
    }
    while subscriber.transmit(10).is_some() {}
    subscriber.leap(9 + BOUND);
    assert_eq!((subscriber.next[0], subscriber.lost_any()), (2, false), "a nanosecond early");
    subscriber.leap(10 + BOUND);
    assert_eq!((subscriber.next[0], &subscriber.lost[0]), (6, &vec![2, 3, 4]));
    // Its repair comes too late, and is not delivered.
    subscriber.hear(11 + BOUND, &source.datagrams[3].0);
    subscriber.hear(12 + BOUND, &source.datagrams[6].0);
    let counters = subscriber.receiver.counters();
    assert_eq!((counters.messages, counters.lost, counters.duplicates), (4, 3, 1));
}

#[test]
fn a_given_up_gap_stays_lost_in_order_of_arrival() {
    let bounded = ReceiverSettings { give_up_after: Some(BOUND), ..settings() };
    let source = singles(9);
    let mut arrivals = Arrivals::joined(bounded, &Source::new(0, 1, 0), 0);
    for index in [0, 3, 5] {
        arrivals.hear(10, &source.datagrams[index].0);
    }
    arrivals.hear(11, &source.datagrams[4].0);
    arrivals.hear(12, &source.datagrams[2].0);
    assert_eq!(arrivals.read, [0, 2, 3, 4, 5].map(|number| (0, number)).into());
    arrivals.pass(10 + BOUND);
    assert_eq!(arrivals.lost, [(0, 1)].into());
    arrivals.hear(11 + BOUND, &source.datagrams[1].0);
    arrivals.hear(12 + BOUND, &source.datagrams[6].0);
    assert_eq!((arrivals.read.len(), arrivals.receiver.counters().duplicates), (6, 1));
}

#[test]
fn a_bound_beyond_the_recovery_time_changes_nothing() {
    let bounded = |give_up_after| ReceiverSettings { recovery: 500, give_up_after, ..settings() };
    for give_up_after in [None, Some(500), Some(9_000)] {
        let times = bounded(give_up_after).gap_times();
        assert_eq!((times.live, times.history), (500, 500));
    }
    let times = bounded(Some(7)).gap_times();
    assert_eq!((times.live, times.history), (7, 500), "history is not late");
}
