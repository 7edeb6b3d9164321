//! Bounds of a publisher: messages that are not stable, and messages that are not consumed.

use crate::edges::exchange;
use crate::parts::{
    MemoryLog, NOW, Outlet, SESSION, TOPIC, groups, report_of, store_at, store_with,
};
use lanecast_persistence::{
    Pacing, SendRefusal, Source, SourceSettings, Store, StoreSettings, UnconsumedBounds,
};
use lanecast_wire::store::{
    Ballot, Consumption, LogRecord, Run, StoreAddress, StoreFrame, StoreKind,
};

/// Gives the publisher what its store has said.
fn answer(source: &mut Source, out: &mut Outlet) {
    for bytes in std::mem::take(&mut out.frames) {
        let (_, frame) = StoreFrame::read(&bytes).expect("as it was written");
        source.on_frame(0, &frame, NOW, out);
    }
}

#[test]
fn unconsumed_messages_have_a_bound_apart_from_the_flight() {
    let (mut store, mut log, mut out) = (store_at(0), MemoryLog::default(), Outlet::default());
    let settings = SourceSettings {
        flight_messages: 2,
        pacing: Pacing::Receivers,
        unconsumed_messages: 5,
        ..SourceSettings::new(groups())
    };
    let mut source = Source::new(settings, SESSION, 0, NOW);
    exchange(&mut source, &mut store, &mut log, &mut out);
    let run = Run { ballot: Ballot { epoch: 4, session: SESSION }, start: 0 };
    let address = StoreAddress { client: SESSION, source: 7, topic: TOPIC };
    let mut sent = 0;
    for (position, until, refusal) in [
        (0, 2, SendRefusal::FlightFull),
        (0, 4, SendRefusal::FlightFull),
        (0, 5, SendRefusal::NotConsumed),
        (1, 6, SendRefusal::NotConsumed),
        (6, 8, SendRefusal::FlightFull),
    ] {
        let consumption = Consumption { run, next: position };
        let report = report_of(1, consumption);
        store.on_frame(address, &report, NOW, &mut log, &mut out);
        answer(&mut source, &mut out);
        while sent < until {
            assert_eq!(source.check_room(4), Ok(()), "{sent} of {until}");
            source.sent(b"body");
            sent += 1;
        }
        assert_eq!(source.check_room(4), Err(refusal), "{sent}");
        for number in source.stable()..sent {
            store.on_message(SESSION, number, b"body", NOW, &mut log, &mut out);
        }
        store.on_persisted(&log, &mut out);
        answer(&mut source, &mut out);
        assert_eq!((source.stable(), source.in_flight()), (sent, sent - position));
    }
}

/// Carries frames between a publisher and its store until both are silent; returns how often the
/// store has asked for messages.
fn carry(source: &mut Source, store: &mut Store, log: &mut MemoryLog, out: &mut Outlet) -> usize {
    let mut wants = 0;
    store.on_persisted(log, out);
    while !out.frames.is_empty() {
        for bytes in std::mem::take(&mut out.frames) {
            let (_, frame) = StoreFrame::read(&bytes).expect("as it was written");
            let is_reply = frame.kind() >= StoreKind::State;
            wants += usize::from(frame.kind() == StoreKind::Want);
            let address = StoreAddress { client: SESSION, source: 7, topic: TOPIC };
            match is_reply {
                true => source.on_frame(0, &frame, NOW, out),
                false => store.on_frame(address, &frame, NOW, log, out),
            }
        }
        store.on_persisted(log, out);
    }
    wants
}

#[test]
fn a_store_that_holds_enough_for_its_receivers_takes_no_more() {
    // Two messages of 100 bytes, and as many for what a log needs besides.
    let unconsumed = UnconsumedBounds { bytes: Some(300), ..UnconsumedBounds::default() };
    let settings = StoreSettings { unconsumed, ..StoreSettings::default() };
    let (mut store, mut log) = (store_with(settings.clone(), 0), MemoryLog::default());
    let mut out = Outlet::default();
    let settings_of_source = SourceSettings {
        flight_messages: 10,
        pacing: Pacing::Receivers,
        ..SourceSettings::new(groups())
    };
    let mut source = Source::new(settings_of_source, SESSION, 0, NOW);
    exchange(&mut source, &mut store, &mut log, &mut out);
    let is_paced =
        |record: LogRecord<'_>| matches!(record, LogRecord::Paced { is_by_receivers: true, .. });
    assert_eq!(log.all().filter(|it| is_paced(it.clone())).count(), 1);
    let run = Run { ballot: Ballot { epoch: 4, session: SESSION }, start: 0 };
    let address = StoreAddress { client: SESSION, source: 7, topic: TOPIC };
    let report = |store: &mut Store, log: &mut MemoryLog, out: &mut Outlet, next| {
        let consumption = Consumption { run, next };
        let frame = report_of(1, consumption);
        store.on_frame(address, &frame, NOW, log, out);
    };
    report(&mut store, &mut log, &mut out, 0);
    while source.check_room(100).is_ok() {
        let number = source.sent(&[7; 100]);
        store.on_message(SESSION, number, &[7; 100], NOW, &mut log, &mut out);
    }
    carry(&mut source, &mut store, &mut log, &mut out);
    for position in [0, 2, 4, 6, 8] {
        report(&mut store, &mut log, &mut out, position);
        carry(&mut source, &mut store, &mut log, &mut out);
        assert_eq!((source.stable(), source.next()), (position + 2, 10));
        // Messages that were asked for again would find no room.
        store.tick(NOW + 1_000_000_000, &mut log, &mut out);
        source.tick(NOW + 1_000_000_000, &mut out);
        let wants = carry(&mut source, &mut store, &mut log, &mut out);
        assert_eq!((wants, source.stable()), (0, position + 2));
    }
    // A store that starts again knows the pacing, and holds the same.
    let found = log.all().map(|record| format!("{record:?}")).collect::<Vec<_>>();
    let mut again = store_with(settings, 0);
    log.all().for_each(|record| again.replay(&record).expect("they follow"));
    assert!(again.summaries().all(|stream| stream.is_receiver_paced), "{found:?}");
    assert_eq!(again.checkpoint().filter(|stream| stream.is_receiver_paced).count(), 1);
}
