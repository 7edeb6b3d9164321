//! Lifetimes of registrations at a store.

use crate::edges::{NOW, SESSION, groups};
use crate::parts::{MemoryLog, Outlet, TOPIC, report_of, store_with};
use lanecast_persistence::{Receiver, ReceiverSettings, Store, StoreSettings};
use lanecast_wire::store::{Ballot, Consumption, Run, StoreAddress, StoreFrame};

const LIFETIME: u64 = 80_000;

fn settings() -> StoreSettings {
    StoreSettings {
        receiver_lifetime: Some(LIFETIME),
        receivers_max: 2,
        ..StoreSettings::default()
    }
}

/// A store with its log, and a stream of ten messages.
struct Keeper {
    store: Store,
    log: MemoryLog,
    out: Outlet,
}

impl Keeper {
    fn new() -> Self {
        let (log, out) = (MemoryLog::at(1), Outlet::default());
        Self { store: store_with(settings(), 10), log, out }
    }

    fn hear(&mut self, frame: &StoreFrame<'_>) {
        let address = StoreAddress { client: SESSION, source: 7, topic: TOPIC };
        self.store.on_frame(address, frame, NOW, &mut self.log, &mut self.out);
    }

    fn report(&mut self, receiver: u64, next: u64) {
        let run = Run { ballot: Ballot { epoch: 3, session: 9 }, start: 10 };
        let before = Run { ballot: Ballot::ZERO, start: 0 };
        let run = if next < 10 { before } else { run };
        self.hear(&report_of(receiver, Consumption { run, next }));
    }

    fn attach(&mut self, receiver: u64) {
        let (since_unix_ns, until_unix_ns, token) = (0, 0, 1);
        self.hear(&StoreFrame::Attach { receiver, token, since_unix_ns, until_unix_ns });
    }

    fn pass(&mut self, unix_ns: u64) {
        self.log.unix_ns += unix_ns;
        self.store.tick(NOW, &mut self.log, &mut self.out);
    }

    /// Starts again after the time.
    fn restart(&mut self, down_ns: u64) {
        let mut store = store_with(settings(), 10);
        self.log.all().for_each(|record| store.replay(&record).expect("they follow"));
        store.resume(down_ns);
        self.store = store;
        self.pass(down_ns);
    }

    /// Receivers, each with its position, and whether it has expired.
    fn receivers(&self) -> Vec<(u64, u64, bool)> {
        let receivers = self.store.receivers(0, 0);
        receivers.map(|it| (it.receiver, it.next, it.is_expired)).collect()
    }

    fn consumed(&self) -> u64 {
        self.store.state(TOPIC, 7).expect("a stream").consumed
    }
}

#[test]
fn lifetimes_of_receivers_that_are_away_end() {
    let mut keeper = Keeper::new();
    keeper.report(1, 2);
    keeper.report(2, 5);
    assert_eq!(keeper.consumed(), 2);
    // One asks for its streams now and then, and has nothing to report.
    for _ in 0..8 {
        keeper.pass(LIFETIME / 9);
        keeper.attach(2);
    }
    assert_eq!(keeper.consumed(), 2, "not yet");
    keeper.pass(LIFETIME / 9 + 10);
    assert_eq!(keeper.receivers(), [(1, 2, true), (2, 5, false)]);
    assert_eq!(keeper.consumed(), 5);
    // A store that starts again knows both: those that it could not hear of are not away.
    keeper.restart(10 * LIFETIME);
    assert_eq!(keeper.receivers(), [(1, 2, true), (2, 5, false)]);
    assert_eq!((keeper.consumed(), keeper.store.checkpoint().count()), (5, 1));
    // A question alone does not bring a receiver back, a report does.
    keeper.attach(1);
    assert_eq!(keeper.consumed(), 5);
    keeper.report(1, 2);
    assert_eq!((keeper.receivers()[0], keeper.consumed()), ((1, 2, false), 2));
    // A third one finds no room until one of them has expired.
    keeper.report(3, 7);
    assert_eq!(keeper.receivers().len(), 2);
    keeper.pass(LIFETIME / 2);
    keeper.report(2, 5);
    keeper.pass(LIFETIME / 2 + 10);
    keeper.report(3, 7);
    assert_eq!(keeper.receivers(), [(2, 5, false), (3, 7, false)]);
}

#[test]
fn a_receiver_whose_lifetime_has_ended_is_told_and_counts_again() {
    let mut keeper = Keeper::new();
    keeper.report(1, 2);
    keeper.pass(2 * LIFETIME);
    assert_eq!((keeper.receivers(), keeper.consumed()), (vec![(1, 2, true)], 10));
    let mut receiver = Receiver::new(ReceiverSettings::new(groups()), 1, NOW);
    let mut told = Outlet::default();
    for round in 0..4 {
        receiver.tick(NOW + round * 300_000_000, &mut told);
        for bytes in std::mem::take(&mut told.frames) {
            let (_, frame) = StoreFrame::read(&bytes).expect("as it was written");
            keeper.hear(&frame);
        }
        for bytes in std::mem::take(&mut keeper.out.frames) {
            let (address, frame) = StoreFrame::read(&bytes).expect("as it was written");
            receiver.on_frame(0, address.source, &frame, NOW, &mut told);
        }
    }
    let events = &told.receiver_events;
    let expired = events.iter().filter(|it| it.starts_with("Expired")).count();
    let is_resumed = events.iter().any(|it| it.contains("next: 2, is_resumed: true"));
    assert!(expired == 1 && is_resumed, "{events:?}");
    assert_eq!((keeper.receivers(), keeper.consumed()), (vec![(1, 2, false)], 2));
}
