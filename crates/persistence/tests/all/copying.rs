//! Messages that a store gets from others: from a store that answers late or not at all, and from a
//! publisher that goes on behind the last sequence.

use crate::cluster::Cluster;
use crate::parts::{MemoryLog, NOW, Outlet, SESSION, TOPIC, report_of, store_at};
use lanecast_persistence::{Store, StoreLog, StoreSettings};
use lanecast_wire::store::{
    Ballot, Consumption, LogRecord, Members, RecordsWriter, Run, STORE_NUMBER_MAX, StoreAddress,
    StoreFrame, TimedRecords, TimedRecordsWriter,
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

/// A store of three messages whose receiver has consumed one.
struct Lagging {
    store: Store,
    log: MemoryLog,
    out: Outlet,
}

impl Lagging {
    fn new(is_by_receivers: bool) -> Self {
        let (log, out) = (MemoryLog::default(), Outlet::default());
        let mut lagging = Self { store: store_at(0), log, out };
        let paced = LogRecord::Paced { stream: 0, is_by_receivers };
        lagging.store.replay(&paced).expect("it follows");
        lagging.hear(&StoreFrame::Query { ballot: OLD, next: 0 });
        let mut writer = RecordsWriter::default();
        (0..3).for_each(|_| writer.add(b"body"));
        let records = writer.records();
        lagging.hear(&StoreFrame::Resend { ballot: OLD, first: 0, records });
        lagging.report(1);
        lagging
    }

    fn hear(&mut self, frame: &StoreFrame<'_>) {
        self.store.on_frame(ADDRESS, frame, NOW, &mut self.log, &mut self.out);
        self.store.on_persisted(&self.log, &mut self.out);
    }

    fn report(&mut self, next: u64) {
        let run = Run { ballot: OLD, start: 0 };
        self.hear(&report_of(1, Consumption { run, next }));
    }

    /// The publisher names a store that answers with messages 8 and 9; returns the first sequence
    /// and the next one.
    fn copy(&mut self) -> (u64, u64) {
        self.hear(&StoreFrame::Elsewhere { ballot: OLD, until: 10, donor: "b" });
        let mut writer = TimedRecordsWriter::default();
        (0..2).for_each(|_| writer.add(1, b"body"));
        let records = writer.records();
        self.hear(&StoreFrame::Fetched { log: OLD, from: 3, first: 8, next: 10, records });
        let mut streams = self.store.summaries().map(|it| (it.first, it.next));
        streams.next().expect("a stream")
    }
}

/// A donor that joined later does not know the receivers of the time before.
#[test]
fn copies_behind_a_gap_end_nothing_that_a_pacing_receiver_needs() {
    let mut lagging = Lagging::new(true);
    assert_eq!(lagging.copy(), (0, 3));
    assert_eq!(lagging.out.to_peers, 1, "it asks again in its time");
    let Lagging { store, log, out } = &mut lagging;
    let ticks = ticks_of_copying(store, log, out);
    assert!((2..10).contains(&ticks), "the donor is given up as one that is silent: {ticks}");
    lagging.report(2);
    assert_eq!(lagging.copy(), (0, 3));
    // The receiver has what there is here: the log goes on.
    lagging.report(3);
    assert_eq!(lagging.copy(), (8, 10));
    let restored = lagging.log.all().last();
    assert!(matches!(restored, Some(LogRecord::Copied { sequence: 9, .. })), "{restored:?}");
}

#[test]
fn copies_behind_a_gap_do_not_wait_for_receivers_that_hold_nothing_back() {
    assert_eq!(Lagging::new(false).copy(), (8, 10), "paced by its source");
    let mut lagging = Lagging::new(true);
    lagging.hear(&StoreFrame::Detach { receiver: 1, life: 0 });
    assert_eq!(lagging.copy(), (8, 10), "deregistered");
}

/// A run that begins waits in the same way, until the receiver has what there is in front of it.
#[test]
fn a_take_over_behind_a_gap_ends_nothing_that_a_pacing_receiver_needs() {
    let mut lagging = Lagging::new(true);
    lagging.hear(&StoreFrame::Open { ballot: NEW });
    let begin = |lagging: &mut Lagging| {
        let (members, start) = (Members::without_groups(1, vec![("a".to_owned(), 5)]), 10);
        let runs = vec![Run { ballot: OLD, start: 0 }, Run { ballot: NEW, start }];
        let (ballot, number, donor, is_receiver_paced) = (NEW, 0, "b", true);
        let log = OLD;
        let frame = StoreFrame::Begin {
            ballot,
            log,
            start,
            number,
            is_receiver_paced,
            donor,
            members,
            runs,
        };
        lagging.hear(&frame);
        let mut writer = TimedRecordsWriter::default();
        (0..2).for_each(|_| writer.add(1, b"body"));
        let records = writer.records();
        lagging.hear(&StoreFrame::Fetched { log: OLD, from: 3, first: 8, next: 10, records });
        let mut streams = lagging.store.summaries().map(|it| (it.run, it.first, it.next));
        streams.next().expect("a stream")
    };
    assert_eq!(begin(&mut lagging), (OLD, 0, 3));
    lagging.report(3);
    assert_eq!(begin(&mut lagging), (NEW, 8, 10));
}

/// The publisher knows where the messages of each store begin.
#[test]
fn a_publisher_names_a_store_that_has_all_that_is_missed() {
    let names = ["a", "b", "c"];
    for trimmed in ["a", "b"] {
        let mut cluster = Cluster::new(&names);
        cluster.publish(&names);
        cluster.run(10);
        cluster.send(3, &[]);
        cluster.run(3);
        cluster.stop("c");
        cluster.send(5, &[]);
        cluster.run(3);
        cluster.trim(trimmed, 8);
        cluster.run(3);
        cluster.start("c");
        cluster.run(30);
        assert_eq!(cluster.messages("c"), 0..8, "{trimmed} has none");
        // The same before a run begins.
        cluster.stop("c");
        cluster.send(5, &[]);
        cluster.run(3);
        cluster.trim(trimmed, 13);
        cluster.start("c");
        cluster.publish(&names);
        cluster.run(30);
        assert_eq!(cluster.messages("c"), 0..13, "{trimmed} has none");
    }
}
