//! Parity that follows blocks, and parity that answers NAKs.

use super::*;
use crate::MICROSECOND;
use crate::fec::FecSettings;
use lanecast_wire::net::{DataHeader, ParityBody};

const DELAY: Nanos = 50 * MICROSECOND;

fn with_parity(distribution: Distribution, data: u8, parity: u8) -> Sender {
    let fec = Some(FecSettings { data, parity, delay: DELAY });
    sender(SenderSettings { fec, ..settings(distribution) })
}

/// The parity frames: where to, first sequence, members, row.
fn parity(sent: &[(SocketAddr, Vec<u8>)]) -> Vec<(SocketAddr, u64, u64, u8)> {
    let frames = sent.iter().filter_map(|(to, bytes)| Some((*to, Frame::split(bytes)?.0)));
    let frames = frames.filter(|(_, frame)| frame.kind == Kind::Parity);
    let read = |(to, frame): (SocketAddr, Frame<'_>)| {
        let (body, _) = ParityBody::split(&frame.body[size_of::<DataHeader>()..]).expect("a body");
        (to, frame.sequence, body.members.get(), body.row)
    };
    frames.map(read).collect()
}

#[test]
fn a_full_block_is_followed_by_its_parity_and_another_one_when_its_delay_is_over() {
    let mut sender = with_parity(Distribution::Multicast(group()), 4, 2);
    let start = let_in(&mut sender, 1, 1, flag::FEC, &["a"]);
    (0..6).for_each(|_| publish(&mut sender, 0, 100));
    let out = sent(&mut sender, 10);
    let kinds: Vec<_> = out.iter().map(|(_, bytes)| bytes[3]).collect();
    let (data, fec) = (Kind::Data as u8, Kind::Parity as u8);
    assert_eq!(kinds, [data, data, data, data, fec, fec, data, data]);
    assert_eq!(parity(&out), [(group(), start, 0b1111, 0), (group(), start, 0b1111, 1)]);
    assert_eq!(sender.next_deadline(), Some(10 + DELAY));
    assert!(sent(&mut sender, 9 + DELAY).is_empty());
    publish(&mut sender, 0, 100);
    let next = start.wrapping_add(4);
    let out = sent(&mut sender, 10 + DELAY);
    assert_eq!(parity(&out), [(group(), next, 0b111, 0), (group(), next, 0b111, 1)]);
    assert!(parity(&sent(&mut sender, 10 + 10 * DELAY)).is_empty(), "nothing was sent since");
    let counters = sender.counters();
    assert_eq!((counters.parity, counters.parity_repairs, counters.datagrams), (4, 0, 7));
}

#[test]
fn datagrams_that_come_between_two_rows_belong_to_the_next_block() {
    for distribution in [Distribution::Multicast(group()), Distribution::Unicast] {
        let mut sender = with_parity(distribution, 4, 2);
        let start = let_in(&mut sender, 1, 1, flag::FEC, &["a"]);
        publish(&mut sender, 0, 100);
        sent(&mut sender, 10);
        let due = 10 + DELAY;
        let transmit = sender.next_transmit(due).expect("a row");
        assert_eq!(transmit.bytes[3], Kind::Parity as u8);
        sender.transmitted(due);
        // The socket has no room for the second one yet.
        publish(&mut sender, 0, 100);
        let found = parity(&sent(&mut sender, due));
        assert_eq!(
            found.iter().map(|row| (row.1, row.2, row.3)).collect::<Vec<_>>(),
            [(start, 1, 1)]
        );
        let next = parity(&sent(&mut sender, due + DELAY));
        assert_eq!((next.len(), next[0].1), (2, start.wrapping_add(1)));
    }
}

#[test]
fn there_is_no_parity_for_receivers_that_cannot_use_it() {
    for distribution in [Distribution::Multicast(group()), Distribution::Unicast] {
        let mut sender = with_parity(distribution, 1, 1);
        let_in(&mut sender, 1, 1, 0, &["a"]);
        publish(&mut sender, 0, 100);
        assert!(parity(&sent(&mut sender, 10)).is_empty());
        assert!(parity(&sent(&mut sender, SECOND)).is_empty());
        let start = let_in(&mut sender, SECOND, 2, flag::FEC, &["a"]);
        publish(&mut sender, 0, 100);
        let to = if distribution == Distribution::Unicast { address(2) } else { group() };
        assert_eq!(parity(&sent(&mut sender, SECOND)), [(to, start, 1, 0)]);
    }
}

#[test]
fn a_unicast_block_has_what_was_sent_to_its_receiver() {
    let mut sender = with_parity(Distribution::Unicast, 3, 1);
    let start = let_in(&mut sender, 1, 1, flag::FEC, &["a"]);
    let_in(&mut sender, 1, 2, flag::FEC, &["a", "b"]);
    [0, 1, 1, 0, 0].into_iter().for_each(|topic| publish(&mut sender, topic, 100));
    let mut found = parity(&sent(&mut sender, 10));
    found.sort();
    assert_eq!(found, [(address(1), start, 0b1_1001, 0), (address(2), start, 0b111, 0)]);
    // Beyond the span of a block.
    publish(&mut sender, 0, 100);
    (0..70).for_each(|_| publish(&mut sender, 1, 100));
    publish(&mut sender, 0, 100);
    let status = status(1, start, start.wrapping_add(1_000));
    hear(&mut sender, 11, address(1), &status);
    let found = parity(&sent(&mut sender, 11));
    assert!(found.contains(&(address(1), start.wrapping_add(5), 1, 0)), "{found:?}");
}

#[test]
fn one_frame_answers_naks_for_different_datagrams_of_a_block() {
    let mut sender = with_parity(Distribution::Multicast(group()), 8, 1);
    let start = let_in(&mut sender, 1, 1, flag::FEC, &["a"]);
    let_in(&mut sender, 1, 2, flag::FEC, &["a"]);
    (0..16).for_each(|_| publish(&mut sender, 0, 100));
    assert_eq!(parity(&sent(&mut sender, 1)).len(), 2);
    let ask = |sender: &mut Sender, now, receiver, flags, at: u64| {
        let asked = nak(receiver, flags, &[(start.wrapping_add(at), 1)]);
        hear(sender, now, address(receiver as u16), &asked);
        let out = sent(sender, now);
        (of_kind(&out, Kind::Data).len(), parity(&out))
    };
    let answer = vec![(group(), start, 0xff, 1)];
    assert_eq!(ask(&mut sender, 10, 1, flag::PARITY, 2), (0, answer), "a row that is new");
    assert_eq!(ask(&mut sender, 12, 2, flag::PARITY, 5), (0, Vec::new()), "it repairs that, too");
    let two = nak(2, flag::PARITY, &[(start.wrapping_add(8), 1), (start.wrapping_add(11), 1)]);
    hear(&mut sender, 13, address(2), &two);
    let next = start.wrapping_add(8);
    let rows = [(group(), next, 0xff, 1), (group(), next, 0xff, 2)];
    assert_eq!(parity(&sent(&mut sender, 13)), rows, "as many as are missing");
    let later = 10 + MILLISECOND;
    let answer = vec![(group(), start, 0xff, 2)];
    assert_eq!(ask(&mut sender, later, 1, flag::PARITY, 2), (0, answer), "the first was lost");
    assert_eq!(ask(&mut sender, 2 * later, 1, 0, 2), (1, Vec::new()), "no parity was wanted");
    assert_eq!((sender.counters().parity_repairs, sender.counters().repairs), (4, 1));
}

#[test]
fn no_datagram_is_longer_than_the_limit() {
    let mut sender = with_parity(Distribution::Multicast(group()), 2, 1);
    let_in(&mut sender, 1, 1, flag::FEC, &["a"]);
    let longest = sender.longest_message();
    sender.stage(0, longest).expect("room").fill(1);
    sender.publish();
    sender.flush();
    let out = sent(&mut sender, 1);
    assert!(parity(&out).len() > 5);
    let limit = SenderSettings::default().datagram_bytes;
    let longest = out.iter().map(|(_, bytes)| bytes.len()).max().expect("some");
    assert!((limit - 8..=limit).contains(&longest), "{longest}");
}

#[test]
fn what_is_overwritten_has_no_parity() {
    let mut settings = settings(Distribution::Multicast(group()));
    settings.fec = Some(FecSettings { data: 32, parity: 1, delay: SECOND });
    (settings.pacing, settings.window_bytes) = (Pacing::None, 0);
    let mut sender = sender(settings);
    let_in(&mut sender, 1, 1, flag::FEC, &["a"]);
    for _ in 0..100 {
        publish(&mut sender, 0, 1_000);
        let out = sent(&mut sender, 1);
        assert_eq!((out.len(), parity(&out).len()), (1, 0), "the window holds fewer than 32");
    }
}
