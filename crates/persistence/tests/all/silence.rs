//! Stores that do not answer.

use crate::parts::{NOW, Outlet, SESSION, groups};
use lanecast_persistence::{Receiver, ReceiverSettings, Source, SourceEvent, SourceSettings};
use lanecast_wire::store::{StoreFrame, StoreState};

/// Tells whether a store was given up, by the events since the last call.
fn is_store_lost(out: &mut Outlet) -> bool {
    let of_source = std::mem::take(&mut out.source_events);
    let of_receiver = std::mem::take(&mut out.receiver_events);
    let is_loss = |event: &SourceEvent| matches!(event, SourceEvent::StoreLost { .. });
    of_source.iter().any(is_loss) || of_receiver.iter().any(|event| event.contains("StoreLost"))
}

#[test]
fn a_store_is_silent_only_while_it_leaves_requests_unanswered() {
    const HOUR: u64 = 3_600_000_000_000;
    let (settings, mut out) = (SourceSettings::new(groups()), Outlet::default());
    let mut source = Source::new(settings.clone(), SESSION, 0, NOW);
    let mut receiver = Receiver::new(ReceiverSettings::new(groups()), 1, NOW);
    // A program that does something else for hours has asked for nothing.
    for hour in 1..5 {
        let now = NOW + hour * HOUR;
        let state = StoreFrame::State(StoreState::default());
        source.on_frame(0, &state, now, &mut out);
        let streams = StoreFrame::Streams { incarnation: 5, token: 0, count: 0 };
        receiver.on_frame(0, 0, &streams, now, &mut out);
        source.tick(now + HOUR / 2, &mut out);
        receiver.tick(now + HOUR / 2, &mut out);
        assert!(!is_store_lost(&mut out), "after {hour} hours");
    }
    // Requests in quick succession do not use up the time for an answer.
    let start = NOW + 10 * HOUR;
    for now in start..start + 100 {
        receiver.on_live(now, 0, b"of a new session", now, &mut out);
        receiver.tick(now, &mut out);
    }
    assert!(!is_store_lost(&mut out));
    let retries = |count: u64| start + count * settings.retry;
    (1..=9).for_each(|count| {
        source.tick(retries(count), &mut out);
        receiver.tick(retries(count), &mut out);
    });
    assert!(!is_store_lost(&mut out));
    (10..=12).for_each(|count| {
        source.tick(retries(count), &mut out);
    });
    assert!(is_store_lost(&mut out));
    (10..=12).for_each(|count| receiver.tick(retries(count), &mut out));
    assert!(is_store_lost(&mut out));
}
