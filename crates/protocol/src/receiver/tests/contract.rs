//! Any order, loss, duplication and late repair, against what must be told.

use super::super::*;
use super::source::Source;
use super::subscriber::{Subscriber, settings};
use crate::rng::Rng;
use lanecast_wire::net::{NakBody, Range, flag, list};
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Indexes in about their order, some missing, some twice.
pub(super) fn schedule(count: usize, disorder: u64, loss: u64, rng: &mut Rng) -> Vec<usize> {
    let mut order = Vec::new();
    for index in 0..count {
        let copies = if rng.below(100) < loss { 0 } else { 1 + rng.below(10) / 9 };
        for _ in 0..copies {
            order.push((index as u64 + rng.below(disorder + 1), index));
        }
    }
    order.sort_by_key(|(place, _)| *place);
    order.into_iter().map(|(_, index)| index).collect()
}

fn numbers() -> impl Strategy<Value = (u64, u64)> {
    let near = |x: u64| prop_oneof![Just(0), Just(x), any::<u64>()];
    (near(u64::MAX - 9), near(u64::MAX - 20))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn losses_are_reported_exactly(
        seed: u64,
        (first, base) in numbers(),
        disorder in 0u64..30,
        loss in 0u64..50,
        topics in 1u32..5,
        repaired in 0u64..100,
    ) {
        let rng = &mut Rng::new(seed);
        let mut source = Source::new(first, topics, base);
        let mut subscriber = Subscriber::joined(settings(), &source);
        source.publish_some(60, rng);
        let mut arrived = BTreeSet::new();
        let mut now = 10;
        for index in schedule(source.datagrams.len(), disorder, loss, rng) {
            now += 10;
            subscriber.hear(now, &source.datagrams[index].0);
            arrived.insert(index);
        }
        for index in 0..source.datagrams.len() {
            if !arrived.contains(&index) && rng.below(100) < repaired {
                now += 10;
                subscriber.hear(now, &source.datagrams[index].0);
                arrived.insert(index);
            }
        }
        let recovery = settings().recovery;
        subscriber.hear(now, &source.session_frame(0));
        for _ in 0..20 {
            now += recovery / 20;
            subscriber.hear(now, &source.session_frame(0));
            subscriber.pass(now);
        }
        now += 1;
        subscriber.pass(now);
        subscriber.hear(now, &source.session_frame(flag::CLOSED));

        let mut expected = vec![BTreeSet::new(); topics as usize];
        for (index, (_, inside)) in source.datagrams.iter().enumerate() {
            for (topic, number) in inside.iter().filter(|_| !arrived.contains(&index)) {
                expected[*topic as usize].insert(*number);
            }
        }
        for topic in 0..topics {
            let slot = topic as usize;
            let told: BTreeSet<_> = subscriber.lost[slot].iter().copied().collect();
            prop_assert_eq!(&told, &expected[slot], "topic {}", topic);
            prop_assert_eq!(subscriber.next[slot], source.count(topic));
            prop_assert_eq!(subscriber.left[slot], Some(CloseReason::Closed));
        }
        prop_assert_eq!(subscriber.receiver.counters().malformed, 0);
        let missing = (source.datagrams.len() - arrived.len()) as u64;
        prop_assert_eq!(subscriber.receiver.counters().lost_datagrams, missing);
        prop_assert_eq!(subscriber.receiver.session.topics.reorder_bytes(), 0);
    }

    #[test]
    fn repairs_complete_everything(
        seed: u64,
        (first, base) in numbers(),
        loss in 1u64..60,
        reorder_bytes_max in 1_000usize..20_000,
        receivers in prop_oneof![Just(1u32), Just(50)],
    ) {
        let rng = &mut Rng::new(seed);
        let mut source = Source::new(first, 3, base);
        let multicast = receivers > 1;
        let settings = ReceiverSettings { reorder_bytes_max, multicast, seed, ..settings() };
        let mut subscriber = Subscriber::joined(settings, &source);
        source.publish_some(80, rng);
        let mut now = 10;
        for index in schedule(source.datagrams.len(), 5, loss, rng) {
            now += 1_000;
            subscriber.hear(now, &source.datagrams[index].0);
            prop_assert!(subscriber.receiver.session.topics.reorder_bytes() <= reorder_bytes_max);
        }
        let mut rounds = 0;
        while subscriber.receiver.phase() == Phase::Live {
            rounds += 1;
            prop_assert!(rounds < 3_000, "no end: {:?}", subscriber.receiver.counters());
            subscriber.hear(now, &source.session_frame(flag::CLOSED));
            now = now.max(subscriber.receiver.next_deadline().unwrap_or(now)).min(now + 100_000);
            while let Some(bytes) = subscriber.transmit(now) {
                answer(&mut subscriber, &source, &bytes, now, loss, rng);
            }
        }
        prop_assert!(!subscriber.lost_any());
        for topic in 0..3 {
            prop_assert_eq!(subscriber.next[topic as usize], source.count(topic));
        }
    }
}

/// Sends again what a NAK asks for; some of it gets lost again.
fn answer(
    subscriber: &mut Subscriber,
    source: &Source,
    bytes: &[u8],
    now: Nanos,
    loss: u64,
    rng: &mut Rng,
) {
    let (frame, _) = Frame::split(bytes).expect("a frame");
    if frame.kind != Kind::Nak {
        return;
    }
    let (_, ranges) = NakBody::split(frame.body).expect("a body");
    for range in list::<Range>(ranges) {
        for offset in 0..u64::from(range.count.get()) {
            let sequence = range.first.get().wrapping_add(offset);
            let index = sequence.wrapping_sub(source.sequence(0)) as usize;
            assert!(index < source.datagrams.len(), "asked for what was never sent");
            if rng.below(100) >= loss {
                subscriber.hear(now, &source.datagrams[index].0);
            }
        }
    }
}
