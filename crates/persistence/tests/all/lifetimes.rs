//! Lifetimes of registrations at a store.

use crate::parts::{MemoryLog, NOW, Outlet, SESSION, TOPIC, groups, report_of, store_with};
use lanecast_persistence::{Receiver, ReceiverSettings, Store, StoreSettings};
use lanecast_wire::store::{Ballot, Consumption, Run, StoreAddress, StoreFrame};

const SECOND: u64 = 1_000_000_000;
const HOUR: u64 = 3_600 * SECOND;
/// Long enough for a look to be shorter than the longest pause that counts.
const LIFETIME: u64 = 32 * HOUR;
/// Time between two calls of the driver.
const PAUSE: u64 = 30 * SECOND;
const YEAR: u64 = 8_766 * HOUR;

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
    now: u64,
}

impl Keeper {
    fn new() -> Self {
        let (log, out) = (MemoryLog::at(50 * YEAR), Outlet::default());
        Self { store: store_with(settings(), 10), log, out, now: NOW }
    }

    fn hear(&mut self, frame: &StoreFrame<'_>) {
        let address = StoreAddress { client: SESSION, source: 7, topic: TOPIC };
        self.store.on_frame(address, frame, self.now, &mut self.log, &mut self.out);
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

    fn pass(&mut self, time: u64) {
        let end = self.now + time;
        while self.now < end {
            self.now = end.min(self.now + PAUSE);
            self.store.tick(self.now, &mut self.log, &mut self.out);
        }
    }

    /// Starts again, after an end in order or a crash, with another clock.
    fn restart(&mut self, is_in_order: bool, now: u64) {
        if is_in_order {
            self.store.end(self.now, &mut self.log).expect("room");
        }
        self.store = self.log.restore(store_with(settings(), 10));
        self.now = now;
        self.store.tick(self.now, &mut self.log, &mut self.out);
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
    for _ in 0..16 {
        keeper.pass(LIFETIME / 16);
        keeper.attach(2);
    }
    assert_eq!(keeper.consumed(), 2, "not yet");
    keeper.pass(LIFETIME / 16 + PAUSE);
    assert_eq!(keeper.receivers(), [(1, 2, true), (2, 5, false)]);
    assert_eq!(keeper.consumed(), 5);
    // A store that starts again knows both: those that it could not hear of are not away.
    keeper.restart(true, keeper.now + 10 * LIFETIME);
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
    keeper.pass(LIFETIME / 2 + LIFETIME / 16 + PAUSE);
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

/// The wall clock jumps by years, forth and back: neither is a receiver away that asks now and
/// then, nor is one there that does not.
#[test]
fn jumps_of_the_wall_clock_end_no_registration_and_prolong_none() {
    let mut keeper = Keeper::new();
    keeper.report(1, 2);
    keeper.report(2, 5);
    for round in 0..32 {
        keeper.log.unix_ns = if round % 2 == 0 { 60 * YEAR } else { YEAR };
        keeper.attach(2);
        keeper.pass(HOUR);
        assert_eq!(keeper.receivers(), [(1, 2, false), (2, 5, false)], "hour {round}");
    }
    keeper.attach(2);
    keeper.pass(3 * HOUR);
    assert_eq!(keeper.receivers(), [(1, 2, true), (2, 5, false)]);
}

/// Nothing is written but what lifetimes need.
#[test]
fn an_idle_store_that_starts_again_each_night_lets_lifetimes_end() {
    let mut keeper = Keeper::new();
    keeper.report(1, 2);
    for night in 0..3 {
        assert!(!keeper.receivers()[0].2, "after {night} nights");
        keeper.pass(16 * HOUR);
        keeper.log.unix_ns += 24 * HOUR;
        // The clock of the host begins anew.
        keeper.restart(night > 0, 5);
    }
    assert_eq!(keeper.receivers(), [(1, 2, true)]);
}

#[test]
fn a_host_that_was_suspended_heard_nothing_meanwhile() {
    let mut keeper = Keeper::new();
    keeper.report(1, 2);
    keeper.pass(HOUR);
    keeper.now += 10 * LIFETIME;
    keeper.store.tick(keeper.now, &mut keeper.log, &mut keeper.out);
    assert_eq!(keeper.receivers(), [(1, 2, false)]);
    let records = keeper.log.all().count();
    keeper.pass(LIFETIME - 2 * HOUR);
    assert_eq!(keeper.receivers(), [(1, 2, false)]);
    // An hour away is written at a time, and no more.
    let written = keeper.log.all().count() - records;
    assert!((28..=31).contains(&written), "{written} records");
}

/// Restarts, crashes and jumps of both clocks, by seeds.
#[test]
fn lifetimes_count_the_time_for_which_the_store_is_up() {
    for seed in 0..30_u64 {
        let mut rng = seed;
        let mut draw = |end: u64| {
            rng = rng.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
            (rng >> 33) % end
        };
        let mut keeper = Keeper::new();
        keeper.report(1, 2);
        keeper.report(2, 5);
        let (mut up, mut lost) = (0, 0);
        while up <= LIFETIME + lost + 4 * PAUSE {
            keeper.attach(2);
            let time = PAUSE + draw(HOUR / PAUSE) * PAUSE;
            keeper.pass(time);
            up += time;
            // Less than a step and two looks is lost with what was not written.
            match draw(30) {
                0 => keeper.log.unix_ns = draw(100) * YEAR,
                1 => keeper.now += draw(3) * LIFETIME,
                2 => {
                    keeper.restart(true, draw(YEAR));
                    lost += 4 * PAUSE;
                }
                3 => {
                    keeper.restart(false, draw(YEAR));
                    lost += HOUR + 4 * PAUSE;
                }
                _ => {}
            }
            let [(_, _, is_expired), (_, _, is_there)] = keeper.receivers()[..] else {
                panic!("two receivers");
            };
            assert!(!is_there, "seed {seed}: one that asks now and then expires");
            assert!(up + 100 * PAUSE >= LIFETIME || !is_expired, "seed {seed}: expired at {up}");
        }
        assert!(keeper.receivers()[0].2, "seed {seed}: after {up}");
    }
}
