//! Bounds of a publisher: messages that are not stable, and messages that are not consumed.

use crate::edges::{NOW, SESSION, exchange, groups, store_at};
use crate::parts::{MemoryLog, Outlet, TOPIC};
use lanecast_persistence::{Pacing, SendRefusal, Source, SourceSettings};
use lanecast_wire::store::{Ballot, Consumption, Run, StoreAddress, StoreFrame};

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
    for (consumed, until, refusal) in [
        (0, 2, SendRefusal::FlightFull),
        (0, 4, SendRefusal::FlightFull),
        (0, 5, SendRefusal::NotConsumed),
        (1, 6, SendRefusal::NotConsumed),
        (6, 8, SendRefusal::FlightFull),
    ] {
        let consumption = Consumption { run, next: consumed };
        let report = StoreFrame::Consumed { receiver: 1, consumption };
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
        assert_eq!((source.stable(), source.in_flight()), (sent, sent - consumed));
    }
}
