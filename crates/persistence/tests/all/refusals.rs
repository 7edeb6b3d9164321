//! Stores that keep no more streams or receivers, and tell why.

use crate::offers::{SOURCE, answer, asking, offer, settings};
use crate::parts::{MemoryLog, NOW, Outlet, SESSION, TOPIC, groups, store_with};
use lanecast_persistence::{
    Source, SourceEvent, SourceSettings, Store, StoreRefusal, StoreSettings,
};
use lanecast_wire::store::{
    Ballot, Consumption, Registered, Run, StoreAddress, StoreFrame, StoreState,
};

/// The refusals that a store has sent.
fn refused(out: &Outlet) -> Vec<StoreRefusal> {
    let read = out.frames.iter().filter_map(|bytes| match StoreFrame::read(bytes) {
        Ok((_, StoreFrame::Refused(refusal))) => Some(refusal),
        _ => None,
    });
    read.collect()
}

#[test]
fn a_receiver_too_many_learns_why_and_is_registered_when_there_is_room() {
    let settings_of_store = StoreSettings { receivers_max: 1, ..StoreSettings::default() };
    let (mut store, mut log) = (store_with(settings_of_store, 0), MemoryLog::default());
    let address = StoreAddress { client: 1, source: 7, topic: TOPIC };
    let mut hear = |frame: &StoreFrame<'_>| {
        let mut out = Outlet::default();
        store.on_frame(address, frame, NOW, &mut log, &mut out);
        refused(&out)
    };
    let run = Run { ballot: Ballot { epoch: 3, session: 9 }, start: 0 };
    let at = |it| Registered { life: 1, ..Registered::new(it, Consumption { run, next: 0 }) };
    let report = |receiver| StoreFrame::Consumed(at(receiver));
    assert_eq!(hear(&report(1)), []);
    assert_eq!(hear(&report(1)), [], "registered already");
    let refusal = StoreRefusal::Receivers { receiver: 2, most: 1 };
    assert_eq!(hear(&report(2)), [refusal]);
    hear(&StoreFrame::Detach { receiver: 1, life: 1 });
    assert_eq!(hear(&report(2)), []);
    assert!(refusal.to_string().contains("lanecast store deregister"), "{refusal}");
}

#[test]
fn a_receiver_tells_each_refusal_once() {
    let (mut receiver, mut out) = asking(settings());
    (0..3).for_each(|store| answer(&mut receiver, store, &offer(), NOW, &mut out));
    out.receiver_events.clear();
    let refusal = |receiver| StoreFrame::Refused(StoreRefusal::Receivers { receiver, most: 9 });
    let mut hear = |store, frame: StoreFrame<'_>| {
        receiver.tick(NOW + 1, &mut out);
        receiver.on_frame(store, SOURCE, &frame, NOW + 1, &mut out);
        std::mem::take(&mut out.receiver_events)
    };
    let told = hear(1, refusal(1));
    assert!(
        told.len() == 1 && told[0].contains("most: 9") && told[0].contains("\"b\""),
        "{told:?}"
    );
    assert!(hear(1, refusal(1)).is_empty(), "repeated");
    assert!(hear(1, refusal(2)).is_empty(), "another receiver");
    assert_eq!(hear(2, refusal(1)).len(), 1, "another store");
    let consumption = Consumption { run: crate::offers::RUN, next: 0 };
    hear(1, StoreFrame::Acknowledged { receiver: 1, consumption });
    assert_eq!(hear(1, refusal(1)).len(), 1, "after it had room");
}

#[test]
fn a_publisher_is_told_why_a_store_does_not_keep_its_stream() {
    let settings = StoreSettings { streams_max: 0, ..StoreSettings::default() };
    let (mut store, mut log, mut out) =
        (Store::new(settings, 5), MemoryLog::default(), Outlet::default());
    let mut source = Source::new(SourceSettings::new(groups()), SESSION, 0, NOW);
    let mut now = NOW;
    for _ in 0..3 {
        source.tick(now, &mut out);
        while !out.frames.is_empty() {
            for bytes in std::mem::take(&mut out.frames) {
                let (address, frame) = StoreFrame::read(&bytes).expect("as it was written");
                match &frame {
                    StoreFrame::State(_) | StoreFrame::Refused(_) => {
                        source.on_frame(0, &frame, now, &mut out);
                    }
                    _ => store.on_frame(address, &frame, now, &mut log, &mut out),
                }
            }
        }
        now += 200_000_000;
    }
    let is_refused = |it: &&SourceEvent| matches!(it, SourceEvent::Refused { .. });
    let told: Vec<_> = out.source_events.iter().filter(is_refused).collect();
    let refusal = StoreRefusal::Streams { most: 0 };
    assert_eq!(told, [&SourceEvent::Refused { store: "a".to_owned(), refusal }], "once");
    assert!(store.refused_streams() > 2, "it is asked again and again");
    // It keeps the stream now, and refuses it later.
    let ballot = Ballot { epoch: 1, session: SESSION };
    let state = StoreState { incarnation: 5, promised: ballot, ..StoreState::default() };
    source.on_frame(0, &StoreFrame::State(state), now, &mut out);
    source.on_frame(0, &StoreFrame::Refused(refusal), now, &mut out);
    assert_eq!(out.source_events.iter().filter(is_refused).count(), 2);
}

/// A log that has no room for a run of a stream that the store knows, or for a receiver.
#[test]
fn a_log_without_room_is_told_to_publishers_and_new_receivers() {
    let (mut store, mut log) = (crate::parts::store_at(0), MemoryLog::default());
    let address = StoreAddress { client: 1, source: 7, topic: TOPIC };
    let mut hear = |frame: &StoreFrame<'_>, is_full| {
        log.is_full = is_full;
        let mut out = Outlet::default();
        store.on_frame(address, frame, NOW, &mut log, &mut out);
        refused(&out)
    };
    let run = Run { ballot: Ballot { epoch: 3, session: 9 }, start: 0 };
    let report = |it, next| {
        let registered = Registered::new(it, Consumption { run, next });
        StoreFrame::Consumed(Registered { life: 1, ..registered })
    };
    let open = StoreFrame::Open { ballot: Ballot { epoch: 4, session: 9 } };
    assert_eq!(hear(&report(1, 0), true), [StoreRefusal::Log]);
    assert_eq!(hear(&report(1, 0), false), []);
    assert_eq!(hear(&report(1, 1), true), [], "it is registered, and repeats its position");
    assert_eq!(hear(&open, true), [StoreRefusal::Log]);
    assert_eq!(hear(&open, false), []);
}

#[test]
fn a_refusal_that_lasts_is_told_once() {
    let mut source = Source::new(SourceSettings::new(groups()), SESSION, 0, NOW);
    let mut out = Outlet::default();
    let promised = Ballot { epoch: 1, session: 9 };
    let state = |promised| StoreState { incarnation: 5, promised, ..StoreState::default() };
    let mut told = |frame: &StoreFrame<'_>| {
        out.source_events.clear();
        source.on_frame(0, frame, NOW, &mut out);
        out.source_events.iter().filter(|it| matches!(it, SourceEvent::Refused { .. })).count()
    };
    let refused = StoreFrame::Refused(StoreRefusal::Log);
    assert_eq!((told(&StoreFrame::State(state(promised))), told(&refused)), (0, 1));
    assert_eq!((told(&StoreFrame::State(state(promised))), told(&refused)), (0, 0), "as before");
    let later = Ballot { epoch: 2, ..promised };
    assert_eq!((told(&StoreFrame::State(state(later))), told(&refused)), (0, 1), "it had room");
}

/// Beyond the streams that a receiver takes it tells how many there are.
#[test]
fn a_stream_too_many_for_a_receiver_is_told() {
    let (mut receiver, mut out) = asking(settings());
    let mut answer_of = |count: u64, out: &mut Outlet| {
        let token = crate::offers::token(out);
        for source in 1..=count {
            let frame = StoreFrame::Unsettled { token, runs: vec![] };
            receiver.on_frame(0, source, &frame, NOW, out);
        }
        let frame = StoreFrame::Streams { incarnation: 5, token, count: count as u32 };
        receiver.on_frame(0, 0, &frame, NOW, out);
        receiver.tick(receiver.due() + 1_000_000_000, out);
        crate::offers::told(out, "TooMany")
    };
    assert_eq!(answer_of(10_000, &mut out), [""; 0]);
    let first = "TooManyStreams { count: 2, most: 10000 }";
    assert_eq!(answer_of(10_002, &mut out), [first]);
    assert_eq!(answer_of(10_002, &mut out), [first], "once");
    let second = "TooManyStreams { count: 3, most: 10000 }";
    assert_eq!(answer_of(10_003, &mut out), [first, second]);
}
