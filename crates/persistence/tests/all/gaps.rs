//! Messages that no store has, in front of later ones that came live.

use crate::offers::{RUN, SOURCE, answer, asking, offer, settings, told};
use crate::parts::{NOW, Outlet, SESSION};
use lanecast_persistence::Receiver;
use lanecast_wire::store::{
    STORE_NUMBER_MAX, StoreFrame, StoreOffer, StoreState, TimedRecords, TimedRecordsWriter,
};

/// A receiver of messages 0 to 10 and 12, whose stores have those before `stored`.
struct Gap {
    receiver: Receiver,
    out: Outlet,
    now: u64,
    stored: [Option<u64>; 3],
    /// Sequence of the first message of each.
    first: [u64; 3],
    /// Stores have seen the publisher leave.
    have_seen_end: bool,
}

impl Gap {
    fn new() -> Self {
        let (receiver, out) = asking(settings());
        let (stored, have_seen_end) = ([Some(0); 3], false);
        let mut gap = Self { receiver, out, now: NOW, stored, first: [0; 3], have_seen_end };
        gap.answer();
        (0..11).for_each(|number| gap.live(number));
        gap.live(12);
        gap.stored = [Some(11); 3];
        gap
    }

    fn live(&mut self, number: u64) {
        self.receiver.on_live(SESSION, number, b"body", self.now, &mut self.out);
    }

    /// The publisher ends, which the stores see, too.
    fn leave(&mut self) {
        self.receiver.on_left(SESSION);
        self.have_seen_end = true;
    }

    /// The stores answer the last question.
    fn answer(&mut self) {
        for (store, next) in self.stored.into_iter().enumerate() {
            let Some(next) = next else { continue };
            let offer = offer();
            let first = self.first[store];
            let (has_left, state) = (self.have_seen_end, StoreState { first, next, ..offer.state });
            let offer = StoreOffer { has_left, state, ..offer };
            answer(&mut self.receiver, store, &offer, self.now, &mut self.out);
        }
    }

    /// Some intervals pass; returns the questions for messages.
    fn pass(&mut self, intervals: u64) -> usize {
        let (retry, mut fetches) = (settings().retry, 0);
        for step in 0..intervals * 20 {
            self.now += retry / 20;
            let before = self.out.frames.len();
            if self.now >= self.receiver.due() {
                self.receiver.tick(self.now, &mut self.out);
            }
            let asked = |bytes: &Vec<u8>| match StoreFrame::read(bytes) {
                Ok((_, StoreFrame::Fetch { from, .. })) => Some(from),
                _ => None,
            };
            let asked: Vec<u64> = self.out.frames[before..].iter().filter_map(asked).collect();
            fetches += asked.len();
            asked.into_iter().for_each(|from| self.fetched(from));
            if step % 20 == 19 {
                self.answer();
            }
        }
        fetches
    }

    /// The first store that is there answers a question for messages.
    fn fetched(&mut self, from: u64) {
        let there =
            self.stored.iter().enumerate().find_map(|(store, next)| Some((store, (*next)?)));
        let Some((store, next)) = there else { return };
        let mut writer = TimedRecordsWriter::default();
        let first = from.max(self.first[store]);
        (first..next).for_each(|_| writer.add(0, b"body"));
        let records = if first < next { writer.records() } else { TimedRecords::EMPTY };
        let frame = StoreFrame::Fetched { log: RUN.ballot, from, first, next, records };
        self.receiver.on_frame(store, SOURCE, &frame, self.now, &mut self.out);
    }

    /// Kinds of the events since the gap, with the numbers of losses.
    fn events(&self) -> Vec<&str> {
        let kinds = ["Message", "Lost", "Recovered", "Left"];
        let is_told = |it: &&str| kinds.iter().any(|kind| it.starts_with(kind));
        let events = self.out.receiver_events.iter().map(|it| &**it).filter(is_told);
        events.skip(11).map(|it| if it.starts_with("Message") { "Message" } else { it }).collect()
    }
}

const LOST: &str = "Lost { source: 7, first: 11, count: 1, why: NotStored }";

#[test]
fn the_end_of_a_session_is_told_behind_a_gap_that_no_store_can_fill() {
    let mut gap = Gap::new();
    // As long as the publisher lives, the message may reach a store. Not asked for all the time.
    let fetches = gap.pass(30);
    assert!((25..=40).contains(&fetches), "{fetches} questions in 30 intervals");
    assert_eq!(gap.events(), [""; 0]);
    gap.leave();
    gap.pass(8);
    assert_eq!(gap.events(), [""; 0], "stores may still read what was sent");
    gap.pass(8);
    let rest = ["Recovered { source: 7, next: 13 }", "Left { source: 7, next: 13 }"];
    assert_eq!(gap.events(), [&[LOST, "Message"][..], &rest].concat());
    assert_eq!(gap.pass(10), 0);
}

#[test]
fn a_gap_is_no_loss_while_a_store_may_have_its_messages() {
    let mut gap = Gap::new();
    gap.leave();
    // A store was away, and has answered nothing since: it counts as lost after ten questions.
    gap.stored[2] = None;
    gap.pass(9);
    assert_eq!(gap.events(), [""; 0]);
    // It comes back with the message, shortly before.
    gap.stored[2] = Some(13);
    gap.answer();
    gap.stored[0] = Some(13);
    gap.pass(12);
    assert_eq!(told(&gap.out, "Lost"), [""; 0]);
    assert_eq!(told(&gap.out, "Message").len(), 13);
    assert_eq!(told(&gap.out, "Left"), ["Left { source: 7, next: 13 }"]);
}

/// Whether the end of its connection shows or not.
#[test]
fn a_store_that_told_of_the_messages_and_is_away_is_waited_for() {
    for is_disconnected in [false, true] {
        let mut gap = Gap::new();
        gap.stored[2] = Some(12);
        gap.answer();
        gap.leave();
        gap.stored[2] = None;
        if is_disconnected {
            gap.receiver.on_disconnected(2);
        }
        gap.pass(60);
        assert_eq!((told(&gap.out, "Lost"), told(&gap.out, "Left")), (vec![], vec![]));
        // Not for good: too few have the message for it to be stable.
        gap.pass(60);
        assert_eq!(gap.events()[..2], [LOST, "Message"]);
        assert_eq!(told(&gap.out, "Left"), ["Left { source: 7, next: 13 }"]);
    }
}

/// The store has messages behind the last one that came here.
#[test]
fn the_end_waits_for_a_store_that_told_of_more_and_moves_behind_what_it_brings_later() {
    let mut gap = Gap::new();
    gap.live(11);
    gap.stored = [Some(13), Some(13), Some(15)];
    gap.answer();
    gap.leave();
    gap.stored[2] = None;
    gap.receiver.on_disconnected(2);
    gap.pass(60);
    assert_eq!(told(&gap.out, "Left"), [""; 0]);
    gap.pass(60);
    assert_eq!(told(&gap.out, "Left"), ["Left { source: 7, next: 13 }"]);
    gap.stored = [Some(15); 3];
    gap.pass(10);
    assert_eq!(told(&gap.out, "Message").len(), 15);
    assert_eq!(told(&gap.out, "Left")[1..], ["Left { source: 7, next: 15 }"]);
    gap.pass(10);
    assert_eq!(told(&gap.out, "Left").len(), 2);
}

/// Retention has taken them at the others.
#[test]
fn a_store_that_is_away_for_a_moment_may_bring_messages_that_the_others_keep_no_more() {
    for is_back in [true, false] {
        let mut gap = Gap::new();
        gap.stored = [Some(20); 3];
        gap.answer();
        gap.stored[2] = None;
        gap.receiver.on_disconnected(2);
        gap.first = [19, 19, 0];
        gap.pass(60);
        assert_eq!(told(&gap.out, "Lost"), [""; 0]);
        if is_back {
            gap.stored = [None, None, Some(20)];
        }
        gap.pass(80);
        let lost = "Lost { source: 7, first: 11, count: 8, why: Expired }";
        assert_eq!(told(&gap.out, "Lost"), if is_back { vec![] } else { vec![lost] });
    }
}

/// Messages behind the gap that found no room are counted, too.
#[test]
fn messages_that_came_and_found_no_room_are_lost_with_the_gap() {
    let mut gap = Gap::new();
    let settings = lanecast_persistence::ReceiverSettings { cache_bytes: 70, ..settings() };
    let (receiver, out) = asking(settings);
    (gap.receiver, gap.out, gap.stored) = (receiver, out, [Some(0); 3]);
    gap.answer();
    (0..11).for_each(|number| gap.live(number));
    (12..20).for_each(|number| gap.live(number));
    gap.stored = [Some(11); 3];
    gap.leave();
    gap.pass(16);
    let second = "Lost { source: 7, first: 13, count: 7, why: NotStored }";
    let rest = ["Recovered { source: 7, next: 20 }", "Left { source: 7, next: 20 }"];
    assert_eq!(gap.events(), [&[LOST, "Message", second][..], &rest].concat());
}

#[test]
fn a_store_that_has_not_seen_the_publisher_leave_has_more_time() {
    let mut gap = Gap::new();
    gap.receiver.on_left(SESSION);
    gap.pass(90);
    assert_eq!(gap.events(), [""; 0], "stores may still read what was sent");
    gap.pass(16);
    assert_eq!(gap.events()[..2], [LOST, "Message"]);
}

#[test]
fn numbers_that_no_stream_can_have_leave_no_gap_behind() {
    let mut gap = Gap::new();
    let next = gap.receiver.next(SOURCE);
    for number in [STORE_NUMBER_MAX, u64::MAX - 1, u64::MAX] {
        gap.live(number);
        // Nor does one of a session that no store has named.
        gap.receiver.on_live(SESSION + 1, number, b"body", gap.now, &mut gap.out);
        gap.receiver.on_lost(SESSION + 1, number, 7, &mut gap.out);
    }
    assert_eq!(gap.receiver.next(SOURCE), next);
    gap.live(11);
    assert_eq!(gap.receiver.next(SOURCE), Some(13));
    gap.stored = [Some(13); 3];
    gap.leave();
    gap.pass(3);
    let ends = told(&gap.out, "Left");
    assert_eq!(ends.len(), 1, "{:?}", gap.events());
}
