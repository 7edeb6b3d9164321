//! The last sequences, answers without messages, sessions that end before a store has named them.

use crate::offers::{answer, answer_next, offer_of_runs, settings};
use crate::parts::{MemoryLog, NOW, Outlet, SESSION, TOPIC, groups, report_of, store_at};
use lanecast_persistence::{
    Receiver, ReceiverEnd, ReceiverSettings, ReceiverStart, SendRefusal, Source, SourceEvent,
    SourceSettings, Store, StoreSettings,
};
use lanecast_wire::store::{
    Ballot, Consumption, DeregisterOutcome, RecordsWriter, Registration, Run, STORE_NUMBER_MAX,
    StoreAddress, StoreFrame, StoreKind, StoreOffer, TimedRecords, TimedRecordsWriter,
};

/// Carries frames between a publisher and its store until both are silent.
pub(crate) fn exchange(
    source: &mut Source,
    store: &mut Store,
    log: &mut MemoryLog,
    out: &mut Outlet,
) {
    source.tick(NOW, out);
    loop {
        let requests = std::mem::take(&mut out.frames);
        if requests.is_empty() {
            return;
        }
        for bytes in requests {
            let (address, frame) = StoreFrame::read(&bytes).expect("as it was written");
            store.on_frame(address, &frame, NOW, log, out);
        }
        for bytes in std::mem::take(&mut out.frames) {
            let (_, frame) = StoreFrame::read(&bytes).expect("as it was written");
            source.on_frame(0, &frame, NOW, out);
        }
    }
}

#[test]
fn a_stream_ends_with_its_last_sequence() {
    let mut store = store_at(STORE_NUMBER_MAX - 3);
    let (mut log, mut out) = (MemoryLog::default(), Outlet::default());
    let mut source = Source::new(SourceSettings::new(groups()), SESSION, 0, NOW);
    exchange(&mut source, &mut store, &mut log, &mut out);
    let next = STORE_NUMBER_MAX - 3;
    assert!(out.source_events.contains(&SourceEvent::Registered { next }), "{out:?}");
    for number in 0..3 {
        source.check_room(4).expect("a sequence is left");
        source.sent(b"body");
        store.on_message(SESSION, number, b"body", NOW, &mut log, &mut out);
    }
    // The registered publisher names its run with the next request.
    let address = StoreAddress { client: SESSION, source: 7, topic: TOPIC };
    let ballot = Ballot { epoch: 4, session: SESSION };
    let query = StoreFrame::Query { ballot, next: source.next() };
    store.on_frame(address, &query, NOW, &mut log, &mut out);
    store.on_persisted(&log, &mut out);
    for bytes in std::mem::take(&mut out.frames) {
        let (_, frame) = StoreFrame::read(&bytes).expect("as it was written");
        source.on_frame(0, &frame, NOW, &mut out);
    }
    exchange(&mut source, &mut store, &mut log, &mut out);
    assert_eq!((source.next(), source.stable()), (STORE_NUMBER_MAX, STORE_NUMBER_MAX));
    assert_eq!(source.check_room(4), Err(SendRefusal::Exhausted));
}

/// Each opens a later run before the other's is registered, in an order that never changes.
#[test]
fn publishers_that_outbid_each_other_are_registered() {
    let mut store = Store::new(StoreSettings::default(), 5);
    let mut log = MemoryLog::default();
    let open = |session| (session, Source::new(SourceSettings::new(groups()), session, 0, NOW));
    let mut ends = [1, 2].map(|session| (open(session), Outlet::default()));
    for round in 0..2_000 {
        let now = NOW + round * 1_000_000;
        for ((session, source), out) in &mut ends {
            source.tick(now, out);
            for _ in 0..2 {
                let mut answers = Outlet::default();
                for bytes in std::mem::take(&mut out.frames) {
                    let (address, frame) = StoreFrame::read(&bytes).expect("as it was written");
                    let address = StoreAddress { client: *session, ..address };
                    store.on_frame(address, &frame, now, &mut log, &mut answers);
                }
                for bytes in answers.frames {
                    let (_, frame) = StoreFrame::read(&bytes).expect("as it was written");
                    source.on_frame(0, &frame, now, out);
                }
            }
            let is_it = |event: &SourceEvent| matches!(event, SourceEvent::Registered { .. });
            if out.source_events.iter().any(is_it) {
                return;
            }
        }
    }
    panic!("none is registered");
}

#[test]
fn a_donor_without_messages_is_asked_again_in_time_only() {
    let mut store = store_at(0);
    let (mut log, mut out) = (MemoryLog::default(), Outlet::default());
    let address = StoreAddress { client: SESSION, source: 7, topic: TOPIC };
    let ballot = Ballot { epoch: 3, session: 9 };
    let elsewhere = StoreFrame::Elsewhere { ballot, until: 10, donor: "b" };
    store.on_frame(address, &elsewhere, NOW, &mut log, &mut out);
    assert_eq!(out.to_peers, 1);
    let records = TimedRecords::EMPTY;
    let empty = StoreFrame::Fetched { log: ballot, from: 0, first: 0, next: 0, records };
    for _ in 0..100 {
        store.on_frame(address, &empty, NOW, &mut log, &mut out);
    }
    assert_eq!(out.to_peers, 1, "two stores would ask and answer without a pause");
    store.tick(NOW + StoreSettings::default().retry, &mut log, &mut out);
    assert_eq!(out.to_peers, 2);
}

#[test]
fn copies_keep_the_times_of_their_messages() {
    let mut store = store_at(0);
    let (mut log, mut out) = (MemoryLog::default(), Outlet::default());
    log.unix_ns = 100;
    let address = StoreAddress { client: SESSION, source: 7, topic: TOPIC };
    let ballot = Ballot { epoch: 3, session: 9 };
    let elsewhere = StoreFrame::Elsewhere { ballot, until: 3, donor: "b" };
    store.on_frame(address, &elsewhere, NOW, &mut log, &mut out);
    let mut writer = TimedRecordsWriter::default();
    // The donor's clock is ahead with the last one.
    [5, 70, 500].into_iter().for_each(|unix_ns| writer.add(unix_ns, b"body"));
    let records = writer.records();
    let fetched = StoreFrame::Fetched { log: ballot, from: 0, first: 0, next: 3, records };
    store.on_frame(address, &fetched, NOW, &mut log, &mut out);
    store.on_persisted(&log, &mut out);
    // This store is a donor itself.
    let fetch = StoreFrame::Fetch { from: 0, until: 3, limit: 1_000 };
    store.on_frame(address, &fetch, NOW, &mut log, &mut out);
    let times = out.frames.iter().find_map(|bytes| match StoreFrame::read(bytes) {
        Ok((_, StoreFrame::Fetched { records, .. })) => {
            Some(records.iter().map(|(unix_ns, _)| unix_ns).collect::<Vec<_>>())
        }
        _ => None,
    });
    assert_eq!(times, Some(vec![5, 70, 100]));
}

#[test]
fn a_report_paces_the_publisher_before_it_is_on_disk() {
    let mut store = store_at(0);
    let (mut log, mut out) = (MemoryLog::default(), Outlet::default());
    let address = StoreAddress { client: SESSION, source: 7, topic: TOPIC };
    let ballot = Ballot { epoch: 3, session: 9 };
    let mut writer = RecordsWriter::default();
    (0..4).for_each(|_| writer.add(b"body"));
    let resend = StoreFrame::Resend { ballot, first: 0, records: writer.records() };
    store.on_frame(address, &resend, NOW, &mut log, &mut out);
    log.unwritten = 1;
    out.frames.clear();
    let consumption = Consumption { run: Run { ballot, start: 0 }, next: 3 };
    let report = report_of(1, consumption);
    store.on_frame(address, &report, NOW, &mut log, &mut out);
    let told = |out: &Outlet| {
        let frames = out.frames.iter().filter_map(|bytes| StoreFrame::read(bytes).ok());
        frames.map(|(_, frame)| frame.kind()).collect::<Vec<_>>()
    };
    let stable = StoreFrame::Stable { ballot, next: 4, consumed: 3 };
    let (_, frame) = StoreFrame::read(&out.frames[0]).expect("as it was written");
    assert_eq!((frame, told(&out)), (stable, vec![StoreKind::Stable]));
    let consumed = |store: &Store| store.state(TOPIC, 7).map(|state| state.consumed);
    assert_eq!(consumed(&store), Some(0), "a state is durable");
    log.unwritten = 0;
    store.on_persisted(&log, &mut out);
    assert_eq!(told(&out), [StoreKind::Stable, StoreKind::Acknowledged]);
    assert_eq!(consumed(&store), Some(3));
}

#[test]
fn a_session_that_ended_before_it_was_named_leaves_nothing_behind() {
    let settings = ReceiverSettings::new(groups());
    let mut receiver = Receiver::new(settings.clone(), 1, NOW);
    let mut out = Outlet::default();
    receiver.on_live(100, 0, b"body", NOW, &mut out);
    receiver.on_left(100);
    // The second question was asked after the message: then it is certain that no store keeps it.
    for round in 1..=2 {
        let now = NOW + round * settings.retry;
        receiver.tick(now, &mut out);
        let asked = out.frames.iter().rev().find_map(|bytes| match StoreFrame::read(bytes) {
            Ok((_, StoreFrame::Attach { token, .. })) => Some(token),
            _ => None,
        });
        let token = asked.expect("a question");
        let streams = StoreFrame::Streams { incarnation: 5, token, count: 0 };
        receiver.on_frame(0, 0, &streams, now, &mut out);
    }
    let told = |out: &Outlet| {
        out.receiver_events.iter().filter(|event| event.starts_with("Unkept")).count()
    };
    assert_eq!(told(&out), 1, "{:?}", out.receiver_events);
    // It is not remembered: another message of it would have to be asked for again.
    receiver.on_live(100, 1, b"body", NOW + 3 * settings.retry, &mut out);
    assert_eq!(told(&out), 1, "{:?}", out.receiver_events);
}

#[test]
fn streams_are_bounded() {
    let settings = StoreSettings { streams_max: 2, ..StoreSettings::default() };
    let mut store = Store::new(settings, 5);
    let (mut log, mut out) = (MemoryLog::default(), Outlet::default());
    let open = StoreFrame::Open { ballot: Ballot { epoch: 3, session: SESSION } };
    for source in 0..100 {
        let address = StoreAddress { client: SESSION, source, topic: TOPIC };
        store.on_frame(address, &open, NOW, &mut log, &mut out);
    }
    assert_eq!(store.summaries().count(), 2);
    store.on_persisted(&log, &mut out);
    let is_state = |it: &&Vec<u8>| matches!(StoreFrame::read(it), Ok((_, StoreFrame::State(_))));
    assert_eq!(out.frames.iter().filter(is_state).count(), 2, "others are refused");
    assert_eq!((store.refused_streams(), store.has_room()), (98, false));
    assert!(store.has_topic(TOPIC) && !store.has_topic("another"));
}

/// Answers a receiver's question as the store with this index, which has messages up to `next`, of
/// a run whose first message has the sequence `start`.
fn offer(
    receiver: &mut Receiver,
    store: usize,
    start: u64,
    (next, since): (u64, u64),
    out: &mut Outlet,
) {
    offer_until(receiver, store, start, (next, since, STORE_NUMBER_MAX), out);
}

/// The same with the end of a range.
fn offer_until(
    receiver: &mut Receiver,
    store: usize,
    start: u64,
    (next, since, until): (u64, u64, u64),
    out: &mut Outlet,
) {
    let offer = StoreOffer { since, until, ..offer_of_runs(&[start], next) };
    answer(receiver, store, &offer, NOW, out);
}

/// Answers as all stores, which have messages up to `next` of runs that begin at these sequences,
/// each on a session of its own.
fn offer_runs(receiver: &mut Receiver, starts: &[u64], next: u64, now: u64, out: &mut Outlet) {
    answer_next(receiver, &[(); 3].map(|()| offer_of_runs(starts, next)), now, out);
}

#[test]
fn the_end_of_a_session_is_told_once_and_before_the_messages_of_the_next() {
    let mut receiver = Receiver::new(settings(), 1, NOW);
    let (mut out, retry) = (Outlet::default(), settings().retry);
    // A run before it has nothing for this receiver.
    offer_runs(&mut receiver, &[0], 0, NOW, &mut out);
    offer_runs(&mut receiver, &[0, 0], 0, NOW + retry, &mut out);
    (0..3).for_each(|number| receiver.on_live(SESSION + 1, number, b"body", NOW, &mut out));
    // The publisher starts again at once, and a third time without messages between.
    offer_runs(&mut receiver, &[0, 0, 3, 3], 3, NOW + 2 * retry, &mut out);
    assert_eq!(count(&out, "Left"), 0, "{:?}", out.receiver_events);
    receiver.on_live(SESSION + 3, 0, b"body", NOW, &mut out);
    let kinds = |out: &Outlet| -> Vec<String> {
        let kind = |event: &String| event.split(['(', ' ']).next().unwrap_or_default().to_owned();
        let kinds = out.receiver_events.iter().map(kind);
        kinds.filter(|kind| kind == "Message" || kind == "Left").collect()
    };
    assert_eq!(kinds(&out), ["Message", "Message", "Message", "Left", "Message"]);
    let left = "Left { source: 7, next: 3 }";
    assert!(out.receiver_events.iter().any(|event| event == left), "{:?}", out.receiver_events);
    // Confirmed by the stores before the next one begins.
    receiver.on_left(SESSION + 3);
    offer_runs(&mut receiver, &[0, 0, 3, 3], 4, NOW + 3 * retry, &mut out);
    assert_eq!(kinds(&out)[5..], ["Left"]);
    offer_runs(&mut receiver, &[0, 0, 3, 3, 4], 4, NOW + 4 * retry, &mut out);
    receiver.on_live(SESSION + 4, 0, b"body", NOW, &mut out);
    assert_eq!(kinds(&out)[5..], ["Left", "Message"]);
}

/// A store that lags tells its end as the sequence of a time that is later than all it has.
#[test]
fn a_store_that_lags_does_not_decide_where_a_time_begins() {
    // Next and `since` of the stores that answer, and where the receiver begins.
    let cases = [
        ([(0, 0), (9, 9)], 9),
        ([(9, 9), (4, 4)], 9),
        ([(4, 4), (9, 6)], 6),
        ([(9, 6), (9, 5)], 5),
        ([(9, 0), (9, 0)], 0),
        ([(0, 0), (0, 0)], 0),
    ];
    for (answers, expected) in cases {
        let start = ReceiverStart::Time(1);
        let settings = ReceiverSettings { start, ..settings() };
        let mut receiver = Receiver::new(settings, 1, NOW);
        let mut out = Outlet::default();
        receiver.tick(NOW, &mut out);
        for (store, answer) in answers.into_iter().enumerate() {
            offer(&mut receiver, store, 0, answer, &mut out);
        }
        let joined = format!("Joined {{ source: 7, next: {expected}, is_resumed: false }}");
        assert!(out.receiver_events.contains(&joined), "{answers:?}: {:?}", out.receiver_events);
    }
}

/// Events of a receiver that begins at the oldest message, and ends in front of `end`.
fn ending(end: ReceiverEnd) -> (Receiver, Outlet) {
    let settings = ReceiverSettings { end, ..settings() };
    let (mut receiver, mut out) = (Receiver::new(settings, 1, NOW), Outlet::default());
    receiver.tick(NOW, &mut out);
    (receiver, out)
}

/// The frame with which a receiver asked for messages last.
fn fetched(out: &Outlet) -> Option<(u64, u64)> {
    out.frames.iter().rev().find_map(|bytes| match StoreFrame::read(bytes) {
        Ok((_, StoreFrame::Fetch { from, until, .. })) => Some((from, until)),
        _ => None,
    })
}

fn count(out: &Outlet, kind: &str) -> usize {
    out.receiver_events.iter().filter(|event| event.starts_with(kind)).count()
}

#[test]
fn a_range_ends_at_its_sequence_whatever_comes_live() {
    let (mut receiver, mut out) = ending(ReceiverEnd::Sequence(5));
    (0..2).for_each(|store| offer(&mut receiver, store, 0, (3, 0), &mut out));
    receiver.tick(NOW, &mut out);
    assert_eq!(fetched(&out), Some((0, 5)));
    let mut writer = TimedRecordsWriter::default();
    (0..3).for_each(|_| writer.add(0, b"body"));
    let (log, records) = (Ballot { epoch: 3, session: SESSION }, writer.records());
    let frame = StoreFrame::Fetched { log, from: 0, first: 0, next: 3, records };
    (0..3).for_each(|store| receiver.on_frame(store, 7, &frame, NOW, &mut out));
    assert_eq!((count(&out, "Message"), count(&out, "Ended")), (3, 0));
    for number in 3..9 {
        receiver.on_live(SESSION, number, b"body", NOW, &mut out);
    }
    assert!(out.receiver_events.iter().any(|it| it == "Ended { source: 7, next: 5 }"), "{out:?}");
    assert_eq!((count(&out, "Message"), count(&out, "Ended")), (5, 1));
    assert!(receiver.has_ended());
    // Later offers have more, which is not wanted.
    out.frames.clear();
    receiver.tick(NOW + 10 * ReceiverSettings::new(groups()).retry, &mut out);
    (0..3).for_each(|store| offer(&mut receiver, store, 0, (90, 0), &mut out));
    receiver.tick(NOW + 20 * ReceiverSettings::new(groups()).retry, &mut out);
    (0..3).for_each(|store| offer(&mut receiver, store, 0, (90, 0), &mut out));
    assert_eq!((fetched(&out), count(&out, "Message"), count(&out, "Ended")), (None, 5, 1));
}

/// A copy was written later than the message, so that its store tells an earlier end.
#[test]
fn a_range_of_time_ends_where_the_stores_say_that_wrote_it_live() {
    let open = STORE_NUMBER_MAX;
    // Next and `until` of the stores that answer, and the end that is asked for.
    let cases = [
        ([(9, 4), (9, 4)], Some(4)),
        ([(9, 0), (9, 6)], Some(6)),
        ([(3, 3), (9, 6)], Some(6)),
        ([(9, 9), (9, 9)], Some(9)),
        // Not passed at one of them.
        ([(9, open), (9, 9)], Some(open)),
        // Nothing was written before.
        ([(9, 0), (9, 0)], None),
    ];
    for (answers, expected) in cases {
        let (mut receiver, mut out) = ending(ReceiverEnd::Time(1));
        for (store, (next, until)) in answers.into_iter().enumerate() {
            offer_until(&mut receiver, store, 0, (next, 0, until), &mut out);
        }
        receiver.tick(NOW, &mut out);
        let asked = fetched(&out).map(|(_, until)| until);
        assert_eq!(asked, expected, "{answers:?}: {:?}", out.receiver_events);
        assert_eq!(receiver.has_ended(), expected.is_none(), "{answers:?}");
    }
}

#[test]
fn a_store_tells_the_end_of_a_time_when_all_before_is_on_disk() {
    let mut store = store_at(0);
    let (mut log, mut out) = (MemoryLog::default(), Outlet::default());
    let ballot = Ballot { epoch: 3, session: 9 };
    let address = StoreAddress { client: SESSION, source: 7, topic: TOPIC };
    let mut writer = RecordsWriter::default();
    (0..4).for_each(|_| writer.add(b"body"));
    log.unwritten = 2;
    let resend = StoreFrame::Resend { ballot, first: 0, records: writer.records() };
    store.on_frame(address, &resend, NOW, &mut log, &mut out);
    store.on_persisted(&log, &mut out);
    let until = |store: &mut Store, log: &mut MemoryLog, until_unix_ns| {
        let mut out = Outlet::default();
        let attach = StoreFrame::Attach { receiver: 1, token: 2, since_unix_ns: 0, until_unix_ns };
        store.on_frame(StoreAddress { source: 0, ..address }, &attach, NOW, log, &mut out);
        out.frames.iter().find_map(|bytes| match StoreFrame::read(bytes) {
            Ok((_, StoreFrame::Offer(offer))) => Some(offer.until),
            _ => None,
        })
    };
    // Messages are written at the time of their sequence.
    log.unix_ns = 3;
    assert_eq!(until(&mut store, &mut log, 0), Some(STORE_NUMBER_MAX), "none was asked for");
    assert_eq!(until(&mut store, &mut log, 4), Some(STORE_NUMBER_MAX), "it has not come");
    log.unix_ns = 100;
    assert_eq!(until(&mut store, &mut log, 1), Some(1), "a later one is on disk");
    assert_eq!(until(&mut store, &mut log, 3), None, "an older one is not");
    log.unwritten = 0;
    store.on_persisted(&log, &mut out);
    assert_eq!(until(&mut store, &mut log, 3), Some(3));
    // The log finds copies behind the stream's end, which a run that has not begun would add.
    assert_eq!(until(&mut store, &mut log, 50), Some(4));
}

/// The stores answer when the messages that came live are durable already.
#[test]
fn a_receiver_that_begins_at_the_end_skips_no_live_message() {
    let settings = ReceiverSettings { start: ReceiverStart::End, ..settings() };
    let mut receiver = Receiver::new(settings, 1, NOW);
    let mut out = Outlet::default();
    for number in 4..=5 {
        receiver.on_live(SESSION, number, b"body", NOW, &mut out);
    }
    receiver.tick(NOW, &mut out);
    (0..2).for_each(|store| offer(&mut receiver, store, 100, (106, 0), &mut out));
    let joined = out.receiver_events.iter().find(|event| event.starts_with("Joined"));
    assert!(joined.is_some_and(|event| event.contains("next: 104")), "{:?}", out.receiver_events);
    let count = out.receiver_events.iter().filter(|event| event.starts_with("Message")).count();
    assert_eq!(count, 2, "{:?}", out.receiver_events);
}

#[test]
fn an_ended_registration_is_confirmed_when_that_is_durable() {
    let mut store = Store::new(StoreSettings::default(), 5);
    let (mut log, mut out) = (MemoryLog::default(), Outlet::default());
    let address = StoreAddress { client: SESSION, source: 7, topic: TOPIC };
    let open = StoreFrame::Open { ballot: Ballot { epoch: 3, session: SESSION } };
    store.on_frame(address, &open, NOW, &mut log, &mut out);
    for receiver in 1..=3 {
        let consumed = report_of(receiver, Consumption::NONE);
        store.on_frame(address, &consumed, NOW, &mut log, &mut out);
    }
    let ids = |store: &Store| store.receivers(0, 2).map(|it| it.receiver).collect::<Vec<_>>();
    assert_eq!(ids(&store), [2, 3], "from the second on");
    let told = |out: &Outlet, wanted: u64| {
        let is_told = |bytes: &&Vec<u8>| {
            let Ok((_, StoreFrame::Deregistered { token, outcome })) = StoreFrame::read(bytes)
            else {
                return false;
            };
            token == wanted && outcome == DeregisterOutcome::Done
        };
        out.frames.iter().filter(is_told).count()
    };
    log.unwritten = 1;
    let receiver = Registration::Receiver(2);
    // Repeated, since the answer is late: the second request finds nothing to end.
    for _ in 0..2 {
        store.deregister(address, 40, receiver, &mut log, &mut out);
        assert_eq!(told(&out, 40), 0, "it is not on disk");
    }
    log.unwritten = 0;
    store.on_persisted(&log, &mut out);
    assert_eq!((told(&out, 40), ids(&store)), (1, vec![3]));
    // The receiver has ended it itself, and that is not on disk.
    log.unwritten = 1;
    store.on_frame(address, &StoreFrame::Detach { receiver: 1, life: 0 }, NOW, &mut log, &mut out);
    store.deregister(address, 43, Registration::Receiver(1), &mut log, &mut out);
    assert_eq!(told(&out, 43), 0, "a crash would bring the registration back");
    log.unwritten = 0;
    store.on_persisted(&log, &mut out);
    assert_eq!(told(&out, 43), 1);
    store.deregister(address, 41, Registration::Source, &mut log, &mut out);
    assert_eq!((told(&out, 41), ids(&store)), (1, vec![]));
    let unknown = StoreAddress { source: 8, ..address };
    store.deregister(unknown, 42, receiver, &mut log, &mut out);
    assert_eq!(told(&out, 42), 0);
    let outcome = DeregisterOutcome::UnknownStream;
    let last = out.frames.last().map(|bytes| StoreFrame::read(bytes).expect("a frame").1);
    assert_eq!(last, Some(StoreFrame::Deregistered { token: 42, outcome }));
}
