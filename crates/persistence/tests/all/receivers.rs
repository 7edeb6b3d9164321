//! Receivers whose stores know different things: replaced ones, ones that lag, ones that are away.

use crate::offers::{RUN, SOURCE, answer, asking, members, offer, settings, token, told};
use crate::parts::{NOW, Outlet, SESSION};
use lanecast_persistence::{GroupRule, Receiver, ReceiverSettings, StoreGroups};
use lanecast_wire::store::{
    Ballot, Consumption, Grouping, Members, Run, StoreFrame, StoreOffer, StoreState, TimedRecords,
    TimedRecordsWriter,
};

/// Data of a store that has lost what the members had under its name.
const OTHER_DATA: u64 = 6;

/// Messages are copied to a store that is replaced, receivers' positions are not.
#[test]
fn a_replaced_store_does_not_make_a_receiver_new() {
    let consumed = |next| Some(Consumption { run: RUN, next });
    let replaced = |incarnation, consumption| {
        let members = members(2, &[("a", 5), ("c", 5), ("b", OTHER_DATA)]);
        let offer = offer();
        let state = StoreState { incarnation, members, ..offer.state };
        StoreOffer { consumption, state, ..offer }
    };
    let joined = |next: u64, is_resumed: bool| {
        vec![format!("Joined {{ source: 7, next: {next}, is_resumed: {is_resumed} }}")]
    };
    // One that was away, and the replaced one: neither knows the receiver.
    let (mut receiver, mut out) = asking(settings());
    answer(&mut receiver, 2, &replaced(5, None), NOW, &mut out);
    answer(&mut receiver, 1, &replaced(OTHER_DATA, None), NOW, &mut out);
    assert_eq!(told(&out, "Joined"), [""; 0]);
    receiver.tick(NOW, &mut out);
    assert_eq!(told(&out, "Waiting")[1..], [r#"Waiting { silent: ["a"] }"#]);
    let (mut other, mut other_out) = (receiver.clone(), asking(settings()).1);
    answer(&mut receiver, 0, &replaced(5, consumed(8)), NOW, &mut out);
    assert_eq!(told(&out, "Joined"), joined(8, true));
    // The data of the one that may know more is gone for good.
    answer(&mut other, 0, &replaced(OTHER_DATA, None), NOW, &mut other_out);
    assert_eq!(told(&other_out, "Joined"), joined(0, false));
    // The replaced one has heard of the receiver since.
    let (mut receiver, mut out) = asking(settings());
    answer(&mut receiver, 1, &replaced(OTHER_DATA, consumed(9)), NOW, &mut out);
    answer(&mut receiver, 2, &replaced(5, None), NOW, &mut out);
    assert_eq!(told(&out, "Joined"), joined(9, true));
    // The first members decide without it.
    let (mut receiver, mut out) = asking(settings());
    answer(&mut receiver, 0, &replaced(5, None), NOW, &mut out);
    answer(&mut receiver, 2, &replaced(5, None), NOW, &mut out);
    assert_eq!(told(&out, "Joined"), joined(0, false));
}

/// All stores answer that they have the messages before `next`.
pub(crate) fn answer_all(receiver: &mut Receiver, next: [u64; 3], now: u64, out: &mut Outlet) {
    receiver.tick(now, out);
    for (store, next) in next.into_iter().enumerate() {
        let offer = offer();
        let state = StoreState { next, ..offer.state };
        answer(receiver, store, &StoreOffer { state, ..offer }, now, out);
    }
}

#[test]
fn the_end_of_a_session_is_told_when_a_quorum_has_no_more() {
    let (mut receiver, mut out) = asking(settings());
    let retry = settings().retry;
    answer_all(&mut receiver, [0; 3], NOW, &mut out);
    let live = |receiver: &mut Receiver, number, out: &mut Outlet| {
        receiver.on_live(SESSION, number, b"body", NOW, out);
    };
    live(&mut receiver, 0, &mut out);
    // A message of the session after its end: only the connection had ended.
    receiver.on_left(SESSION);
    live(&mut receiver, 1, &mut out);
    answer_all(&mut receiver, [2; 3], NOW + retry, &mut out);
    assert_eq!(told(&out, "Left"), [""; 0]);
    // Answers that were asked for before it was told do not count, nor does one store's.
    let offer = |next| {
        let offer = offer();
        StoreOffer { state: StoreState { next, ..offer.state }, ..offer }
    };
    receiver.on_left(SESSION);
    (0..3).for_each(|store| answer(&mut receiver, store, &offer(2), NOW + retry, &mut out));
    receiver.tick(NOW + 2 * retry, &mut out);
    answer(&mut receiver, 0, &offer(2), NOW + 2 * retry, &mut out);
    assert_eq!(told(&out, "Left"), [""; 0]);
    // Another has a message that was lost on its way here.
    answer(&mut receiver, 1, &offer(3), NOW + 2 * retry, &mut out);
    answer(&mut receiver, 2, &offer(2), NOW + 2 * retry, &mut out);
    assert_eq!(told(&out, "Left"), [""; 0]);
    live(&mut receiver, 2, &mut out);
    receiver.on_left(SESSION);
    answer_all(&mut receiver, [3, 2, 3], NOW + 3 * retry, &mut out);
    answer_all(&mut receiver, [3; 3], NOW + 4 * retry, &mut out);
    assert_eq!(told(&out, "Left"), ["Left { source: 7, next: 3 }"]);
}

#[test]
fn the_end_of_a_session_that_ended_before_it_was_named_is_told() {
    let (mut receiver, mut out) = asking(settings());
    (0..2).for_each(|number| receiver.on_live(SESSION, number, b"body", NOW, &mut out));
    receiver.on_left(SESSION);
    answer_all(&mut receiver, [2; 3], NOW, &mut out);
    receiver.tick(NOW, &mut out);
    // It has asked for what comes behind the two.
    let (log, records) = (RUN.ballot, TimedRecords::EMPTY);
    let frame = StoreFrame::Fetched { log, from: 2, first: 2, next: 2, records };
    (0..3).for_each(|store| receiver.on_frame(store, SOURCE, &frame, NOW, &mut out));
    answer_all(&mut receiver, [2; 3], NOW + settings().retry, &mut out);
    assert_eq!(told(&out, "Message").len(), 2);
    assert_eq!(told(&out, "Left"), ["Left { source: 7, next: 2 }"]);
}

/// A run that two stores have begun, with messages from `first` on.
fn later_offer(first: u64) -> StoreOffer {
    let run = Run { ballot: Ballot { epoch: 4, session: SESSION + 1 }, start: 10 };
    let (log, runs, offer) = (run.ballot, vec![RUN, run], offer());
    let state = StoreState { promised: log, log, first, next: 12, runs, ..offer.state };
    StoreOffer { state, ..offer }
}

/// Stores have removed other messages, and the one that has most of them lags.
#[test]
fn messages_come_from_a_store_that_has_not_begun_the_run() {
    let (mut receiver, mut out) = asking(settings());
    let lagging = offer();
    let consumption = Some(Consumption { run: RUN, next: 2 });
    let state = StoreState { first: 2, ..lagging.state };
    let lagging = StoreOffer { consumption, state, ..lagging };
    answer(&mut receiver, 0, &lagging, NOW, &mut out);
    (1..3).for_each(|store| answer(&mut receiver, store, &later_offer(10), NOW, &mut out));
    receiver.tick(NOW, &mut out);
    let mut writer = TimedRecordsWriter::default();
    // It may have more by its own log, which is no part of the followed one.
    (2..11).for_each(|_| writer.add(0, b"body"));
    let (log, records) = (RUN.ballot, writer.records());
    let frame = StoreFrame::Fetched { log, from: 2, first: 2, next: 11, records };
    receiver.on_frame(0, SOURCE, &frame, NOW, &mut out);
    assert_eq!(told(&out, "Lost"), [""; 0], "{:?}", out.receiver_events);
    assert_eq!(told(&out, "Message").len(), 8);
    assert_eq!(told(&out, "Recovered"), [""; 0]);
    assert_eq!(fetched(&out), Some(10));
}

#[test]
fn messages_are_not_lost_while_a_store_that_may_have_them_comes_back() {
    let (mut receiver, mut out) = asking(settings());
    let retry = settings().retry;
    let trimmed = offer();
    let trimmed = StoreOffer { state: StoreState { first: 9, ..trimmed.state }, ..trimmed };
    let is_all = StoreOffer { consumption: Some(Consumption { run: RUN, next: 4 }), ..trimmed };
    for round in 0..10 {
        let now = NOW + round * retry;
        receiver.tick(now, &mut out);
        (0..2).for_each(|store| answer(&mut receiver, store, &is_all, now, &mut out));
        receiver.tick(now, &mut out);
        assert_eq!(told(&out, "Lost"), [""; 0], "after {round} rounds");
    }
    let mut back = (receiver.clone(), Outlet::default());
    back.1.frames = out.frames.clone();
    answer(&mut back.0, 2, &offer(), NOW + 10 * retry, &mut back.1);
    back.0.tick(NOW + 11 * retry, &mut back.1);
    assert_eq!((told(&back.1, "Lost"), fetched(&back.1)), (vec![], Some(4)));
    // It does not come back.
    for round in 10..14 {
        receiver.tick(NOW + round * retry, &mut out);
        (0..2).for_each(|it| answer(&mut receiver, it, &is_all, NOW + round * retry, &mut out));
    }
    let lost = "Lost { source: 7, first: 4, count: 5, why: Expired }";
    assert_eq!(told(&out, "Lost"), [lost]);
}

/// Sequence of the first message that was asked for last.
pub(crate) fn fetched(out: &Outlet) -> Option<u64> {
    out.frames.iter().rev().find_map(|bytes| match StoreFrame::read(bytes) {
        Ok((_, StoreFrame::Fetch { from, .. })) => Some(from),
        _ => None,
    })
}

#[test]
fn a_stream_that_never_began_is_not_waited_for() {
    let (mut receiver, mut out) = asking(settings());
    // Its publisher ended between the promise and the beginning.
    let promised = StoreState { incarnation: 5, promised: RUN.ballot, ..StoreState::default() };
    let promised = StoreOffer { state: promised, is_live: false, ..offer() };
    answer(&mut receiver, 0, &promised, NOW, &mut out);
    assert!(!receiver.has_ended(), "another store may have begun it");
    answer(&mut receiver, 1, &promised, NOW, &mut out);
    receiver.tick(NOW, &mut out);
    assert!(receiver.has_ended());
    // It begins after all.
    receiver.tick(NOW + settings().retry, &mut out);
    answer(&mut receiver, 1, &offer(), NOW + settings().retry, &mut out);
    assert!(!receiver.has_ended());
    assert_eq!(told(&out, "Joined").len(), 1);
}

#[test]
fn stores_that_answer_and_do_not_count_are_named() {
    let (mut receiver, mut out) = asking(settings());
    let wiped = offer();
    let wiped =
        StoreOffer { state: StoreState { incarnation: OTHER_DATA, ..wiped.state }, ..wiped };
    answer(&mut receiver, 0, &offer(), NOW, &mut out);
    (1..3).for_each(|store| answer(&mut receiver, store, &wiped, NOW, &mut out));
    receiver.tick(NOW, &mut out);
    assert_eq!(
        told(&out, "Waiting").last().map(|it| &**it),
        Some(r#"Waiting { silent: ["b", "c"] }"#)
    );
    assert!(!receiver.has_ended());
}

#[test]
fn a_store_with_more_streams_than_a_receiver_takes_has_answered() {
    let (mut receiver, mut out) = asking(settings());
    let (count, token) = (10_001, token(&out));
    let promised = StoreState { incarnation: 5, promised: RUN.ballot, ..StoreState::default() };
    for store in 0..2 {
        for source in 0..u64::from(count) {
            let offer = StoreOffer { token, state: promised.clone(), ..offer() };
            receiver.on_frame(store, source, &StoreFrame::Offer(offer), NOW, &mut out);
        }
        let streams = StoreFrame::Streams { incarnation: 5, token, count };
        receiver.on_frame(store, 0, &streams, NOW, &mut out);
    }
    assert!(receiver.has_all());
}

/// More sessions than wait with their messages, and more than are counted.
#[test]
fn no_session_loses_its_first_messages_in_silence() {
    const SESSIONS: u64 = 65_537;
    let (mut receiver, mut out) = asking(settings());
    for session in 0..SESSIONS {
        receiver.on_live(session, 0, b"body", NOW, &mut out);
    }
    receiver.on_live(SESSIONS - 2, 1, b"body", NOW, &mut out);
    let last = SESSIONS - 1;
    assert_eq!(
        told(&out, "UnkeptLost"),
        [format!("UnkeptLost {{ session: {last}, first: 0, count: 1 }}")]
    );
    let now = NOW + settings().retry;
    receiver.tick(now, &mut out);
    let streams = StoreFrame::Streams { incarnation: 5, token: token(&out), count: 0 };
    (0..2).for_each(|store| receiver.on_frame(store, 0, &streams, now, &mut out));
    let (kept, lost) = (told(&out, "Unkept {").len(), told(&out, "UnkeptLost").len());
    assert_eq!((kept, kept + lost), (1_024, 65_537));
    let twice = format!("UnkeptLost {{ session: {}, first: 0, count: 2 }}", SESSIONS - 2);
    assert!(out.receiver_events.contains(&twice));
}

/// Settings that name these stores.
pub(crate) fn naming(stores: &[&str]) -> ReceiverSettings {
    let groups = StoreGroups::new(vec![stores.to_vec()], GroupRule::Any).expect("groups");
    ReceiverSettings::new(groups)
}

/// An offer by members that have told their groups: one.
pub(crate) fn offer_by(names: &[(&str, u64)], consumed: Option<u64>) -> StoreOffer {
    let stores: Vec<_> = names.iter().map(|(name, data)| ((*name).to_owned(), *data)).collect();
    let grouping = Grouping { rule: GroupRule::Any, groups: vec![Some(0); stores.len()] };
    let members = Members::first(stores, vec![grouping]);
    let (offer, consumption) = (offer(), consumed.map(|next| Consumption { run: RUN, next }));
    StoreOffer { consumption, state: StoreState { members, ..offer.state }, ..offer }
}

const THREE: [(&str, u64); 3] = [("a", 5), ("b", 5), ("c", 5)];

/// One store of two is a quorum of these, and none of the three that hold the stream.
#[test]
fn a_receiver_that_names_fewer_stores_waits_for_a_quorum_of_the_members() {
    let (mut receiver, mut out) = asking(naming(&["a", "b"]));
    answer(&mut receiver, 0, &offer_by(&THREE, None), NOW, &mut out);
    receiver.tick(NOW, &mut out);
    assert_eq!(told(&out, "Joined"), [""; 0]);
    let waiting = r#"Waiting { silent: ["b", "c"] }"#;
    assert_eq!(told(&out, "Waiting").last().map(|it| &**it), Some(waiting));
    answer(&mut receiver, 1, &offer_by(&THREE, Some(8)), NOW, &mut out);
    assert_eq!(told(&out, "Joined"), ["Joined { source: 7, next: 8, is_resumed: true }"]);
    // Alone it never has one.
    let (mut receiver, mut out) = asking(naming(&["a"]));
    answer(&mut receiver, 0, &offer_by(&THREE, None), NOW, &mut out);
    receiver.tick(NOW, &mut out);
    assert_eq!(told(&out, "Joined"), [""; 0]);
    assert_eq!(told(&out, "Waiting").last().map(|it| &**it), Some(waiting));
    assert!(!receiver.has_ended());
}

#[test]
fn a_receiver_that_names_more_stores_begins_with_the_members() {
    let (mut receiver, mut out) = asking(naming(&["a", "b", "c"]));
    answer(&mut receiver, 0, &offer_by(&[("a", 5)], Some(8)), NOW, &mut out);
    assert_eq!(told(&out, "Joined"), ["Joined { source: 7, next: 8, is_resumed: true }"]);
    // The others do not know the stream, and confirm nothing.
    receiver.consumed(SOURCE, 8, NOW);
    receiver.tick(NOW, &mut out);
    acknowledge(&mut receiver, 0, 8, &mut out);
    assert_eq!(told(&out, "Acknowledged"), [""; 0], "nothing that was not acknowledged before");
    assert!(receiver.is_acknowledged());
}

/// A store confirms what was consumed.
fn acknowledge(receiver: &mut Receiver, store: usize, next: u64, out: &mut Outlet) {
    let consumption = Consumption { run: RUN, next };
    let frame = StoreFrame::Acknowledged { receiver: 1, consumption };
    receiver.on_frame(store, SOURCE, &frame, NOW, out);
}

#[test]
fn a_quorum_of_the_members_acknowledges() {
    let (mut receiver, mut out) = asking(naming(&["a", "b"]));
    let five = [("a", 5), ("b", 5), ("c", 5), ("d", 5), ("e", 5)];
    // Of the members that are named, these two alone are none of five.
    for members in [&five[..], &THREE] {
        let (mut receiver, mut out) = (receiver.clone(), Outlet::default());
        receiver.tick(NOW + settings().retry, &mut out);
        for store in 0..2 {
            answer(&mut receiver, store, &offer_by(members, Some(0)), NOW, &mut out);
        }
        let has_joined = !told(&out, "Joined").is_empty();
        assert_eq!(has_joined, members.len() == 3, "{:?}", out.receiver_events);
    }
    (0..2).for_each(|it| answer(&mut receiver, it, &offer_by(&THREE, Some(0)), NOW, &mut out));
    let mut writer = TimedRecordsWriter::default();
    (0..10).for_each(|_| writer.add(0, b"body"));
    receiver.tick(NOW, &mut out);
    let (log, records) = (RUN.ballot, writer.records());
    let frame = StoreFrame::Fetched { log, from: 0, first: 0, next: 10, records };
    (0..2).for_each(|store| receiver.on_frame(store, SOURCE, &frame, NOW, &mut out));
    assert_eq!(told(&out, "Message").len(), 10);
    receiver.consumed(SOURCE, 10, NOW);
    receiver.tick(NOW + settings().retry, &mut out);
    acknowledge(&mut receiver, 0, 10, &mut out);
    assert_eq!(told(&out, "Acknowledged"), [""; 0]);
    acknowledge(&mut receiver, 1, 10, &mut out);
    assert_eq!(told(&out, "Acknowledged"), ["Acknowledged { source: 7, next: 10 }"]);
}

/// A replay of messages that were acknowledged before is known to the stores as soon as it begins.
#[test]
fn what_a_replay_consumes_again_is_acknowledged_without_an_answer() {
    let (mut receiver, mut out) = asking(ReceiverSettings { is_replay: true, ..settings() });
    let consumption = Some(Consumption { run: RUN, next: 9 });
    let offer = StoreOffer { consumption, life: 4, ..offer() };
    (0..3).for_each(|store| answer(&mut receiver, store, &offer, NOW, &mut out));
    assert_eq!(receiver.next(SOURCE), Some(0));
    receiver.tick(NOW + 1, &mut out);
    assert!(!receiver.is_acknowledged());
    (0..2).for_each(|store| acknowledge(&mut receiver, store, 9, &mut out));
    assert!(receiver.is_acknowledged());
    for number in 0..5 {
        receiver.on_live(RUN.ballot.session, number, b"again", NOW + 2, &mut out);
    }
    receiver.consumed(SOURCE, 5, NOW + 2);
    assert!(!receiver.is_acknowledged());
    out.frames.clear();
    receiver.tick(NOW + 1_000_000_000, &mut out);
    assert!(receiver.is_acknowledged());
    assert_eq!(told(&out, "Acknowledged"), ["Acknowledged { source: 7, next: 5 }"]);
}
