//! Datagrams that are rebuilt from parity, and parity that is of no use.

use super::super::*;
use super::source::Source;
use super::subscriber::{Subscriber, settings};
use crate::fec::add_symbol;
use crate::rng::Rng;
use crate::{MICROSECOND, SECOND};
use lanecast_wire::net::{DATA_OFFSET, FEC_DATA_MAX, NakBody, Range, flag, list};

/// `count` datagrams of messages of unequal lengths, of a session with so much parity.
fn begun(count: u64, parity: u8) -> (Source, Subscriber) {
    let mut source = Source::new(u64::MAX - 3, 2, 40);
    source.fec = (8, parity, 50);
    let subscriber = Subscriber::joined(settings(), &source);
    for number in 0..count {
        source.publish((number % 2) as u32, 20 + 17 * (number as usize % 5), false);
        source.close();
    }
    (source, subscriber)
}

fn hear(subscriber: &mut Subscriber, source: &Source, now: Nanos, indexes: &[usize]) {
    indexes.iter().for_each(|index| subscriber.hear(now, &source.datagrams[*index].0));
}

/// Flags and ranges of the NAK that goes out now.
fn nak(subscriber: &mut Subscriber, now: Nanos) -> Option<(u16, Vec<(u64, u32)>)> {
    while let Some(bytes) = subscriber.transmit(now) {
        let (frame, _) = Frame::split(&bytes).expect("a frame");
        if frame.kind == Kind::Nak {
            let (_, rest) = NakBody::split(frame.body).expect("a body");
            let ranges = list::<Range>(rest).iter().map(|it| (it.first.get(), it.count.get()));
            return Some((frame.flags, ranges.collect()));
        }
    }
    None
}

#[test]
fn lost_datagrams_are_rebuilt_and_not_requested() {
    let (source, mut subscriber) = begun(8, 2);
    hear(&mut subscriber, &source, 5, &[0, 1, 3, 4, 6, 7]);
    assert_eq!(nak(&mut subscriber, 6), None, "parity is due");
    subscriber.hear(7, &source.parity(0, 8, (0, 2)));
    assert_eq!(subscriber.receiver.missing(), 2, "two are more than one row rebuilds");
    assert_eq!(nak(&mut subscriber, 8), None, "another row is due");
    subscriber.hear(9, &source.parity(0, 8, (1, 2)));
    assert_eq!((subscriber.next.clone(), subscriber.lost_any()), (vec![4, 4], false));
    let counters = *subscriber.receiver.counters();
    assert_eq!((counters.rebuilt, counters.recovered, counters.naks), (2, 2, 0));
    assert_eq!((counters.parity, counters.parity_unused), (2, 0));
    subscriber.hear(10, &source.parity(0, 8, (2, 2)));
    hear(&mut subscriber, &source, 11, &[2, 5]);
    let counters = *subscriber.receiver.counters();
    assert_eq!((counters.parity_unused, counters.duplicates), (1, 2));
}

#[test]
fn lost_datagrams_at_the_end_are_noticed_by_their_parity() {
    let (source, mut subscriber) = begun(3, 1);
    hear(&mut subscriber, &source, 5, &[0]);
    subscriber.hear(6, &source.parity(0, 2, (0, 1)));
    assert_eq!(subscriber.next, [1, 1], "rebuilt");
    subscriber.hear(7, &source.parity(2, 1, (0, 1)));
    assert_eq!(subscriber.next, [2, 1], "a block of one datagram");
}

#[test]
fn too_little_parity_is_followed_by_a_nak_at_once_and_used_with_the_answer() {
    let (source, mut subscriber) = begun(8, 1);
    hear(&mut subscriber, &source, 5, &[0, 2, 3, 4, 5, 7]);
    assert_eq!(nak(&mut subscriber, 6), None);
    subscriber.hear(7, &source.parity(0, 8, (0, 1)));
    let ranges = vec![(source.sequence(1), 1), (source.sequence(6), 1)];
    assert_eq!(nak(&mut subscriber, 7), Some((flag::PARITY, ranges)));
    hear(&mut subscriber, &source, 9, &[6]);
    assert_eq!(subscriber.next, [4, 4], "one came, the other was rebuilt");
    assert_eq!(subscriber.receiver.counters().rebuilt, 1);
}

#[test]
fn parity_that_does_not_come_delays_naks_by_its_delay() {
    let (source, mut subscriber) = begun(8, 1);
    hear(&mut subscriber, &source, 5, &[0, 2]);
    assert_eq!(nak(&mut subscriber, 5), None);
    let due = subscriber.receiver.next_deadline().expect("a time");
    assert!((5 + 50 * MICROSECOND..5 + 200 * MICROSECOND).contains(&due), "{due}");
    assert_eq!(nak(&mut subscriber, due - 1), None);
    let asked = |flags| Some((flags, vec![(source.sequence(1), 1)]));
    assert_eq!(nak(&mut subscriber, due), asked(flag::PARITY));
    // Who is not helped twice wants the datagram itself.
    let mut flags = Vec::new();
    for now in (due..due + SECOND).step_by(100_000) {
        flags.extend(nak(&mut subscriber, now).map(|(flags, _)| flags));
    }
    assert_eq!(flags[..4], [flag::PARITY, 0, 0, flag::ALONE]);
    let (source, mut subscriber) = begun(8, 0);
    hear(&mut subscriber, &source, 5, &[0, 2]);
    assert!(nak(&mut subscriber, 5).is_some(), "parity comes only if it is asked for");
}

#[test]
fn a_session_without_parity_ignores_it() {
    let (source, _) = begun(4, 1);
    let mut subscriber = Subscriber::joined(settings(), &Source::new(u64::MAX - 3, 2, 40));
    hear(&mut subscriber, &source, 5, &[0, 2, 3]);
    subscriber.hear(6, &source.parity(0, 4, (0, 1)));
    let counters = subscriber.receiver.counters();
    assert_eq!((counters.parity, counters.malformed), (0, 0));
    assert_eq!(subscriber.receiver.missing(), 1);
}

#[test]
fn parity_of_other_datagrams_rebuilds_nothing() {
    let (source, mut subscriber) = begun(4, 2);
    hear(&mut subscriber, &source, 5, &[0, 2, 3]);
    // Sums of something else: the padding of what comes out is not zero.
    subscriber.hear(6, &source.parity_of(source.sequence(0), 0b1111, (0, 1), &[0x5a; 150]));
    // Shorter than a datagram that has come.
    subscriber.hear(6, &source.parity_of(source.sequence(0), 0b1111, (0, 1), &[1; 20]));
    assert_eq!(subscriber.receiver.counters().malformed, 2);
    assert_eq!((subscriber.receiver.missing(), &subscriber.next[..]), (1, &[2, 0][..]));
    // Well formed, and its blocks are not: checked as those of any datagram.
    let mut symbol = vec![0; 150];
    for at in [0, 2, 3] {
        add_symbol(0, at, &source.datagrams[at].0[DATA_OFFSET..], &mut symbol);
    }
    add_symbol(0, 1, &[0xff; 60], &mut symbol);
    subscriber.hear(7, &source.parity_of(source.sequence(0), 0b1111, (0, 1), &symbol));
    assert_eq!(subscriber.receiver.counters().rebuilt, 1);
    assert_eq!((&subscriber.next[..], &subscriber.lost[1][..]), (&[2, 2][..], &[0][..]));
    for (members, row) in [(0, 0), (0b10, 0), (u64::MAX, 0), (1, 32), (1, 255)] {
        let malformed = subscriber.receiver.counters().malformed;
        subscriber.hear(8, &source.parity_of(source.sequence(3), members, (row, 1), &[0; 9]));
        assert_eq!(subscriber.receiver.counters().malformed, malformed + 1, "{members:b}, {row}");
    }
}

#[test]
fn any_parity_keeps_memory_bounded() {
    let mut rng = Rng::new(4);
    let (source, mut subscriber) = begun(FEC_DATA_MAX as u64, 2);
    for round in 0..20_000 {
        let first = source.sequence(rng.below(4_000) as usize);
        let members = 1 | rng.next_u64() & rng.next_u64() & rng.next_u64();
        let symbol: Vec<u8> = (0..rng.below(100)).map(|_| rng.next_u64() as u8).collect();
        let row = (rng.below(40) as u8, rng.below(3) as u8);
        subscriber.hear(round, &source.parity_of(first, members, row, &symbol));
        let tracker = &subscriber.receiver.session.tracker;
        assert!(tracker.gaps().len() <= 4_096 + 64);
    }
    // What was true before still is.
    let all: Vec<usize> = (0..FEC_DATA_MAX).collect();
    hear(&mut subscriber, &source, 30_000, &all);
    assert_eq!(subscriber.receiver.session.tracker.expected(), source.next_sequence());
}
