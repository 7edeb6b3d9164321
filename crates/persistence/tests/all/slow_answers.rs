//! Stores whose answers take longer than the interval after which questions are repeated.

use crate::offers::{SOURCE, offer, settings};
use crate::parts::{NOW, SESSION};
use lanecast_persistence::{Nanos, Receiver, ReceiverEvent, ReceiverOutlet};
use lanecast_wire::store::{
    StoreAddress, StoreFrame, StoreOffer, StoreState, TimedRecords, TimedRecordsWriter,
};

const STEP: Nanos = 10_000_000;
/// Messages in one answer.
const BATCH: u64 = 10;

/// Requests of a receiver, each with its store, and its events.
#[derive(Default)]
struct Requests {
    frames: Vec<(usize, Vec<u8>)>,
    messages: u64,
    others: Vec<String>,
}

impl ReceiverOutlet for Requests {
    fn request(&mut self, store: usize, source: u64, frame: &StoreFrame<'_>) {
        let mut bytes = Vec::new();
        frame.write(StoreAddress { client: 1, source, topic: "orders" }, &mut bytes);
        self.frames.push((store, bytes));
    }

    fn event(&mut self, event: ReceiverEvent<'_>) {
        match event {
            ReceiverEvent::Message(message) => {
                assert_eq!(message.sequence(), self.messages);
                self.messages += 1;
            }
            other => self.others.push(format!("{other:?}")),
        }
    }
}

/// A receiver, and two of three stores, which answer late.
struct World {
    receiver: Receiver,
    out: Requests,
    now: Nanos,
    /// Time of an answer from the question on.
    delay: Nanos,
    /// The stream at the stores.
    offer: StoreOffer,
    /// Whether they know a stream.
    has_stream: bool,
    arriving: Vec<(Nanos, usize, Vec<u8>)>,
    fetches: u64,
}

impl World {
    fn new(delay: Nanos, next: u64) -> Self {
        let offer = offer();
        Self {
            receiver: Receiver::new(settings(), 1, NOW),
            out: Requests::default(),
            now: NOW,
            delay,
            offer: StoreOffer { state: StoreState { next, ..offer.state }, ..offer },
            has_stream: true,
            arriving: Vec::new(),
            fetches: 0,
        }
    }

    /// Runs until `is_done`, at most this time; returns whether it is.
    fn run(&mut self, time: Nanos, is_done: impl Fn(&Requests) -> bool) -> bool {
        let end = self.now + time;
        while self.now < end && !is_done(&self.out) {
            self.now += STEP;
            if self.now >= self.receiver.due() {
                self.receiver.tick(self.now, &mut self.out);
            }
            let requests = std::mem::take(&mut self.out.frames);
            let answered = requests.into_iter().filter(|(store, _)| *store > 0);
            let at = self.now + self.delay;
            self.arriving.extend(answered.map(|(store, bytes)| (at, store, bytes)));
            let (due, later) = self.arriving.drain(..).partition(|(at, ..)| *at <= self.now);
            self.arriving = later;
            for (_, store, bytes) in due {
                self.answer(store, &bytes);
            }
        }
        is_done(&self.out)
    }

    fn answer(&mut self, store: usize, bytes: &[u8]) {
        let (_, frame) = StoreFrame::read(bytes).expect("as it was written");
        let Self { receiver, out, now, offer, has_stream, .. } = self;
        match frame {
            StoreFrame::Attach { token, .. } => {
                if *has_stream {
                    let offer = StoreOffer { token, ..offer.clone() };
                    receiver.on_frame(store, SOURCE, &StoreFrame::Offer(offer), *now, out);
                }
                let (incarnation, count) = (5, u32::from(*has_stream));
                let streams = StoreFrame::Streams { incarnation, token, count };
                receiver.on_frame(store, 0, &streams, *now, out);
            }
            StoreFrame::Fetch { from, .. } => {
                self.fetches += 1;
                let state = &offer.state;
                let mut writer = TimedRecordsWriter::default();
                (from..state.next.min(from + BATCH)).for_each(|_| writer.add(0, b"body"));
                let is_empty = from >= state.next;
                let records = if is_empty { TimedRecords::EMPTY } else { writer.records() };
                let (log, next) = (state.log, state.next);
                let frame = StoreFrame::Fetched { log, from, first: from, next, records };
                receiver.on_frame(store, SOURCE, &frame, *now, out);
            }
            _ => {}
        }
    }
}

#[test]
fn messages_come_from_stores_that_answer_later_than_they_are_asked_again() {
    let retry = settings().retry;
    for delay in [retry / 2, retry + retry / 4, 2 * retry - STEP, 5 * retry / 2, 5 * retry] {
        let mut world = World::new(delay, 20 * BATCH);
        let is_done = |out: &Requests| out.others.iter().any(|it| it.contains("Recovered"));
        assert!(world.run(60 * (delay + retry), is_done), "{delay}: {:?}", world.out.others);
        assert_eq!(world.out.messages, 20 * BATCH);
        // Each answer is asked for about once.
        assert!(world.fetches <= 30, "{delay}: asked {} times", world.fetches);
    }
}

#[test]
fn sessions_are_told_apart_by_answers_however_late() {
    let retry = settings().retry;
    for delay in [retry / 2, 3 * retry, 10 * retry] {
        let mut world = World::new(delay, 0);
        world.has_stream = false;
        world.receiver.on_live(SESSION + 9, 0, b"body", NOW, &mut world.out);
        let is_done = |out: &Requests| out.others.iter().any(|it| it.contains("Unkept {"));
        assert!(world.run(3 * (delay + retry), is_done), "{delay}: {:?}", world.out.others);
    }
}
