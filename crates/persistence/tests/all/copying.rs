//! Messages that a store gets from others: from a store that answers late or not at all, and from a
//! publisher that goes on behind the last sequence.

use crate::edges::{NOW, SESSION};
use crate::parts::{MemoryLog, Outlet, TOPIC, store_at};
use lanecast_persistence::{Store, StoreLog, StoreSettings};
use lanecast_wire::store::{
    Ballot, LogRecord, Members, RecordsWriter, Run, STORE_NUMBER_MAX, StoreAddress, StoreFrame,
    TimedRecords, TimedRecordsWriter,
};

const OLD: Ballot = Ballot { epoch: 3, session: 9 };
const ADDRESS: StoreAddress<'_> = StoreAddress { client: SESSION, source: 7, topic: TOPIC };

/// Ticks of a store at its interval, until it does not copy any more; returns their number.
fn ticks_of_copying(store: &mut Store, log: &mut MemoryLog, out: &mut Outlet) -> u64 {
    let retry = StoreSettings::default().retry;
    let is_copying = |store: &Store| store.summaries().any(|stream| stream.is_copying);
    let mut ticks = 0;
    while is_copying(store) && ticks < 1_000 {
        ticks += 1;
        store.tick(NOW + ticks * retry, log, out);
    }
    ticks
}

#[test]
fn a_donor_that_looks_for_its_messages_is_not_given_up() {
    let mut store = store_at(0);
    let (mut log, mut out) = (MemoryLog::default(), Outlet::default());
    let elsewhere = StoreFrame::Elsewhere { ballot: OLD, until: 2, donor: "b" };
    store.on_frame(ADDRESS, &elsewhere, NOW, &mut log, &mut out);
    let retry = StoreSettings::default().retry;
    for tick in 1..=50 {
        // It has read much, and has not come to the message.
        let records = TimedRecords::EMPTY;
        let empty = StoreFrame::Fetched { log: OLD, from: 0, first: 0, next: 2, records };
        store.on_frame(ADDRESS, &empty, NOW + (tick - 1) * retry, &mut log, &mut out);
        store.tick(NOW + tick * retry, &mut log, &mut out);
        assert_eq!(out.to_peers, 1 + tick as usize);
    }
    let mut writer = TimedRecordsWriter::default();
    (0..2).for_each(|_| writer.add(1, b"body"));
    let records = writer.records();
    let fetched = StoreFrame::Fetched { log: OLD, from: 0, first: 0, next: 2, records };
    store.on_frame(ADDRESS, &fetched, NOW + 50 * retry, &mut log, &mut out);
    let next: Vec<u64> = store.summaries().map(|stream| stream.next).collect();
    assert_eq!((next, ticks_of_copying(&mut store, &mut log, &mut out)), (vec![2], 0));
}

#[test]
fn nothing_is_taken_behind_the_last_sequence() {
    for is_sent_again in [false, true] {
        let start = STORE_NUMBER_MAX - 2;
        let mut store = store_at(start);
        let (mut log, mut out) = (MemoryLog::default(), Outlet::default());
        let query = StoreFrame::Query { ballot: OLD, next: start };
        store.on_frame(ADDRESS, &query, NOW, &mut log, &mut out);
        let mut writer = RecordsWriter::default();
        // The log checks that its records can be read.
        for number in 0..5 {
            if is_sent_again {
                writer.add(b"body");
            } else {
                store.on_message(OLD.session, number ^ 1, b"body", NOW, &mut log, &mut out);
            }
        }
        let resend = StoreFrame::Resend { ballot: OLD, first: start, records: writer.records() };
        store.on_frame(ADDRESS, &resend, NOW, &mut log, &mut out);
        store.tick(2 * NOW, &mut log, &mut out);
        let next: Vec<u64> = store.summaries().map(|stream| stream.next).collect();
        assert_eq!(next, [STORE_NUMBER_MAX]);
    }
}

#[test]
fn a_silent_donor_is_given_up() {
    let mut store = store_at(0);
    let (mut log, mut out) = (MemoryLog::default(), Outlet::default());
    let elsewhere = StoreFrame::Elsewhere { ballot: OLD, until: 2, donor: "b" };
    store.on_frame(ADDRESS, &elsewhere, NOW, &mut log, &mut out);
    assert!((2..10).contains(&ticks_of_copying(&mut store, &mut log, &mut out)));
}

/// A store that copies ten messages for a run, and has three of them.
fn taking_over(log: &mut MemoryLog, out: &mut Outlet) -> Store {
    let mut store = store_at(0);
    begin(&mut store, log, out);
    let mut writer = TimedRecordsWriter::default();
    (0..3).for_each(|_| writer.add(1, b"body"));
    fetch(&mut store, &writer, log, out);
    store
}

const NEW: Ballot = Ballot { epoch: 5, session: SESSION };
const CHOSEN: Ballot = Ballot { epoch: 4, session: 8 };

fn begin(store: &mut Store, log: &mut MemoryLog, out: &mut Outlet) {
    begin_at(store, NOW, log, out);
}

fn begin_at(store: &mut Store, now: u64, log: &mut MemoryLog, out: &mut Outlet) {
    store.on_frame(ADDRESS, &StoreFrame::Open { ballot: NEW }, now, log, out);
    let (members, start) = (Members::without_groups(1, vec![("a".to_owned(), 5)]), 10);
    let runs = vec![Run { ballot: CHOSEN, start: 0 }, Run { ballot: NEW, start }];
    let (ballot, chosen, number, donor) = (NEW, CHOSEN, 0, "b");
    let (log_of, is_receiver_paced) = (chosen, false);
    let frame = StoreFrame::Begin {
        ballot,
        log: log_of,
        start,
        number,
        is_receiver_paced,
        donor,
        members,
        runs,
    };
    store.on_frame(ADDRESS, &frame, now, log, out);
}

/// The donor answers with the first messages.
fn fetch(store: &mut Store, writer: &TimedRecordsWriter, log: &mut MemoryLog, out: &mut Outlet) {
    let records = writer.records();
    let frame = StoreFrame::Fetched { log: CHOSEN, from: 0, first: 0, next: 10, records };
    store.on_frame(ADDRESS, &frame, NOW, log, out);
}

/// Checks that the store has given up its copies, and that the run begins when it is asked again.
#[track_caller]
fn assert_begins_anew(store: &mut Store, log: &mut MemoryLog, out: &mut Outlet) {
    let truncated = LogRecord::Truncated { stream: 0, next: 0 };
    assert_eq!(log.last(), Some(truncated), "the copies are void");
    begin_at(store, NOW + 1_000 * StoreSettings::default().retry, log, out);
    let mut writer = TimedRecordsWriter::default();
    (0..10).for_each(|_| writer.add(1, b"body"));
    fetch(store, &writer, log, out);
    let streams: Vec<(Ballot, u64)> = store.summaries().map(|it| (it.run, it.next)).collect();
    assert_eq!(streams, [(NEW, 10)]);
    assert_eq!(log.restore(store_at(0)).checkpoint().count(), 1, "it can be replayed");
}

#[test]
fn a_take_over_ends_when_its_donor_is_gone() {
    let (mut log, mut out) = (MemoryLog::default(), Outlet::default());
    let mut store = taking_over(&mut log, &mut out);
    let ticks = ticks_of_copying(&mut store, &mut log, &mut out);
    assert!((50..200).contains(&ticks), "{ticks}");
    assert_begins_anew(&mut store, &mut log, &mut out);
}

/// Retention passes over a stream that is being copied.
#[test]
fn a_publisher_that_repeats_a_take_over_from_a_dead_donor_leaves_time_for_retention() {
    let (mut log, mut out) = (MemoryLog::default(), Outlet::default());
    let mut store = taking_over(&mut log, &mut out);
    let retry = StoreSettings::default().retry;
    let mut free = Vec::new();
    for tick in 1..=1_000 {
        let now = NOW + tick * retry;
        begin_at(&mut store, now, &mut log, &mut out);
        store.tick(now, &mut log, &mut out);
        free.push(!store.summaries().any(|stream| stream.is_copying));
    }
    let longest_copying = free.split(|it| *it).map(<[bool]>::len).max();
    assert!(longest_copying.is_some_and(|ticks| ticks < 150), "{longest_copying:?}");
    let is_free = free.iter().filter(|it| **it).count();
    assert!((50..200).contains(&is_free), "{is_free} of 1,000 intervals");
}

#[test]
fn a_store_that_starts_again_gives_up_what_it_had_copied() {
    let (mut log, mut out) = (MemoryLog::default(), Outlet::default());
    taking_over(&mut log, &mut out);
    let mut store = log.restore(store_at(0));
    assert_eq!(ticks_of_copying(&mut store, &mut log, &mut out), 1);
    // It is told once.
    let records = log.persisted();
    log.restore(store_at(0)).tick(NOW, &mut log, &mut out);
    assert_eq!(log.persisted(), records);
    assert_begins_anew(&mut store, &mut log, &mut out);
}

#[test]
fn a_later_run_makes_the_copies_of_the_one_before_void() {
    let (mut log, mut out) = (MemoryLog::default(), Outlet::default());
    let mut store = taking_over(&mut log, &mut out);
    let ballot = Ballot { epoch: 6, session: 4 };
    store.on_frame(ADDRESS, &StoreFrame::Open { ballot }, NOW, &mut log, &mut out);
    assert_eq!(ticks_of_copying(&mut store, &mut log, &mut out), 0);
    let void = LogRecord::Truncated { stream: 0, next: 0 };
    assert_eq!(log.all().filter(|it| *it == void).count(), 2, "before the copies, and behind");
}
