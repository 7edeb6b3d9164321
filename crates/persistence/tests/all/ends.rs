//! Ends of sessions that a receiver learns of late, or from its stores alone.

use crate::offers::{RUN, SOURCE, answer, asking, offer, settings, told};
use crate::parts::{MemoryLog, NOW, Outlet, SESSION, TOPIC, store_at};
use crate::receivers::answer_all;
use lanecast_persistence::{GroupRule, Receiver, ReceiverSettings, Store, StoreGroups};
use lanecast_wire::store::{
    Ballot, Grouping, Members, Run, StoreAddress, StoreFrame, StoreOffer, StoreState,
    TimedRecordsWriter,
};

/// Number of questions for streams, one for each store and time.
fn questions(out: &Outlet) -> usize {
    let is_question =
        |bytes: &&Vec<u8>| matches!(StoreFrame::read(bytes), Ok((_, StoreFrame::Attach { .. })));
    out.frames.iter().filter(is_question).count()
}

/// Stores answer each question for some intervals, with these offers.
pub(crate) fn pass(
    receiver: &mut Receiver,
    offers: &[StoreOffer],
    now: &mut u64,
    intervals: u64,
    out: &mut Outlet,
) {
    let step = settings().retry / 20;
    for _ in 0..intervals * 20 {
        *now += step;
        let before = (questions(out), out.frames.len());
        if *now >= receiver.due() {
            receiver.tick(*now, out);
        }
        let asked = |bytes: &Vec<u8>| match StoreFrame::read(bytes) {
            Ok((_, StoreFrame::Fetch { from, .. })) => Some(from),
            _ => None,
        };
        for from in out.frames[before.1..].iter().filter_map(asked).collect::<Vec<_>>() {
            let (log, next) = (offers[0].state.log, offers[0].state.next);
            let mut writer = TimedRecordsWriter::default();
            (from..next).for_each(|_| writer.add(0, b"body"));
            let records = writer.records();
            let frame = StoreFrame::Fetched { log, from, first: from, next, records };
            (0..3).for_each(|it| receiver.on_frame(it, SOURCE, &frame, *now, out));
        }
        if questions(out) > before.0 {
            for (store, offer) in offers.iter().enumerate() {
                answer(receiver, store, offer, *now, out);
            }
        }
    }
}

/// The stores of an offer that started again when the publisher was gone.
fn replayed(next: u64) -> StoreOffer {
    let offer = offer();
    StoreOffer { is_live: false, state: StoreState { next, ..offer.state }, ..offer }
}

#[test]
fn the_end_of_a_session_is_told_though_its_store_started_after_it() {
    for next in [0, 2, 4] {
        let (mut receiver, mut out) = asking(settings());
        let mut now = NOW;
        (0..4).for_each(|number| receiver.on_live(SESSION, number, b"body", now, &mut out));
        receiver.on_left(SESSION);
        out.frames.clear();
        receiver.tick(now + settings().retry, &mut out);
        now += settings().retry;
        let offers = [replayed(next), replayed(next), replayed(next)];
        pass(&mut receiver, &offers, &mut now, 10, &mut out);
        assert_eq!(
            told(&out, "Left"),
            ["Left { source: 7, next: 4 }"],
            "{:?}",
            out.receiver_events
        );
        assert_eq!(told(&out, "Message").len(), 4);
        let asked = questions(&out) / 3;
        assert!(asked <= 14, "{asked} questions in ten intervals");
    }
}

/// The publisher may tell a store that its run is registered, or a store has to come back before
/// the stream begins.
#[test]
fn stores_are_not_asked_all_the_time_for_a_session_that_waits() {
    let own = members_that_are_silent();
    for offers in [vec![replayed(0); 3], vec![own.clone(), own]] {
        let (mut receiver, mut out) = asking(settings());
        let mut now = NOW;
        receiver.on_live(SESSION, 0, b"body", now, &mut out);
        pass(&mut receiver, &offers, &mut now, 2, &mut out);
        out.frames.clear();
        pass(&mut receiver, &offers, &mut now, 10, &mut out);
        let asked = questions(&out) / 3;
        assert!(asked <= 14, "{asked} questions in ten intervals");
        // Another one is asked for at once.
        out.frames.clear();
        receiver.on_live(SESSION + 70, 0, b"body", now, &mut out);
        assert!(receiver.due() <= now + settings().retry / 20);
    }
}

/// An offer of a store that was replaced last, like another one that does not answer.
fn members_that_are_silent() -> StoreOffer {
    let mut offer = offer();
    offer.state.members.version = 3;
    offer
}

/// A run that the stream does not follow yet has sent, and ended.
#[test]
fn a_session_of_a_later_run_is_not_taken_for_one_that_is_over() {
    let (mut receiver, mut out) = asking(settings());
    let mut now = NOW;
    answer_all(&mut receiver, [0; 3], now, &mut out);
    let later = Run { ballot: Ballot { epoch: 4, session: SESSION + 1 }, start: 0 };
    let state = StoreState { log: later.ballot, runs: vec![RUN, later], ..replayed(0).state };
    let begun = StoreOffer { state, ..replayed(0) };
    // One store has begun it, of three: nothing is decided, and its messages wait.
    receiver.on_live(SESSION + 1, 0, b"body", now, &mut out);
    receiver.on_left(SESSION + 1);
    let offers = [begun.clone(), replayed(0), replayed(0)];
    pass(&mut receiver, &offers, &mut now, 4, &mut out);
    assert_eq!((told(&out, "Message"), told(&out, "Left")), (vec![], vec![]));
    let offers = [begun.clone(), begun, replayed(0)];
    pass(&mut receiver, &offers, &mut now, 4, &mut out);
    assert_eq!(told(&out, "Message").len(), 1);
    assert_eq!(told(&out, "Left"), ["Left { source: 7, next: 1 }"]);
}

/// A publisher has evicted this receiver, or refused it.
#[test]
fn stores_tell_the_end_of_a_session_that_went_on_without_this_receiver() {
    let (mut receiver, mut out) = asking(settings());
    let mut now = NOW;
    answer_all(&mut receiver, [0; 3], now, &mut out);
    receiver.on_joined(SESSION);
    receiver.on_live(SESSION, 0, b"body", now, &mut out);
    let has = |next, has_left, is_live| {
        let offer = replayed(next);
        StoreOffer { has_left, is_live, ..offer }
    };
    let (living, gone, new) = (has(3, false, true), has(3, true, true), has(3, false, false));
    let cases = [
        // It goes on, as far as the stores know, and a single one may have lost its connection.
        (vec![living.clone(), living.clone(), living.clone()], 0),
        (vec![gone.clone(), living.clone(), living.clone()], 0),
        // Not heard of since the stores started is not seen to leave.
        (vec![new.clone(), new.clone(), new.clone()], 0),
        (vec![gone.clone(), gone.clone(), living.clone()], 1),
        (vec![gone.clone(), new, living.clone()], 1),
    ];
    for (offers, count) in cases {
        let mut cut_off = receiver.clone();
        let mut told_out = Outlet::default();
        told_out.frames.clone_from(&out.frames);
        cut_off.on_cut_off(SESSION);
        let mut then = now;
        pass(&mut cut_off, &offers, &mut then, 6, &mut told_out);
        assert_eq!(told(&told_out, "Message").len(), 2, "the stores bring the rest");
        assert_eq!(told(&told_out, "Left").len(), count, "{offers:?}");
    }
    // As long as it takes part, its own transport tells.
    let all_gone = vec![gone.clone(), gone.clone(), gone];
    pass(&mut receiver, &all_gone, &mut now, 6, &mut out);
    assert_eq!(told(&out, "Left"), [""; 0]);
    receiver.on_cut_off(SESSION);
    receiver.on_joined(SESSION);
    pass(&mut receiver, &all_gone, &mut now, 6, &mut out);
    assert_eq!(told(&out, "Left"), [""; 0]);
    receiver.on_cut_off(SESSION);
    pass(&mut receiver, &all_gone, &mut now, 6, &mut out);
    assert_eq!(told(&out, "Left"), ["Left { source: 7, next: 3 }"]);
}

/// The receiver is cut off, or told the end, before a store has named the session, and gets no live
/// message of it.
#[test]
fn the_end_of_a_session_that_brought_no_live_message_is_told_once() {
    let ends: [fn(&mut Receiver); 2] = [|it| it.on_cut_off(SESSION), |it| it.on_left(SESSION)];
    for end in ends {
        let (mut receiver, mut out) = asking(settings());
        let mut now = NOW;
        end(&mut receiver);
        let living = StoreOffer { is_live: true, ..replayed(3) };
        pass(&mut receiver, &vec![living.clone(); 3], &mut now, 4, &mut out);
        assert_eq!((told(&out, "Message").len(), told(&out, "Left")), (3, vec![]));
        let gone = StoreOffer { has_left: true, ..living };
        pass(&mut receiver, &vec![gone.clone(); 3], &mut now, 4, &mut out);
        assert_eq!(told(&out, "Left"), ["Left { source: 7, next: 3 }"]);
        // The same end again.
        receiver.on_cut_off(SESSION);
        pass(&mut receiver, &vec![gone; 3], &mut now, 4, &mut out);
        assert_eq!(told(&out, "Left").len(), 1);
    }
}

/// None of the stores has seen the publisher leave, and none hears of it.
#[test]
fn the_end_of_a_session_is_told_though_all_stores_started_after_it() {
    let (mut receiver, mut out) = asking(settings());
    let mut now = NOW;
    let (new, living) = (replayed(3), StoreOffer { is_live: true, ..replayed(3) });
    pass(&mut receiver, &vec![living.clone(); 3], &mut now, 2, &mut out);
    let goes_on = |receiver: &mut Receiver, offer: &StoreOffer, intervals, now: &mut u64| {
        let mut told_out = Outlet::default();
        told_out.frames.clone_from(&out.frames);
        pass(receiver, &vec![offer.clone(); 3], now, intervals, &mut told_out);
        told(&told_out, "Left")
    };
    // A receiver that takes part is told by its own transport.
    assert_eq!(goes_on(&mut receiver, &new, 150, &mut now), [""; 0]);
    receiver.on_cut_off(SESSION);
    assert_eq!(goes_on(&mut receiver, &new, 70, &mut now), [""; 0]);
    // The publisher lives after all.
    assert_eq!(goes_on(&mut receiver, &living, 2, &mut now), [""; 0]);
    assert_eq!(goes_on(&mut receiver, &new, 70, &mut now), [""; 0]);
    let mut rejoined = receiver.clone();
    assert_eq!(goes_on(&mut receiver, &new, 50, &mut now), ["Left { source: 7, next: 3 }"]);
    assert_eq!(goes_on(&mut receiver, &new, 150, &mut now), [""; 0], "once");
    rejoined.on_joined(SESSION);
    assert_eq!(goes_on(&mut rejoined, &new, 150, &mut now), [""; 0]);
    rejoined.on_cut_off(SESSION);
    assert_eq!(goes_on(&mut rejoined, &new, 70, &mut now), [""; 0]);
}

/// The run came to a quorum of its stores, and to too few for others to be sure that the rest never
/// begins it.
#[test]
fn the_end_of_a_session_is_told_though_stores_have_not_begun_its_run() {
    let groups = vec![vec!["a", "b", "c"], vec!["d"]];
    let stores = StoreGroups::new(groups, GroupRule::Any).expect("groups");
    let (mut receiver, mut out) = asking(ReceiverSettings::new(stores));
    let mut now = NOW;
    let names = ["a", "b", "c", "d"].map(|name| (name.to_owned(), 5)).to_vec();
    let grouping =
        Grouping { rule: GroupRule::Any, groups: vec![Some(0), Some(0), Some(0), Some(1)] };
    let members = Members { groupings: vec![grouping], ..Members::without_groups(1, names) };
    let before = replayed(0);
    let before = StoreOffer { state: StoreState { members, ..before.state }, ..before };
    let run = Run { ballot: Ballot { epoch: 4, session: SESSION + 1 }, start: 0 };
    let runs = vec![RUN, run];
    let state = StoreState { log: run.ballot, runs, next: 3, ..before.state.clone() };
    let begun = StoreOffer { state, ..before.clone() };
    let living = StoreOffer { is_live: true, ..begun.clone() };
    let offers = [living.clone(), before.clone(), before.clone(), living];
    pass(&mut receiver, &offers, &mut now, 4, &mut out);
    assert_eq!(told(&out, "Message").len(), 3);
    receiver.on_cut_off(run.ballot.session);
    let left = StoreOffer { has_left: true, is_live: true, ..begun.clone() };
    for (last, intervals) in [(&begun, 70), (&left, 20)] {
        let offers = [begun.clone(), before.clone(), before.clone(), last.clone()];
        pass(&mut receiver, &offers, &mut now, intervals, &mut out);
        assert_eq!(told(&out, "Left"), [""; 0], "others may begin the run yet");
    }
    let offers = [begun, before.clone(), before, left];
    pass(&mut receiver, &offers, &mut now, 50, &mut out);
    assert_eq!(told(&out, "Left"), ["Left { source: 7, next: 3 }"]);
}

/// Another one took the stream over for a while.
#[test]
fn the_end_of_a_session_is_told_that_came_back_with_a_later_run() {
    let (mut receiver, mut out) = asking(settings());
    let mut now = NOW;
    let at = |epoch, session, next| {
        let run = Run { ballot: Ballot { epoch, session }, start: 3 };
        let state = StoreState { log: run.ballot, runs: vec![RUN, run], ..replayed(next).state };
        StoreOffer { is_live: true, state, ..replayed(next) }
    };
    let first = StoreOffer { is_live: true, ..replayed(3) };
    pass(&mut receiver, &vec![first; 3], &mut now, 2, &mut out);
    receiver.on_cut_off(SESSION);
    pass(&mut receiver, &vec![at(4, SESSION + 1, 3); 3], &mut now, 2, &mut out);
    pass(&mut receiver, &vec![at(5, SESSION, 4); 3], &mut now, 2, &mut out);
    let before = told(&out, "Left").len();
    let gone = StoreOffer { has_left: true, ..at(5, SESSION, 4) };
    pass(&mut receiver, &vec![gone; 3], &mut now, 4, &mut out);
    assert_eq!(told(&out, "Left")[before..], ["Left { source: 7, next: 4 }"]);
}

/// One of them has started again, and answers no more; the third hears the publisher.
#[test]
fn stores_that_do_not_hear_a_publisher_have_to_answer_themselves() {
    let (mut receiver, mut out) = asking(settings());
    let mut now = NOW;
    let (new, living) = (replayed(3), StoreOffer { is_live: true, ..replayed(3) });
    pass(&mut receiver, &vec![living.clone(); 3], &mut now, 2, &mut out);
    receiver.on_cut_off(SESSION);
    pass(&mut receiver, &[new.clone(), living.clone(), living.clone()], &mut now, 2, &mut out);
    for _ in 0..130 {
        now += settings().retry;
        receiver.tick(now, &mut out);
        answer(&mut receiver, 1, &new, now, &mut out);
        answer(&mut receiver, 2, &living, now, &mut out);
    }
    assert_eq!(told(&out, "Left"), [""; 0]);
}

#[test]
fn a_store_tells_that_it_has_seen_a_session_end() {
    let mut store = store_at(0);
    let (mut log, mut out) = (MemoryLog::default(), Outlet::default());
    let ballot = Ballot { epoch: 3, session: 9 };
    let address = StoreAddress { client: 9, source: 7, topic: TOPIC };
    let has_left = |store: &mut Store, log: &mut MemoryLog| {
        let mut out = Outlet::default();
        let attach =
            StoreFrame::Attach { receiver: 1, token: 2, since_unix_ns: 0, until_unix_ns: 0 };
        store.on_frame(StoreAddress { source: 0, ..address }, &attach, NOW, log, &mut out);
        out.frames.iter().find_map(|bytes| match StoreFrame::read(bytes) {
            Ok((_, StoreFrame::Offer(offer))) => Some(offer.has_left),
            _ => None,
        })
    };
    let query = StoreFrame::Query { ballot, next: 0 };
    store.on_frame(address, &query, NOW, &mut log, &mut out);
    assert_eq!(has_left(&mut store, &mut log), Some(false));
    store.on_session(8, false);
    assert_eq!(has_left(&mut store, &mut log), Some(false), "another session");
    log.unwritten = 1;
    store.on_message(9, 0, b"body", NOW, &mut log, &mut out);
    store.on_session(9, false);
    assert_eq!(has_left(&mut store, &mut log), Some(false), "its message is not on disk");
    log.unwritten = 0;
    store.on_persisted(&log, &mut out);
    assert_eq!(has_left(&mut store, &mut log), Some(true));
    // Sent before its end, and read after it.
    store.on_frame(address, &query, NOW, &mut log, &mut out);
    assert_eq!(has_left(&mut store, &mut log), Some(true));
    // Only the connection had ended.
    store.on_session(9, true);
    assert_eq!(has_left(&mut store, &mut log), Some(false));
    store.on_session(9, false);
    store.on_message(9, 1, b"body", NOW, &mut log, &mut out);
    assert_eq!(has_left(&mut store, &mut log), Some(false));
    // Another run.
    store.on_session(9, false);
    let open = StoreFrame::Open { ballot: Ballot { epoch: 4, session: 10 } };
    store.on_frame(address, &open, NOW, &mut log, &mut out);
    store.on_session(10, false);
    assert_eq!(has_left(&mut store, &mut log), Some(true), "the run of the log has ended");
}
