//! Receivers that name more stores than hold a stream, while its members are away.

use crate::ends::pass;
use crate::offers::{SOURCE, answer, asking, settings, token, told};
use crate::parts::{NOW, Outlet, SESSION};
use crate::receivers::{naming, offer_by};
use lanecast_persistence::Receiver;
use lanecast_wire::store::{StoreFrame, StoreOffer, StoreState};

/// The only member, with the messages before `next`.
fn member(next: u64) -> StoreOffer {
    let offer = offer_by(&[("a", 5)], None);
    StoreOffer { state: StoreState { next, ..offer.state }, ..offer }
}

/// Stores that do not know the stream answer the questions of some intervals.
fn pass_without(
    receiver: &mut Receiver,
    stores: &[usize],
    now: &mut u64,
    intervals: u64,
    out: &mut Outlet,
) {
    for _ in 0..intervals {
        *now += settings().retry;
        receiver.tick(*now, out);
        let streams = StoreFrame::Streams { incarnation: 9, token: token(out), count: 0 };
        stores.iter().for_each(|store| receiver.on_frame(*store, 0, &streams, *now, out));
    }
}

/// A receiver of the messages with these numbers, whose publisher has ended, and then its store.
fn deserted(numbers: &[u64], now: &mut u64) -> (Receiver, Outlet) {
    let (mut receiver, mut out) = asking(naming(&["a", "b", "c"]));
    answer(&mut receiver, 0, &member(0), *now, &mut out);
    pass_without(&mut receiver, &[1, 2], now, 1, &mut out);
    numbers.iter().for_each(|it| receiver.on_live(SESSION, *it, b"body", *now, &mut out));
    receiver.on_left(SESSION);
    receiver.on_disconnected(0);
    (receiver, out)
}

/// The messages behind the last one, or those in a gap, may be stable.
#[test]
fn a_member_that_is_away_decides_what_is_lost_and_what_has_ended() {
    for numbers in [&[0][..], &[0, 2]] {
        let mut now = NOW;
        let (mut receiver, mut out) = deserted(numbers, &mut now);
        // They are enough by the receiver's own list.
        pass_without(&mut receiver, &[1, 2], &mut now, 120, &mut out);
        assert_eq!((told(&out, "Lost"), told(&out, "Left")), (vec![], vec![]));
        assert!(!receiver.has_ended());
        let waiting = told(&out, "Waiting");
        assert_eq!(waiting.last().map(|it| &**it), Some(r#"Waiting { silent: ["a"] }"#));
        pass(&mut receiver, &[member(5)], &mut now, 4, &mut out);
        assert_eq!(told(&out, "Lost"), [""; 0]);
        assert_eq!(told(&out, "Message").len(), 5);
        assert_eq!(told(&out, "Left"), ["Left { source: 7, next: 5 }"]);
    }
}

#[test]
fn a_member_that_has_lost_its_data_is_not_waited_for() {
    let mut now = NOW;
    let (mut receiver, mut out) = deserted(&[0, 2], &mut now);
    pass_without(&mut receiver, &[0, 1, 2], &mut now, 15, &mut out);
    let lost = "Lost { source: 7, first: 1, count: 1, why: NotStored }";
    assert_eq!(told(&out, "Lost"), [lost]);
    assert_eq!(told(&out, "Left"), ["Left { source: 7, next: 3 }"]);
}

/// The member's host has gone, so nothing tells the end of its connection.
#[test]
fn a_member_that_answers_no_more_is_named_while_the_end_waits_for_it() {
    let mut now = NOW;
    let (mut receiver, mut out) = asking(naming(&["a", "b", "c"]));
    answer(&mut receiver, 0, &member(1), now, &mut out);
    pass_without(&mut receiver, &[1, 2], &mut now, 1, &mut out);
    receiver.on_live(SESSION, 0, b"body", now, &mut out);
    receiver.on_left(SESSION);
    let before = told(&out, "Waiting").len();
    pass_without(&mut receiver, &[1, 2], &mut now, 8, &mut out);
    assert_eq!(told(&out, "Waiting").len(), before, "its answer may be on its way");
    pass_without(&mut receiver, &[1, 2], &mut now, 6, &mut out);
    assert_eq!(told(&out, "Waiting")[before..], [r#"Waiting { silent: ["a"] }"#]);
    assert_eq!(told(&out, "Left"), [""; 0]);
    pass(&mut receiver, &[member(1)], &mut now, 2, &mut out);
    assert_eq!(told(&out, "Left"), ["Left { source: 7, next: 1 }"]);
}

/// The answer with its data was lost on its way, and its offers were not.
#[test]
fn a_member_that_came_back_empty_brings_nothing_of_what_it_told_before() {
    let mut now = NOW;
    let (mut receiver, mut out) = asking(naming(&["a", "b", "c"]));
    let of = |next| {
        let offer = offer_by(&[("a", 5), ("b", 5), ("c", 5)], None);
        StoreOffer { state: StoreState { next, ..offer.state }, ..offer }
    };
    (1..3).for_each(|store| answer(&mut receiver, store, &of(1), now, &mut out));
    let offer = StoreOffer { token: token(&out), ..of(3) };
    receiver.on_frame(0, SOURCE, &StoreFrame::Offer(offer), now, &mut out);
    [0, 3].iter().for_each(|it| receiver.on_live(SESSION, *it, b"body", now, &mut out));
    receiver.on_left(SESSION);
    receiver.on_disconnected(0);
    for _ in 0..15 {
        now += settings().retry;
        receiver.tick(now, &mut out);
        let gone = StoreOffer { has_left: true, ..of(1) };
        (1..3).for_each(|store| answer(&mut receiver, store, &gone, now, &mut out));
        let streams = StoreFrame::Streams { incarnation: 9, token: token(&out), count: 0 };
        receiver.on_frame(0, 0, &streams, now, &mut out);
    }
    let lost = "Lost { source: 7, first: 1, count: 2, why: NotStored }";
    assert_eq!(told(&out, "Lost"), [lost]);
}
