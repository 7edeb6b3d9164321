//! Losses of publishers whose messages no store keeps.

use crate::offers::{asking, settings, token, told};
use crate::parts::{NOW, Outlet};
use lanecast_persistence::Receiver;
use lanecast_wire::store::StoreFrame;

const FOREIGN: u64 = 99;

/// Two stores answer that they have no stream, to a question that was asked by now.
fn answer_none(receiver: &mut Receiver, now: u64, out: &mut Outlet) {
    receiver.tick(now, out);
    let streams = StoreFrame::Streams { incarnation: 5, token: token(out), count: 0 };
    (0..2).for_each(|store| receiver.on_frame(store, 0, &streams, now, out));
}

/// The numbers of messages that were handed out, and those that were lost.
fn numbers(out: &Outlet) -> Vec<String> {
    let word = |event: &String| {
        let rest = event.split_once("session: 99, ").map_or("", |(_, rest)| rest);
        let rest = rest.split(", bytes").next().unwrap_or_default();
        rest.trim_end_matches(" }").to_owned()
    };
    told(out, "Unkept").iter().map(word).collect()
}

#[test]
fn losses_before_the_stores_have_answered_are_told() {
    let (mut receiver, mut out) = asking(settings());
    let live = |receiver: &mut Receiver, number, out: &mut Outlet| {
        receiver.on_live(FOREIGN, number, b"body", NOW, out);
    };
    (0..3).for_each(|number| live(&mut receiver, number, &mut out));
    receiver.on_lost(FOREIGN, 3, 3, &mut out);
    live(&mut receiver, 6, &mut out);
    receiver.on_lost(FOREIGN, 7, 2, &mut out);
    assert_eq!(numbers(&out), [""; 0]);
    answer_none(&mut receiver, NOW + settings().retry, &mut out);
    let expected = [
        "number: 0",
        "number: 1",
        "number: 2",
        "first: 3, count: 3",
        "number: 6",
        "first: 7, count: 2",
    ];
    assert_eq!(numbers(&out), expected);
    live(&mut receiver, 9, &mut out);
    assert_eq!(numbers(&out)[6..], ["number: 9"]);
}

/// The publisher may have registered a run since they were asked.
#[test]
fn answers_to_earlier_questions_do_not_tell_that_no_store_keeps_a_session() {
    let (mut receiver, mut out) = asking(settings());
    let before = token(&out);
    receiver.on_live(FOREIGN, 0, b"body", NOW, &mut out);
    receiver.tick(NOW + settings().retry, &mut out);
    let last = token(&out);
    assert_ne!(before, last);
    for (store, token) in [(0, before), (1, before), (2, before), (0, last)] {
        let streams = StoreFrame::Streams { incarnation: 5, token, count: 0 };
        receiver.on_frame(store, 0, &streams, NOW, &mut out);
        assert_eq!(numbers(&out), [""; 0], "by store {store}, asked {token}");
    }
    let streams = StoreFrame::Streams { incarnation: 5, token: last, count: 0 };
    receiver.on_frame(1, 0, &streams, NOW, &mut out);
    assert_eq!(numbers(&out), ["number: 0"]);
}

#[test]
fn a_loss_in_front_of_the_first_message_is_told() {
    let (mut receiver, mut out) = asking(settings());
    receiver.on_lost(FOREIGN, 0, 5, &mut out);
    receiver.on_live(FOREIGN, 5, b"body", NOW, &mut out);
    answer_none(&mut receiver, NOW + settings().retry, &mut out);
    assert_eq!(numbers(&out), ["first: 0, count: 5", "number: 5"]);
}

/// The session is joined again at its newest message, after this receiver was evicted.
#[test]
fn messages_between_two_parts_in_a_session_are_lost() {
    let (mut receiver, mut out) = asking(settings());
    receiver.on_live(FOREIGN, 0, b"body", NOW, &mut out);
    answer_none(&mut receiver, NOW + settings().retry, &mut out);
    for number in [1, 7, 8] {
        receiver.on_live(FOREIGN, number, b"body", NOW, &mut out);
    }
    let expected = ["number: 0", "number: 1", "first: 2, count: 5", "number: 7", "number: 8"];
    assert_eq!(numbers(&out), expected);
    // The transport tells a part of a loss itself.
    receiver.on_lost(FOREIGN, 9, 2, &mut out);
    receiver.on_live(FOREIGN, 13, b"body", NOW, &mut out);
    assert_eq!(numbers(&out)[5..], ["first: 9, count: 2", "first: 11, count: 2", "number: 13"]);
}
