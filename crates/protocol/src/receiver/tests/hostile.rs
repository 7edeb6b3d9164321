//! Hostile frames: counted, never a panic, and memory stays bounded.

use super::super::*;
use super::source::{SESSION, Source, TopicState};
use super::subscriber::{Subscriber, settings};
use crate::rng::Rng;
use lanecast_wire::net::{FrameWriter, Range, flag};
use proptest::prelude::*;

const KEPT: usize = 10_000;

fn begun() -> (Source, Receiver) {
    let mut source = Source::new(u64::MAX - 3, 3, u64::MAX - 1);
    let settings =
        ReceiverSettings { reorder_bytes_max: KEPT, longest_message_max: 1_000, ..settings() };
    let subscriber = Subscriber::joined(settings, &source);
    source.publish_some(20, &mut Rng::new(3));
    (source, subscriber.receiver)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn spoiled_frames_do_no_harm(seed: u64) {
        let rng = &mut Rng::new(seed);
        let (source, mut receiver) = begun();
        let mut out = Vec::new();
        let mut buffer = vec![0; 1_400];
        for round in 0..200u64 {
            let now = round * 100_000;
            let at = rng.below(source.datagrams.len() as u64) as usize;
            let mut bytes = match rng.below(4) {
                0 => source.session_frame(rng.below(4) as u16),
                _ => source.datagrams[at].0.clone(),
            };
            for _ in 0..rng.below(4) {
                // Anywhere but in what makes it a frame of the session.
                let at = 16 + rng.below(bytes.len() as u64 - 16) as usize;
                bytes[at] = rng.next_u64() as u8;
            }
            if rng.below(4) == 0 {
                bytes[3] = 1 + rng.below(15) as u8;
            }
            let (mut frame, _) = Frame::split(&bytes).expect("a frame");
            frame.body = &frame.body[..frame.body.len() - rng.below(2) as usize * 5];
            receiver.on_frame(now, &frame, size_of::<FrameHeader>(), &mut out);
            receiver.on_time(now, &mut out);
            for delivery in out.drain(..) {
                if let Delivery::Borrowed { start, end, .. } = delivery {
                    prop_assert!(start < end && end as usize <= bytes.len());
                }
            }
            receiver.consumed_all();
            (0..3).for_each(|_| _ = receiver.next_transmit(now, &mut buffer));
            prop_assert!(receiver.session.topics.reorder_bytes() <= KEPT);
            prop_assert!(receiver.session.tracker.gaps().len() <= 4_096);
        }
    }
}

#[test]
fn other_sessions_and_short_frames_are_nothing() {
    let (source, mut receiver) = begun();
    let before = *receiver.counters();
    let mut out = Vec::new();
    let (frame, _) = Frame::split(&source.datagrams[0].0).expect("a frame");
    receiver.on_frame(5, &Frame { session: SESSION + 1, ..frame }, 0, &mut out);
    assert_eq!(*receiver.counters(), before);
    receiver.on_frame(5, &Frame { body: &[1, 2, 3], ..frame }, 0, &mut out);
    assert_eq!(receiver.counters().malformed, before.malformed + 1);
    assert!(out.is_empty());
}

#[test]
fn a_block_that_does_not_hold_what_it_says_is_dropped() {
    let (source, mut receiver) = begun();
    let mut bytes = source.datagrams[0].0.clone();
    // The block's count of items.
    bytes[size_of::<FrameHeader>() + size_of::<DataHeader>() + 6] ^= 1;
    let mut out = Vec::new();
    let (frame, _) = Frame::split(&bytes).expect("a frame");
    receiver.on_frame(5, &frame, size_of::<FrameHeader>(), &mut out);
    assert_eq!(receiver.counters().malformed, 1);
}

#[test]
fn a_jump_too_far_asks_the_sender_instead() {
    let (source, mut receiver) = begun();
    let mut out = Vec::new();
    let mut buffer = [0; 500];
    while receiver.next_transmit(5, &mut buffer).is_some() {}
    let (frame, _) = Frame::split(&source.datagrams[0].0).expect("a frame");
    let far = Frame { sequence: frame.sequence.wrapping_add(1 << 40), ..frame };
    receiver.on_frame(6, &far, 0, &mut out);
    assert!(out.is_empty());
    assert_eq!((receiver.counters().implausible, receiver.session.tracker.gaps().len()), (1, 0));
    let length = receiver.next_transmit(6, &mut buffer).expect("a Join");
    let (join, _) = Frame::split(&buffer[..length]).expect("a frame");
    assert_eq!((join.kind, join.flags), (Kind::Join, flag::RESUME | flag::FEC));
    for now in (0..).step_by(10_000_000).take_while(|now| *now < settings().liveness) {
        receiver.on_frame(now, &far, 0, &mut out);
        receiver.on_time(now, &mut out);
        assert_eq!(receiver.phase(), Phase::Live);
    }
    receiver.on_frame(settings().liveness + 5, &far, 0, &mut out);
    receiver.on_time(settings().liveness + 5, &mut out);
    assert_eq!(
        receiver.close_reason(),
        Some(CloseReason::Died),
        "what is not believed is no sign of life"
    );
}

#[test]
fn a_range_of_none_is_nothing() {
    let (source, mut receiver) = begun();
    let mut out = Vec::new();
    let (frame, _) = Frame::split(&source.datagrams[9].0).expect("a frame");
    receiver.on_frame(5, &frame, 0, &mut out);
    let missing = receiver.session.tracker.gaps()[0];
    let mut bytes = [0; 64];
    let mut writer = FrameWriter::new(&mut bytes, Kind::Void, flag::GONE, SESSION, 0);
    let first = missing.first.wrapping_add(2).into();
    assert!(writer.add(&Range { first, count: 0.into(), reserved: 0.into() }));
    let length = writer.finish();
    let (void, _) = Frame::split(&bytes[..length]).expect("a frame");
    receiver.on_frame(6, &void, 0, &mut out);
    assert_eq!(receiver.session.tracker.gaps().len(), 1);
    assert_eq!(receiver.counters().lost_datagrams, 0);
}

#[test]
fn leaving_without_a_connection_does_nothing() {
    let (_, mut receiver) = begun();
    receiver.disconnected();
    receiver.leave();
    assert_eq!((receiver.next_transmit(5, &mut [0; 100]), receiver.next_deadline()), (None, None));
}

#[test]
fn messages_under_way_take_bounded_room_over_all_topics() {
    const TOPICS: u32 = 8;
    let mut source = Source::new(7, TOPICS, 0);
    let settings = ReceiverSettings { longest_message_max: 1_000, ..settings() };
    let mut receiver = Subscriber::joined(settings, &source).receiver;
    let mut out = Vec::new();
    for topic in 0..TOPICS {
        let begins = source.datagrams.len();
        source.publish(topic, 900, false);
        source.close();
        let (frame, _) = Frame::split(&source.datagrams[begins].0).expect("a frame");
        receiver.on_frame(5, &frame, 0, &mut out);
    }
    let unreadable = |delivery: &&Delivery| {
        matches!(delivery, Delivery::Lost { count: 1, why: LossReason::Damaged, .. })
    };
    assert_eq!(out.iter().filter(unreadable).count(), TOPICS as usize - 4, "{out:?}");
    assert_eq!(receiver.counters().lost, u64::from(TOPICS) - 4);
}

/// Three messages, of which the last one's number contradicts the others.
fn contradicting() -> (Source, Receiver, Vec<Delivery>) {
    let mut source = Source::new(7, 1, 0);
    let mut receiver = Subscriber::joined(settings(), &source).receiver;
    let mut out = Vec::new();
    for number in 0..3 {
        source.publish(0, 50, false);
        source.close();
        let mut bytes = source.datagrams[number].0.clone();
        if number == 2 {
            bytes[size_of::<FrameHeader>() + size_of::<DataHeader>() + 16] = 1;
        }
        let (frame, _) = Frame::split(&bytes).expect("a frame");
        receiver.on_frame(5, &frame, size_of::<FrameHeader>(), &mut out);
    }
    assert_eq!((receiver.counters().messages, receiver.counters().malformed), (2, 1));
    (source, receiver, out)
}

#[test]
fn contradicting_data_is_reported_lost_once_its_number_is_known() {
    let (source, mut receiver, mut out) = contradicting();
    let bytes = source.session_frame(flag::CLOSED);
    receiver.on_frame(6, &Frame::split(&bytes).expect("a frame").0, 0, &mut out);
    let lost = |it: &&Delivery| matches!(it, Delivery::Lost { first: 2, count: 1, .. });
    assert_eq!(out.iter().filter(lost).count(), 1, "{out:?}");
}

#[test]
fn contradicting_data_without_a_count_ends_the_topic_as_damaged() {
    let (_, mut receiver, mut out) = contradicting();
    let end = settings().liveness * 2;
    (0..end).step_by(10_000_000).for_each(|now| receiver.on_time(now, &mut out));
    let left = Delivery::Left { slot: 0, why: CloseReason::Damaged };
    assert_eq!(out.last(), Some(&left), "{out:?}");
    assert!(!out.iter().any(|it| matches!(it, Delivery::Lost { .. })), "none is known: {out:?}");
}

/// Half of all numbers: the longest way ahead.
const FAR: u64 = i64::MAX as u64;

/// Has the receiver ask where the stream resumes, and answers as `source` does.
fn resume(receiver: &mut Receiver, source: &Source, now: Nanos, out: &mut Vec<Delivery>) {
    let mut buffer = [0; 500];
    let forged = Source::new(receiver.delivered_to().wrapping_add(1 << 40), 1, 0);
    let bytes = forged.session_frame(0);
    receiver.on_frame(now, &Frame::split(&bytes).expect("a frame").0, 0, out);
    while let Some(length) = receiver.next_transmit(now, &mut buffer) {
        if Frame::split(&buffer[..length]).expect("a frame").0.kind == Kind::Join {
            let answer = source.welcome(&buffer[..length]);
            receiver.on_frame(now, &Frame::split(&answer).expect("a frame").0, 0, out);
        }
    }
}

#[test]
fn losses_beyond_all_numbers_are_counted_up_to_the_highest() {
    let source = Source::new(7, 1, 0);
    let mut receiver = Subscriber::joined(settings(), &source).receiver;
    let mut out = Vec::new();
    for round in 1..=3_u64 {
        let mut far = Source::new(7_u64.wrapping_add(FAR.wrapping_mul(round)), 1, 0);
        let position = FAR.wrapping_mul(round);
        far.topics[0] = TopicState { fragment: position, message: position };
        resume(&mut receiver, &far, round * 1_000_000_000, &mut out);
    }
    let mut sum = *receiver.counters();
    assert_eq!((sum.lost_datagrams, sum.lost), (u64::MAX, u64::MAX));
    sum.add(receiver.counters());
    assert_eq!((sum.lost_datagrams, sum.lost), (u64::MAX, u64::MAX));
}

#[test]
fn a_message_half_of_all_numbers_ahead_is_a_loss_as_any() {
    let source = Source::new(7, 1, 0);
    let mut receiver = Subscriber::joined(settings(), &source).receiver;
    let mut out = Vec::new();
    resume(&mut receiver, &source, 5, &mut out);
    let mut far = Source::new(7, 1, 0);
    far.topics[0] = TopicState { fragment: FAR - 1, message: FAR };
    far.publish(0, 700, false);
    far.close();
    let (frame, _) = Frame::split(&far.datagrams[1].0).expect("a frame");
    receiver.on_frame(6, &frame, size_of::<FrameHeader>(), &mut out);
    let often = (settings().liveness / 4) as usize;
    (7..2 * settings().recovery).step_by(often).for_each(|now| receiver.on_time(now, &mut out));
    let lost = |it: &Delivery| matches!(it, Delivery::Lost { first: 0, count: FAR, .. });
    assert!(out.iter().any(lost), "{out:?}");
}
