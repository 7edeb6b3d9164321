//! Ends of ranges of time, when runs change.

use crate::offers::{answer_next, offer_of_runs, settings};
use crate::parts::{NOW, Outlet, SESSION};
use lanecast_persistence::{Receiver, ReceiverEnd, ReceiverSettings, ReceiverStart};
use lanecast_wire::store::StoreOffer;

/// Three stores answer the next question: they have messages up to `next` of runs that begin at
/// these sequences, each on a session of its own, and the time of the end came behind all of them.
fn offer(receiver: &mut Receiver, starts: &[u64], next: u64, now: u64, out: &mut Outlet) {
    offer_each(receiver, [(starts, next); 3], now, out);
}

/// The same, each of them with other runs.
fn offer_each(receiver: &mut Receiver, stores: [(&[u64], u64); 3], now: u64, out: &mut Outlet) {
    let offer_of =
        |(starts, next): (&[u64], u64)| StoreOffer { until: next, ..offer_of_runs(starts, next) };
    answer_next(receiver, &stores.map(offer_of), now, out);
}

fn ends(out: &Outlet) -> Vec<&String> {
    out.receiver_events.iter().filter(|event| event.starts_with("Ended")).collect()
}

fn ending() -> (Receiver, u64) {
    ending_from(ReceiverStart::Oldest)
}

fn ending_from(start: ReceiverStart) -> (Receiver, u64) {
    let end = ReceiverEnd::Time(1);
    let settings = ReceiverSettings { start, end, ..settings() };
    let retry = settings.retry;
    (Receiver::new(settings, 1, NOW), retry)
}

/// Without another message the stream would not come to the end of before.
#[test]
fn a_range_of_time_ends_again_where_a_later_run_begins_in_front_of_its_end() {
    let (mut receiver, retry) = ending();
    let mut out = Outlet::default();
    offer(&mut receiver, &[0], 6, NOW, &mut out);
    (0..6).for_each(|number| receiver.on_live(SESSION, number, b"body", NOW, &mut out));
    assert_eq!(ends(&out), ["Ended { source: 7, next: 6 }"], "{:?}", out.receiver_events);
    out.receiver_events.clear();
    // Two of the messages were not stable.
    (1..3).for_each(|round| offer(&mut receiver, &[0, 4], 4, NOW + round * retry, &mut out));
    let discarded = "Discarded { source: 7, first: 4, count: 2 }".to_owned();
    assert!(out.receiver_events.contains(&discarded), "{:?}", out.receiver_events);
    assert_eq!(ends(&out), ["Ended { source: 7, next: 4 }"], "{:?}", out.receiver_events);
    assert!(receiver.has_ended());
}

#[test]
fn a_range_of_time_has_an_earlier_end_if_a_later_run_begins_in_front_of_it() {
    let (mut receiver, retry) = ending();
    let mut out = Outlet::default();
    offer(&mut receiver, &[0], 6, NOW, &mut out);
    (0..4).for_each(|number| receiver.on_live(SESSION, number, b"body", NOW, &mut out));
    assert!(ends(&out).is_empty(), "{:?}", out.receiver_events);
    (1..3).for_each(|round| offer(&mut receiver, &[0, 4], 4, NOW + round * retry, &mut out));
    assert_eq!(ends(&out), ["Ended { source: 7, next: 4 }"], "{:?}", out.receiver_events);
}

/// The publisher has ended while it began the later run: the other stores stay with the one before.
#[test]
fn a_range_of_time_ends_where_one_store_alone_has_begun_a_later_run() {
    let (mut receiver, retry) = ending_from(ReceiverStart::End);
    let mut out = Outlet::default();
    let (before, later): (&[u64], &[u64]) = (&[0], &[0, 6]);
    for round in 0..3 {
        let stores = [(later, 6), (before, 6), (before, 5)];
        offer_each(&mut receiver, stores, NOW + round * retry, &mut out);
    }
    assert_eq!(ends(&out), ["Ended { source: 7, next: 6 }"], "{:?}", out.receiver_events);
    assert!(receiver.has_ended());
}
