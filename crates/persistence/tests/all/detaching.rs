//! Receivers that give up their registrations: told until stores confirm it.

use crate::offers::{RUN, SOURCE, answer, asking, members, offer, settings};
use crate::parts::{MemoryLog, NOW, Outlet, TOPIC, store_at};
use lanecast_persistence::{Detachment, Receiver, ReceiverSettings, Store};
use lanecast_wire::store::{
    Ballot, Consumption, Registered, Run, StoreAddress, StoreFrame, StoreOffer, StoreRefusal,
    StoreState, TimedRecordsWriter,
};

const RETRY: u64 = 200_000_000;

fn hear(
    store: &mut Store,
    frame: &StoreFrame<'_>,
    log: &mut MemoryLog,
    out: &mut Outlet,
) -> Vec<StoreFrame<'static>> {
    out.frames.clear();
    let address = StoreAddress { client: 1, source: 7, topic: TOPIC };
    store.on_frame(address, frame, NOW, log, out);
    detached(out)
}

/// The confirmations that a store has given.
fn detached(out: &Outlet) -> Vec<StoreFrame<'static>> {
    let read = out.frames.iter().filter_map(|bytes| match StoreFrame::read(bytes) {
        Ok((_, StoreFrame::Detached { receiver, life })) => {
            Some(StoreFrame::Detached { receiver, life })
        }
        _ => None,
    });
    read.collect()
}

/// Stores that were told of the end, with the life.
fn told(out: &mut Outlet) -> Vec<(u64, u64)> {
    let frames = std::mem::take(&mut out.frames);
    let read = frames.iter().filter_map(|bytes| match StoreFrame::read(bytes) {
        Ok((address, StoreFrame::Detach { life, .. })) => Some((address.source, life)),
        _ => None,
    });
    read.collect()
}

fn report(receiver: u64, life: u64, next: u64) -> StoreFrame<'static> {
    let run = Run { ballot: Ballot { epoch: 3, session: 9 }, start: 0 };
    let registered = Registered::new(receiver, Consumption { run, next });
    StoreFrame::Consumed(Registered { life, ..registered })
}

#[test]
fn a_store_confirms_the_end_of_a_registration_when_it_is_on_disk() {
    let (mut store, mut log, mut out) = (store_at(5), MemoryLog::default(), Outlet::default());
    hear(&mut store, &report(1, 4, 5), &mut log, &mut out);
    let detach = |receiver, life| StoreFrame::Detach { receiver, life };
    assert_eq!(hear(&mut store, &detach(1, 3), &mut log, &mut out), [], "of an earlier life");
    assert_eq!(store.receivers(0, 0).count(), 1);
    log.unwritten = 1;
    assert_eq!(hear(&mut store, &detach(1, 4), &mut log, &mut out), []);
    assert_eq!(hear(&mut store, &detach(1, 4), &mut log, &mut out), [], "not durable yet");
    log.unwritten = 0;
    store.on_persisted(&log, &mut out);
    let ended = StoreFrame::Detached { receiver: 1, life: 4 };
    assert_eq!(detached(&out), std::slice::from_ref(&ended));
    assert_eq!(hear(&mut store, &detach(1, 4), &mut log, &mut out), [ended], "repeated");
    let never = StoreFrame::Detached { receiver: 2, life: 4 };
    assert_eq!(hear(&mut store, &detach(2, 4), &mut log, &mut out), [never], "never registered");
    // Reports that were under way register nothing.
    hear(&mut store, &report(1, 4, 5), &mut log, &mut out);
    hear(&mut store, &report(1, 2, 5), &mut log, &mut out);
    assert_eq!(store.receivers(0, 0).count(), 0);
    hear(&mut store, &report(1, 5, 5), &mut log, &mut out);
    assert_eq!(store.receivers(0, 0).count(), 1, "a later life");
    // Of a stream that the store does not know.
    let mut other = Store::new(lanecast_persistence::StoreSettings::default(), 6);
    let none = StoreFrame::Detached { receiver: 1, life: 9 };
    assert_eq!(hear(&mut other, &detach(1, 9), &mut log, &mut out), [none]);
}

/// A receiver whose three stores have offered a stream.
fn begun() -> (Receiver, Outlet) {
    let (mut receiver, mut out) = asking(settings());
    (0..3).for_each(|store| answer(&mut receiver, store, &offer(), NOW, &mut out));
    assert_eq!(receiver.next(SOURCE), Some(0));
    receiver.tick(NOW + 1, &mut out);
    (receiver, out)
}

fn confirm(receiver: &mut Receiver, store: usize, life: u64, now: u64, out: &mut Outlet) {
    let frame = StoreFrame::Detached { receiver: 1, life };
    receiver.on_frame(store, SOURCE, &frame, now, out);
}

/// The next questions, and the ends that are told beside them.
fn ask(receiver: &mut Receiver, now: u64, out: &mut Outlet) -> (Vec<(u64, u64)>, Vec<Vec<u8>>) {
    out.frames.clear();
    receiver.tick(now, out);
    let questions = out.frames.clone();
    (told(out), questions)
}

#[test]
fn the_end_is_told_until_every_store_has_confirmed_it() {
    let (mut receiver, mut out) = begun();
    assert_eq!(receiver.detachment(), None);
    receiver.detach(NOW + 2);
    let (told, questions) = ask(&mut receiver, NOW + 2, &mut out);
    assert_eq!(told, [(SOURCE, 1); 3]);
    out.frames = questions;
    let gone = StoreOffer { life: 1, ..offer() };
    (0..3).for_each(|store| answer(&mut receiver, store, &gone, NOW + 3, &mut out));
    let unconfirmed = |names: &[&str]| names.iter().map(|it| (*it).to_owned()).collect();
    let too_few = Detachment::TooFew { unconfirmed: unconfirmed(&["a", "b", "c"]) };
    assert_eq!(receiver.detachment(), Some(too_few));
    confirm(&mut receiver, 0, 0, NOW + 3, &mut out);
    confirm(&mut receiver, 0, 1, NOW + 3, &mut out);
    let too_few = Detachment::TooFew { unconfirmed: unconfirmed(&["b", "c"]) };
    assert_eq!(receiver.detachment(), Some(too_few));
    // Lost on the way: told again, to those that have not confirmed it.
    let (told, _) = ask(&mut receiver, NOW + 2 + RETRY, &mut out);
    assert_eq!(told, [(SOURCE, 1); 2]);
    confirm(&mut receiver, 2, 1, NOW + 3, &mut out);
    let enough = Detachment::Enough { unconfirmed: unconfirmed(&["b"]) };
    assert_eq!((receiver.detachment(), receiver.is_detached()), (Some(enough), false));
    confirm(&mut receiver, 1, 1, NOW + 3, &mut out);
    assert_eq!(receiver.detachment(), Some(Detachment::Everywhere));
    assert!(receiver.is_detached());
    // No message is handed out, and nothing is reported any more.
    out.receiver_events.clear();
    receiver.on_live(RUN.ballot.session, 0, b"late", NOW + 4, &mut out);
    receiver.consumed(SOURCE, 1, NOW + 4);
    let (told, frames) = ask(&mut receiver, NOW + 4 + 2 * RETRY, &mut out);
    assert!(told.is_empty() && out.receiver_events.is_empty(), "{:?}", out.receiver_events);
    let is_report = |it: &Vec<u8>| matches!(StoreFrame::read(it), Ok((_, StoreFrame::Consumed(_))));
    assert!(!frames.iter().any(is_report));
}

#[test]
fn a_store_that_is_away_is_named_and_not_waited_for_when_it_is_lost() {
    let (mut receiver, mut out) = begun();
    receiver.detach(NOW + 2);
    let mut now = NOW + 2;
    let gone = StoreOffer { life: 1, ..offer() };
    for round in 0..20 {
        let (_, questions) = ask(&mut receiver, now, &mut out);
        out.frames = questions;
        for store in [0, 2] {
            answer(&mut receiver, store, &gone, now, &mut out);
            confirm(&mut receiver, store, 1, now, &mut out);
        }
        let enough = Detachment::Enough { unconfirmed: vec!["b".to_owned()] };
        assert_eq!(receiver.detachment(), Some(enough));
        assert_eq!(receiver.is_detached(), round > 10, "round {round}");
        now += RETRY;
    }
}

#[test]
fn a_receiver_that_has_not_begun_ends_the_registrations_of_earlier_lives() {
    let (mut receiver, mut out) = asking(settings());
    out.receiver_events.clear();
    receiver.detach(NOW + 1);
    let (told, questions) = ask(&mut receiver, NOW + 1, &mut out);
    assert_eq!(told, [], "no stream is known");
    out.frames = questions;
    let consumption = Some(Consumption { run: RUN, next: 4 });
    let registered = StoreOffer { life: 6, consumption, ..offer() };
    (0..3).for_each(|store| answer(&mut receiver, store, &registered, NOW + 2, &mut out));
    assert!(out.receiver_events.is_empty(), "{:?}", out.receiver_events);
    assert!(receiver.due() <= NOW + 2, "at once");
    let (told, _) = ask(&mut receiver, NOW + 3, &mut out);
    assert_eq!(told, [(SOURCE, 6); 3]);
    (0..3).for_each(|store| confirm(&mut receiver, store, 6, NOW + 4, &mut out));
    assert!(receiver.is_detached());
}

/// A confirmed end that a store knows nothing of any more is told again.
#[test]
fn a_registration_that_comes_back_is_ended_again() {
    let (mut receiver, mut out) = begun();
    receiver.detach(NOW + 2);
    let (_, questions) = ask(&mut receiver, NOW + 2, &mut out);
    (0..3).for_each(|store| confirm(&mut receiver, store, 1, NOW + 3, &mut out));
    out.frames = questions;
    let consumption = Some(Consumption { run: RUN, next: 4 });
    let again = StoreOffer { life: 1, consumption, ..offer() };
    answer(&mut receiver, 1, &again, NOW + 4, &mut out);
    let (told, _) = ask(&mut receiver, NOW + 5, &mut out);
    assert_eq!(told, [(SOURCE, 1)]);
}

/// A program that leaves does not rely on acknowledgements any more: the next life begins anew.
#[test]
fn a_life_that_ends_is_told_of_no_acknowledgement() {
    let (mut receiver, mut out) = begun();
    receiver.on_live(RUN.ballot.session, 0, b"body", NOW + 1, &mut out);
    receiver.consumed(SOURCE, 1, NOW + 1);
    receiver.tick(NOW + RETRY, &mut out);
    receiver.detach(NOW + RETRY);
    out.receiver_events.clear();
    for store in 0..3 {
        let consumption = Consumption { run: RUN, next: 1 };
        let frame = StoreFrame::Acknowledged { receiver: 1, consumption };
        receiver.on_frame(store, SOURCE, &frame, NOW + RETRY, &mut out);
    }
    assert!(out.receiver_events.is_empty(), "{:?}", out.receiver_events);
}

/// Answers that were under way, losses and reports: of none the program hears any more.
#[test]
fn a_life_that_ends_is_told_of_no_message_and_no_refusal() {
    let (mut receiver, mut out) = begun();
    receiver.on_live(RUN.ballot.session, 0, b"body", NOW + 1, &mut out);
    receiver.consumed(SOURCE, 1, NOW + 1);
    receiver.on_live(RUN.ballot.session, 5, b"behind a gap", NOW + 1, &mut out);
    receiver.tick(NOW + 1, &mut out);
    receiver.detach(NOW + 2);
    out.receiver_events.clear();
    let mut writer = TimedRecordsWriter::default();
    (1..6).for_each(|_| writer.add(0, b"body"));
    let (log, records) = (RUN.ballot, writer.records());
    let fetched = StoreFrame::Fetched { log, from: 1, first: 1, next: 6, records };
    let refusal = StoreRefusal::Receivers { receiver: 1, most: 9 };
    for store in 0..3 {
        receiver.on_frame(store, SOURCE, &fetched, NOW + 3, &mut out);
        receiver.on_frame(store, SOURCE, &StoreFrame::Refused(refusal), NOW + 3, &mut out);
    }
    let foreign = 99;
    receiver.on_lost(foreign, 0, 3, &mut out);
    receiver.on_live(foreign, 3, b"body", NOW + 3, &mut out);
    let mut reports = 0;
    receiver.report(SOURCE, NOW + 3, |_, _| reports += 1);
    assert_eq!(reports, 0);
    for round in 0..3 {
        let (_, questions) = ask(&mut receiver, NOW + 4 + round * RETRY, &mut out);
        out.frames = questions;
        let gone = StoreOffer { life: 1, ..offer() };
        (0..3).for_each(|store| answer(&mut receiver, store, &gone, NOW + 4, &mut out));
    }
    assert!(out.receiver_events.is_empty(), "{:?}", out.receiver_events);
}

#[test]
fn the_confirmation_of_another_receiver_does_not_count() {
    let (mut receiver, mut out) = begun();
    receiver.detach(NOW + 2);
    let (_, questions) = ask(&mut receiver, NOW + 2, &mut out);
    out.frames = questions;
    let gone = StoreOffer { life: 1, ..offer() };
    for store in 0..3 {
        answer(&mut receiver, store, &gone, NOW + 3, &mut out);
        let frame = StoreFrame::Detached { receiver: 2, life: 1 };
        receiver.on_frame(store, SOURCE, &frame, NOW + 3, &mut out);
    }
    assert!(matches!(receiver.detachment(), Some(Detachment::TooFew { .. })));
}

/// Such a member cannot be asked: its administrator has to end the registration there.
#[test]
fn a_member_that_the_receiver_does_not_name_is_told_and_not_waited_for() {
    let (mut receiver, mut out) = begun();
    receiver.detach(NOW + 2);
    let (_, questions) = ask(&mut receiver, NOW + 2, &mut out);
    out.frames = questions;
    let named = [("a", 5), ("b", 5), ("c", 5), ("d", 5)];
    let state = StoreState { members: members(2, &named), ..offer().state };
    let gone = StoreOffer { life: 1, state, ..offer() };
    for store in 0..3 {
        answer(&mut receiver, store, &gone, NOW + 3, &mut out);
        confirm(&mut receiver, store, 1, NOW + 3, &mut out);
    }
    let enough = Detachment::Enough { unconfirmed: vec!["d".to_owned()] };
    assert_eq!((receiver.detachment(), receiver.is_detached()), (Some(enough), true));
}

/// A replay reports in the life of the registration that it finds, and ends that one.
#[test]
fn a_replay_ends_no_life_of_its_own() {
    let (mut receiver, mut out) = asking(ReceiverSettings { is_replay: true, ..settings() });
    receiver.detach(NOW + 1);
    let mut end_with = |offer: &StoreOffer, now, out: &mut Outlet| {
        let (_, questions) = ask(&mut receiver, now, out);
        out.frames = questions;
        answer(&mut receiver, 0, offer, now, out);
        ask(&mut receiver, now + RETRY, out).0
    };
    assert_eq!(end_with(&offer(), NOW + 1, &mut out), [(SOURCE, 0); 3]);
    let consumption = Some(Consumption { run: RUN, next: 4 });
    let registered = StoreOffer { life: 6, consumption, ..offer() };
    assert_eq!(end_with(&registered, NOW + 3 * RETRY, &mut out), [(SOURCE, 6); 3]);
}
