//! Positions of receivers, which a store that was away asks other stores for.

use crate::parts::{MemoryLog, Outlet, TOPIC, store_at};
use lanecast_persistence::{Nanos, Store};
use lanecast_wire::store::{
    Ballot, Consumption, Departure, LogRecord, Members, RecordsWriter, Registered, Run,
    StoreAddress, StoreFrame, TimedRecordsWriter,
};

const NOW: Nanos = 1_000_000_000;
const RETRY: Nanos = 100_000_000;
const BALLOT: Ballot = Ballot { epoch: 3, session: 9 };

/// A store of three messages, a member beside two others, whose receivers pace the publisher.
struct Lagging {
    store: Store,
    log: MemoryLog,
    out: Outlet,
    now: Nanos,
}

impl Lagging {
    fn new() -> Self {
        let (log, out) = (MemoryLog::default(), Outlet::default());
        let mut lagging = Self { store: store_at(0), log, out, now: NOW };
        let stores = [("a", 5), ("b", 6), ("c", 7)].map(|(name, it)| (name.to_owned(), it));
        let members = Members::without_groups(2, stores.to_vec());
        let records = [
            LogRecord::Reconfigured { stream: 0, members },
            LogRecord::Paced { stream: 0, is_by_receivers: true },
        ];
        for record in &records {
            lagging.store.replay(record).expect("it follows");
        }
        lagging.hear(&StoreFrame::Query { ballot: BALLOT, next: 0 });
        let mut writer = RecordsWriter::default();
        (0..3).for_each(|_| writer.add(b"body"));
        let records = writer.records();
        lagging.hear(&StoreFrame::Resend { ballot: BALLOT, first: 0, records });
        lagging
    }

    fn hear(&mut self, frame: &StoreFrame<'_>) {
        let address = StoreAddress { client: 1, source: 7, topic: TOPIC };
        self.store.on_frame(address, frame, self.now, &mut self.log, &mut self.out);
        self.store.on_persisted(&self.log, &mut self.out);
    }

    /// Time passes until the store asks for positions, at most twenty intervals; returns the
    /// question's token and first receiver.
    fn question(&mut self) -> Option<(u64, u64)> {
        for _ in 0..20 {
            self.out.frames.clear();
            self.now += RETRY;
            self.store.tick(self.now, &mut self.log, &mut self.out);
            if let Some(question) = self.asked() {
                return Some(question);
            }
        }
        None
    }

    fn asked(&self) -> Option<(u64, u64)> {
        self.out.frames.iter().find_map(|bytes| match StoreFrame::read(bytes) {
            Ok((_, StoreFrame::FetchPositions { token, receiver })) => Some((token, receiver)),
            _ => None,
        })
    }

    fn answer(&mut self, token: u64, receivers: Vec<Registered>) {
        self.answer_with(token, receivers, Vec::new());
    }

    fn answer_with(&mut self, token: u64, receivers: Vec<Registered>, departures: Vec<Departure>) {
        self.out.frames.clear();
        let next_receiver = 0;
        self.hear(&StoreFrame::FetchedPositions { token, next_receiver, receivers, departures });
    }

    /// Receivers, each with its position.
    fn positions(&self) -> Vec<(u64, u64)> {
        self.store.receivers(0, 0).map(|it| (it.receiver, it.next)).collect()
    }
}

fn at(receiver: u64, life: u64, next: u64) -> Registered {
    let consumption = Consumption { run: Run { ballot: BALLOT, start: 0 }, next };
    Registered { life, ..Registered::new(receiver, consumption) }
}

#[test]
fn a_store_takes_over_the_positions_of_receivers_that_have_left() {
    let mut lagging = Lagging::new();
    assert_eq!(lagging.question(), None, "there are no receivers");
    lagging.hear(&StoreFrame::Consumed(at(1, 1, 2)));
    lagging.hear(&StoreFrame::Consumed(at(2, 1, 3)));
    lagging.hear(&StoreFrame::Consumed(at(4, 1, 0)));
    let (token, first) = lagging.question().expect("a question");
    assert_eq!(first, 1, "the second one lacks nothing");
    // Positions go forward only, and receivers that are not known stay so.
    let told = vec![at(1, 1, 1), at(3, 1, 1), at(4, 1, 3)];
    lagging.answer(token, told);
    assert_eq!(lagging.positions(), [(1, 2), (2, 3), (4, 3)]);
    lagging.answer(token, vec![at(1, 1, 3)]);
    assert_eq!(lagging.positions()[0], (1, 2), "a second answer to one question");
    let (token, _) = lagging.question().expect("the next question");
    lagging.answer(token, vec![at(1, 1, 3)]);
    assert_eq!(lagging.positions()[0], (1, 3));
    assert_eq!(lagging.question(), None, "nothing is missed");
    let consumed = lagging.store.state(TOPIC, 7).expect("a stream").consumed;
    assert_eq!(consumed, 3);
    // They are in the log.
    let restored = lagging.log.restore(store_at_other());
    assert_eq!(restored.receivers(0, 0).map(|it| it.next).collect::<Vec<_>>(), [3; 3]);
}

/// A store before its records. The parts of the first ones that are not in the log are the same.
fn store_at_other() -> Store {
    let mut store = store_at(0);
    store.replay(&LogRecord::Paced { stream: 0, is_by_receivers: true }).expect("it follows");
    store
}

#[test]
fn the_word_of_the_last_life_counts() {
    let mut lagging = Lagging::new();
    lagging.hear(&StoreFrame::Consumed(at(1, 5, 1)));
    // Another store was away when the registration of an earlier life ended.
    let (token, _) = lagging.question().expect("a question");
    lagging.answer(token, vec![at(1, 4, 3)]);
    assert_eq!(lagging.positions(), [(1, 1)], "it would give up what this life has not consumed");
    lagging.hear(&StoreFrame::Consumed(at(1, 4, 3)));
    lagging.hear(&StoreFrame::Detach { receiver: 1, life: 4 });
    assert_eq!(lagging.positions(), [(1, 1)], "frames of an earlier life that come late");
    // This store was away: the later life has begun anew.
    let (token, _) = lagging.question().expect("a question");
    lagging.answer(token, vec![at(1, 6, 0)]);
    assert_eq!(lagging.positions(), [(1, 0)], "what it has not consumed is kept");
    // Until it is on the disk, the receiver counts as one that needs everything.
    lagging.log.unwritten = 1;
    lagging.hear(&StoreFrame::Consumed(at(1, 7, 2)));
    assert_eq!(lagging.positions(), [(1, 0)]);
    lagging.log.unwritten = 0;
    lagging.store.on_persisted(&lagging.log, &mut lagging.out);
    assert_eq!(lagging.positions(), [(1, 2)]);
    lagging.hear(&StoreFrame::Detach { receiver: 1, life: 7 });
    assert_eq!(lagging.positions(), []);
    let offered = |lagging: &mut Lagging, receiver| {
        lagging.out.frames.clear();
        let (since_unix_ns, until_unix_ns) = (0, 0);
        lagging.hear(&StoreFrame::Attach { receiver, token: 1, since_unix_ns, until_unix_ns });
        lagging.out.frames.iter().find_map(|bytes| match StoreFrame::read(bytes) {
            Ok((_, StoreFrame::Offer(offer))) => Some((offer.life, offer.consumption.is_some())),
            _ => None,
        })
    };
    assert_eq!(offered(&mut lagging, 1), Some((7, false)), "a new life is a later one");
    lagging.store = lagging.log.restore(store_at_other());
    assert_eq!(offered(&mut lagging, 1), Some((7, false)), "also after a start");
}

#[test]
fn copies_behind_a_gap_follow_when_receivers_have_consumed_elsewhere() {
    let mut lagging = Lagging::new();
    lagging.hear(&StoreFrame::Consumed(at(1, 1, 1)));
    assert!(lagging.question().is_some());
    // It has just told its old position: in the usual way it would not be asked for.
    lagging.hear(&StoreFrame::Consumed(at(1, 1, 2)));
    let copy = |lagging: &mut Lagging| {
        lagging.hear(&StoreFrame::Elsewhere { ballot: BALLOT, until: 10, donor: "b" });
        let mut writer = TimedRecordsWriter::default();
        (0..2).for_each(|_| writer.add(1, b"body"));
        let records = writer.records();
        lagging.hear(&StoreFrame::Fetched { log: BALLOT, from: 3, first: 8, next: 10, records });
        let mut streams = lagging.store.summaries().map(|it| (it.first, it.next));
        streams.next().expect("a stream")
    };
    assert_eq!(copy(&mut lagging), (0, 3), "the receiver may need what is here");
    lagging.out.frames.clear();
    lagging.store.tick(lagging.now + 1, &mut lagging.log, &mut lagging.out);
    let (token, _) = lagging.asked().expect("a question at once");
    lagging.answer(token, vec![at(1, 1, 9)]);
    assert_eq!(copy(&mut lagging), (8, 10));
}

#[test]
fn only_durable_positions_are_told_and_a_page_at_a_time() {
    let mut lagging = Lagging::new();
    (1..=200).for_each(|receiver| lagging.hear(&StoreFrame::Consumed(at(receiver, 1, 1))));
    lagging.log.unwritten = 2;
    lagging.hear(&StoreFrame::Consumed(at(2, 1, 3)));
    lagging.hear(&StoreFrame::Consumed(at(201, 1, 3)));
    let told = |lagging: &mut Lagging, receiver| {
        lagging.out.frames.clear();
        lagging.hear(&StoreFrame::FetchPositions { token: 9, receiver });
        let frame = lagging.out.frames.last().expect("an answer");
        match StoreFrame::read(frame) {
            Ok((_, StoreFrame::FetchedPositions { token: 9, next_receiver, receivers, .. })) => {
                (next_receiver, receivers)
            }
            other => panic!("{other:?}"),
        }
    };
    let (next, receivers) = told(&mut lagging, 0);
    assert_eq!((next, receivers.len(), receivers[1]), (129, 128, at(2, 1, 1)));
    let (next, receivers) = told(&mut lagging, next);
    assert_eq!((next, receivers.len()), (0, 72), "the last one is not on the disk");
    // The store that asks goes on with the next page.
    let (token, first) = lagging.question().expect("a question");
    assert_eq!(first, 1);
    lagging.out.frames.clear();
    let (receivers, departures) = (vec![at(1, 1, 3)], Vec::new());
    let next_receiver = 129;
    lagging.hear(&StoreFrame::FetchedPositions { token, next_receiver, receivers, departures });
    let (token, first) = lagging.asked().expect("another question");
    assert_eq!(first, 129);
    lagging.answer(token, (129..=200).map(|receiver| at(receiver, 1, 3)).collect());
    assert_eq!(lagging.asked(), None, "that was the last page");
}

const fn left(receiver: u64, life: u64) -> Departure {
    Departure { receiver, life }
}

#[test]
fn a_store_that_was_away_learns_which_receivers_have_left() {
    let mut lagging = Lagging::new();
    (1..=3).for_each(|receiver| lagging.hear(&StoreFrame::Consumed(at(receiver, 5, 1))));
    let (token, _) = lagging.question().expect("a question");
    // One of a life that is the last one here, one of an earlier life, and one that is not known.
    lagging.answer_with(token, vec![at(3, 5, 2)], vec![left(1, 5), left(2, 4), left(9, 5)]);
    assert_eq!(lagging.positions(), [(2, 1), (3, 2)]);
    lagging.hear(&StoreFrame::Consumed(at(1, 5, 3)));
    assert_eq!(lagging.positions(), [(2, 1), (3, 2)], "a report that was under way");
    let (token, _) = lagging.question().expect("a question");
    lagging.answer_with(token, Vec::new(), vec![left(2, 7), left(3, 5)]);
    assert_eq!(lagging.question(), None, "no receiver is left to wait for");
    let consumed = lagging.store.state(TOPIC, 7).expect("a stream").consumed;
    assert_eq!((lagging.positions(), consumed), (Vec::new(), 3));
    lagging.store = lagging.log.restore(store_at_other());
    assert_eq!(lagging.positions(), [], "also after a start");
    // An answer that was not asked for.
    lagging.hear(&StoreFrame::Consumed(at(4, 1, 1)));
    lagging.answer_with(77, Vec::new(), vec![left(4, 1)]);
    assert_eq!(lagging.positions(), [(4, 1)]);
}

/// The answer to a question for receivers from the id `from` on: the next id, those that are
/// registered, and those that have left.
fn told(lagging: &mut Lagging, from: u64) -> (u64, Vec<u64>, Vec<Departure>) {
    lagging.out.frames.clear();
    lagging.hear(&StoreFrame::FetchPositions { token: 9, receiver: from });
    let answer = lagging.out.frames.iter().find_map(|bytes| match StoreFrame::read(bytes) {
        Ok((_, StoreFrame::FetchedPositions { next_receiver, receivers, departures, .. })) => {
            Some((next_receiver, receivers.iter().map(|it| it.receiver).collect(), departures))
        }
        _ => None,
    });
    answer.expect("an answer")
}

#[test]
fn a_store_tells_which_receivers_have_left_in_pages_and_after_a_start() {
    let mut lagging = Lagging::new();
    for receiver in 1..=200 {
        lagging.hear(&StoreFrame::Consumed(at(receiver, 4, 1)));
        if receiver % 2 == 0 {
            lagging.hear(&StoreFrame::Detach { receiver, life: 4 });
        }
    }
    let (next, receivers, departures) = told(&mut lagging, 0);
    assert_eq!((next, receivers.len(), departures.len()), (129, 64, 64));
    assert_eq!((receivers[1], departures[1]), (3, left(4, 4)));
    // One comes back: the last life counts. The end of another is not on the disk.
    lagging.hear(&StoreFrame::Consumed(at(198, 5, 0)));
    lagging.log.unwritten = 1;
    lagging.hear(&StoreFrame::Detach { receiver: 199, life: 4 });
    let (next, receivers, departures) = told(&mut lagging, 197);
    assert_eq!((next, receivers.as_slice()), (0, [197, 198].as_slice()));
    assert_eq!(departures, [left(200, 4)]);
    lagging.log.unwritten = 0;
    for _ in 0..2 {
        let (_, _, departures) = told(&mut lagging, 197);
        assert_eq!(departures, [left(199, 4), left(200, 4)]);
        lagging.store = lagging.log.restore(store_at_other());
    }
}

/// Reports of a life that has ended are ignored: the next life has to be after it, also where none
/// of it was registered.
#[test]
fn a_life_that_begins_is_after_one_that_left_before_it_was_registered() {
    let mut lagging = Lagging::new();
    lagging.hear(&StoreFrame::Consumed(at(2, 3, 1)));
    lagging.hear(&StoreFrame::Detach { receiver: 2, life: 6 });
    lagging.hear(&StoreFrame::Detach { receiver: 1, life: 8 });
    let mut offered = |receiver| {
        lagging.out.frames.clear();
        let (since_unix_ns, until_unix_ns) = (0, 0);
        lagging.hear(&StoreFrame::Attach { receiver, token: 1, since_unix_ns, until_unix_ns });
        lagging.out.frames.iter().find_map(|bytes| match StoreFrame::read(bytes) {
            Ok((_, StoreFrame::Offer(offer))) => Some(offer.life),
            _ => None,
        })
    };
    assert_eq!([1, 2, 3].map(&mut offered), [Some(8), Some(6), Some(3)]);
}
