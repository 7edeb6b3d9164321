//! Receivers miss datagrams.

use super::*;
use crate::round_trip::RoundTrip;

/// A group of two with `count` datagrams sent; the first of them.
fn group_of_two(count: usize, change: impl FnOnce(&mut SenderSettings)) -> (Sender, u64) {
    let mut settings = settings(Distribution::Multicast(group()));
    change(&mut settings);
    let mut sender = sender(settings);
    let start = let_in(&mut sender, 1, 1, 0, &["a"]);
    let_in(&mut sender, 1, 2, 0, &["a"]);
    for _ in 0..count {
        publish(&mut sender, 0, 100);
    }
    assert_eq!(of_kind(&sent(&mut sender, 1), Kind::Data).len(), count);
    (sender, start)
}

#[test]
fn missing_datagrams_are_sent_again_once_in_half_a_round_trip() {
    let (mut sender, start) = group_of_two(20, |_| {});
    let asked = nak(1, 0, &[(start.wrapping_add(2), 3), (start.wrapping_add(10), 1)]);
    hear(&mut sender, 10, address(1), &asked);
    let out = sent(&mut sender, 12);
    assert_eq!(of_kind(&out, Kind::Confirm), [(group(), 0, start.wrapping_add(2))]);
    let data = of_kind(&out, Kind::Data);
    assert!(data.iter().all(|one| (one.0, one.1) == (group(), flag::AGAIN)));
    let again: Vec<u64> = data.iter().map(|one| one.2.wrapping_sub(start)).collect();
    assert_eq!(again, [2, 3, 4, 10]);
    hear(&mut sender, 13, address(2), &nak(2, 0, &[(start.wrapping_add(2), 2)]));
    assert!(of_kind(&sent(&mut sender, 13), Kind::Data).is_empty(), "they are on their way");
    hear(&mut sender, 14, address(2), &nak(2, 0, &[(start.wrapping_add(1), 11)]));
    let data = of_kind(&sent(&mut sender, 14), Kind::Data);
    let again: Vec<u64> = data.iter().map(|one| one.2.wrapping_sub(start)).collect();
    assert_eq!(again, [1, 5, 6, 7, 8, 9, 11], "only what is not");
    let later = 12 + RoundTrip::UNKNOWN;
    hear(&mut sender, later, address(1), &asked);
    assert_eq!(of_kind(&sent(&mut sender, later), Kind::Data).len(), 4);
}

#[test]
fn a_repeated_nak_does_not_wait_for_the_round_trips_of_others() {
    let (mut sender, start) = group_of_two(1, |_| {});
    let limit = start.wrapping_add(64);
    hear(&mut sender, 1, address(1), &status_from((9, 20_000), 1, start, limit));
    hear(&mut sender, 1, address(2), &status_from((9, u32::MAX), 2, start, limit));
    let mut answers = |now, receiver| {
        let asked = nak(receiver, 0, &[(start, 1)]);
        hear(&mut sender, now, address(receiver as u16), &asked);
        of_kind(&sent(&mut sender, now), Kind::Data).len()
    };
    assert_eq!(answers(100, 1), 1);
    assert_eq!(answers(9_000, 1), 0, "the answer is on its way");
    assert_eq!(answers(20_100, 2), 0, "and longer so to the other");
    assert_eq!(answers(20_100, 1), 1, "it was lost");
    let longest = 20_100 + RoundTrip::PATIENCE_MAX / 2;
    assert_eq!(answers(longest, 2), 1, "longer round trips are not believed");
}

#[test]
fn a_nak_of_one_receiver_is_answered_to_it_alone() {
    let (mut sender, start) = group_of_two(20, |_| {});
    hear(&mut sender, 10, address(1), &nak(1, flag::ALONE, &[(start, 20)]));
    let data = of_kind(&sent(&mut sender, 12), Kind::Data);
    assert_eq!(data.len(), 20);
    assert!(data.iter().all(|one| one.0 == address(1)));
}

#[test]
fn positions_outside_the_window_are_not_repaired() {
    let (mut sender, start) = group_of_two(20, |settings| settings.pacing = Pacing::None);
    for _ in 0..2_000 {
        publish(&mut sender, 0, 100);
        sent(&mut sender, 1);
    }
    let next = sender.session.sent;
    hear(&mut sender, 10, address(1), &nak(1, 0, &[(start, 3), (next, 9)]));
    let out = sent(&mut sender, 12);
    assert_eq!(of_kind(&out, Kind::Void), [(address(1), flag::GONE, start)]);
    assert!(of_kind(&out, Kind::Data).is_empty());
    assert_eq!(sender.counters().gone, 3);
}

#[test]
fn unwanted_topics_are_void_for_a_receiver() {
    let mut sender = sender(settings(Distribution::Unicast));
    let start = let_in(&mut sender, 1, 1, 0, &["a"]);
    let_in(&mut sender, 1, 2, 0, &["b"]);
    for topic in [0, 1, 1, 0] {
        publish(&mut sender, topic, 100);
    }
    sent(&mut sender, 1);
    hear(&mut sender, 10, address(1), &nak(1, 0, &[(start, 4)]));
    let out = sent(&mut sender, 12);
    assert_eq!(of_kind(&out, Kind::Void), [(address(1), flag::UNWANTED, start.wrapping_add(1))]);
    assert_eq!(of_kind(&out, Kind::Data).len(), 2);
}

#[test]
fn a_storm_of_naks_gets_no_more_than_its_share_and_the_others_are_served() {
    let (mut sender, start) = group_of_two(60, |settings| {
        settings.link_rate = 10_000_000;
        settings.repair_share = 10;
    });
    let asked = nak(1, 0, &[(start, 60)]);
    let (mut bytes, mut now) = (0, 1);
    while now < SECOND {
        hear(&mut sender, now, address(1), &asked);
        for (_, datagram) in sent(&mut sender, now) {
            let is_data = datagram[3] == Kind::Data as u8;
            bytes += if is_data { datagram.len() } else { 0 };
        }
        now += 200 * crate::MICROSECOND;
    }
    // Repairs may take 1 MB/s, of which half is this receiver's, and a burst.
    assert!((400_000..=500_000 + (1 << 16) + 10_000).contains(&bytes), "{bytes}");
    hear(&mut sender, now, address(2), &nak(2, 0, &[(start, 1)]));
    let later = now + SECOND / 10;
    assert!(of_kind(&sent(&mut sender, later), Kind::Data).iter().any(|one| one.0 == group()));
}

#[test]
fn datagrams_that_arrived_meanwhile_are_not_sent_again() {
    for asks_again in [false, true] {
        let (mut sender, start) = group_of_two(60, |settings| {
            settings.link_rate = 10_000;
            settings.repair_share = 10;
        });
        let at = |offset| start.wrapping_add(offset);
        hear(&mut sender, 10, address(1), &nak(1, 0, &[(start, 60)]));
        sender.repairs.budget.take(1 << 17);
        assert!(of_kind(&sent(&mut sender, 10), Kind::Data).is_empty(), "there is no budget");
        let says = if asks_again { nak(1, 0, &[(at(58), 1)]) } else { status(1, at(59), at(99)) };
        hear(&mut sender, 20, address(1), &says);
        let later = 20 + 1_000 * SECOND;
        let data = of_kind(&sent(&mut sender, later), Kind::Data);
        assert!(data.iter().all(|one| one.2 == at(58) || one.2 == at(59)), "{data:?}");
        assert!(!data.is_empty());
    }
}
