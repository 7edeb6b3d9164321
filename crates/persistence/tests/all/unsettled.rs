//! Streams whose state a store cannot tell, since their last records are not on its disk.

use crate::offers::{RUN, SOURCE, answer, asking, offer, settings, token, told};
use crate::parts::{MemoryLog, NOW, Outlet, TOPIC, groups, store_at};
use lanecast_persistence::{Detachment, Receiver, ReceiverSettings, Store};
use lanecast_wire::store::{Ballot, Run, StoreAddress, StoreFrame, StoreOffer, StoreState};

const RETRY: u64 = 200_000_000;
/// A stream beside the first one.
const OTHER: u64 = 8;
const OTHER_RUN: Run = Run { ballot: Ballot { epoch: 4, session: 77 }, start: 0 };

/// A store and its disk, and what it answers to a receiver.
struct Host {
    store: Store,
    log: MemoryLog,
    out: Outlet,
}

impl Host {
    /// A store of two streams; the promise that began the second is not on its disk.
    fn with_promise() -> Self {
        let mut host =
            Self { store: store_at(5), log: MemoryLog::default(), out: Outlet::default() };
        host.log.unwritten = 2;
        host.hear(OTHER, &StoreFrame::Open { ballot: OTHER_RUN.ballot });
        host
    }

    fn hear(&mut self, source: u64, frame: &StoreFrame<'_>) {
        let address = StoreAddress { client: 1, source, topic: TOPIC };
        self.store.on_frame(address, frame, NOW, &mut self.log, &mut self.out);
    }

    /// Answers the requests of a receiver.
    fn serve(&mut self, receiver: &mut Receiver, now: u64, out: &mut Outlet) {
        for bytes in std::mem::take(&mut out.frames) {
            let (address, frame) = StoreFrame::read(&bytes).expect("as it was written");
            self.store.on_frame(address, &frame, now, &mut self.log, &mut self.out);
        }
        for bytes in std::mem::take(&mut self.out.frames) {
            let (address, frame) = StoreFrame::read(&bytes).expect("as it was written");
            receiver.on_frame(0, address.source, &frame, now, out);
        }
    }
}

#[test]
fn a_stream_that_is_not_on_the_disk_holds_up_no_other() {
    let (mut host, mut out) = (Host::with_promise(), Outlet::default());
    let mut receiver = Receiver::new(ReceiverSettings::new(groups()), 1, NOW);
    let mut now = NOW;
    let mut pass = |host: &mut Host, receiver: &mut Receiver, out: &mut Outlet, times| {
        for _ in 0..times {
            receiver.tick(now, out);
            host.serve(receiver, now, out);
            now += RETRY;
        }
    };
    pass(&mut host, &mut receiver, &mut out, 1);
    assert_eq!(told(&out, "Joined"), ["Joined { source: 7, next: 5, is_resumed: false }"]);
    assert!(receiver.has_all(), "later streams are new");
    assert_eq!(told(&out, "Unsettled"), [""; 0], "the disk may only be slow");
    pass(&mut host, &mut receiver, &mut out, 20);
    assert_eq!(told(&out, "Unsettled"), [r#"Unsettled { source: 8, store: "a" }"#], "once");
    assert_eq!(told(&out, "StoreLost"), [""; 0]);
    host.log.unwritten = 0;
    pass(&mut host, &mut receiver, &mut out, 1);
    host.log.unwritten = 1;
    host.hear(OTHER, &StoreFrame::Open { ballot: Ballot { epoch: 5, session: 78 } });
    pass(&mut host, &mut receiver, &mut out, 12);
    assert_eq!(told(&out, "Unsettled").len(), 2, "once more, after it had told the state");
}

/// A store that cannot tell a receiver's stream has heard of the receiver all the same.
#[test]
fn a_receiver_of_an_unsettled_stream_is_named_it_in_each_answer() {
    let mut host = Host::with_promise();
    let (since_unix_ns, until_unix_ns) = (0, 0);
    host.hear(0, &StoreFrame::Attach { receiver: 1, token: 3, since_unix_ns, until_unix_ns });
    let read = host.out.frames.iter().map(|bytes| StoreFrame::read(bytes).expect("a frame"));
    let kinds: Vec<String> = read
        .map(|(address, frame)| match frame {
            StoreFrame::Offer(offer) => format!("offer {} {}", address.source, offer.token),
            other => format!("{} {other:?}", address.source),
        })
        .collect();
    let streams = "0 Streams { incarnation: 5, token: 3, count: 2 }";
    assert_eq!(kinds, ["offer 7 3", "8 Unsettled { token: 3, runs: [] }", streams]);
}

/// Answers the last question as a store that cannot tell the stream's state.
fn answer_unsettled(receiver: &mut Receiver, store: usize, now: u64, out: &mut Outlet) {
    let (token, incarnation) = (token(out), 5);
    let unsettled = StoreFrame::Unsettled { token, runs: vec![RUN] };
    receiver.on_frame(store, SOURCE, &unsettled, now, out);
    let streams = StoreFrame::Streams { incarnation, token, count: 1 };
    receiver.on_frame(store, 0, &streams, now, out);
}

#[test]
fn a_store_that_cannot_tell_the_state_does_not_decide() {
    let (mut receiver, mut out) = asking(settings());
    answer_unsettled(&mut receiver, 0, NOW, &mut out);
    answer(&mut receiver, 1, &offer(), NOW, &mut out);
    assert_eq!(told(&out, "Joined"), [""; 0], "c may know more");
    receiver.tick(NOW, &mut out);
    assert_eq!(told(&out, "Waiting").last().expect("told"), r#"Waiting { silent: ["a", "c"] }"#);
    answer(&mut receiver, 2, &offer(), NOW, &mut out);
    assert_eq!(told(&out, "Joined").len(), 1, "two of three decide");
}

#[test]
fn an_answer_of_which_a_frame_was_lost_is_none() {
    let (mut receiver, mut out) = asking(settings());
    let streams =
        |out: &Outlet, count| StoreFrame::Streams { incarnation: 5, token: token(out), count };
    for store in 0..3 {
        let frame = StoreFrame::Offer(StoreOffer { token: token(&out), ..offer() });
        receiver.on_frame(store, SOURCE, &frame, NOW, &mut out);
        // The word of another stream was lost.
        let frame = streams(&out, 2);
        receiver.on_frame(store, 0, &frame, NOW, &mut out);
    }
    assert!(!receiver.has_all() && told(&out, "Joined").is_empty());
    // An answer to a question that was never asked tells nothing.
    let later = StoreFrame::Unsettled { token: token(&out) + 1, runs: vec![] };
    receiver.on_frame(0, OTHER, &later, NOW, &mut out);
    let frame = streams(&out, 1);
    receiver.on_frame(0, 0, &frame, NOW, &mut out);
    assert!(!receiver.has_all());
}

/// The run may be on the disk by the time its publisher sends.
#[test]
fn a_session_of_an_unsettled_stream_is_not_taken_for_one_that_no_store_keeps() {
    let (mut receiver, mut out) = asking(settings());
    receiver.on_live(RUN.ballot.session, 0, b"body", NOW, &mut out);
    receiver.tick(NOW + RETRY, &mut out);
    (0..3).for_each(|store| answer_unsettled(&mut receiver, store, NOW + RETRY, &mut out));
    assert_eq!(told(&out, "Unkept"), [""; 0]);
    receiver.tick(NOW + 2 * RETRY, &mut out);
    let none = StoreState { next: 0, ..offer().state };
    let offer = StoreOffer { state: none, ..offer() };
    (0..3).for_each(|store| answer(&mut receiver, store, &offer, NOW + 2 * RETRY, &mut out));
    assert_eq!(told(&out, "Message").len(), 1, "{:?}", out.receiver_events);
}

/// Messages that retention has removed elsewhere: the store that cannot tell may have them.
#[test]
fn messages_are_not_lost_before_a_store_that_may_have_them_is_given_up() {
    let (mut receiver, mut out) = asking(settings());
    let state = StoreState { first: 4, ..offer().state };
    let trimmed = StoreOffer { state, consumption: None, ..offer() };
    let consumption = Some(lanecast_wire::store::Consumption { run: RUN, next: 1 });
    let trimmed = StoreOffer { consumption, ..trimmed };
    let mut now = NOW;
    for round in 0..20 {
        answer_unsettled(&mut receiver, 0, now, &mut out);
        (1..3).for_each(|store| answer(&mut receiver, store, &trimmed, now, &mut out));
        receiver.tick(now, &mut out);
        let is_lost = !told(&out, "Lost").is_empty();
        assert_eq!(is_lost, round >= 10, "round {round}: {:?}", out.receiver_events);
        now += RETRY;
        receiver.tick(now, &mut out);
    }
}

/// A registration may be among what the store cannot tell.
#[test]
fn a_receiver_that_leaves_waits_for_the_word_on_an_unsettled_stream() {
    let mut receiver = Receiver::new(ReceiverSettings::new(groups()), 1, NOW);
    let mut out = Outlet::default();
    receiver.detach(NOW);
    receiver.tick(NOW, &mut out);
    answer_unsettled(&mut receiver, 0, NOW, &mut out);
    let unconfirmed = vec!["a".to_owned()];
    assert_eq!(receiver.detachment(), Some(Detachment::TooFew { unconfirmed }));
    out.frames.clear();
    receiver.tick(NOW + 1, &mut out);
    let is_told = |bytes: &Vec<u8>| {
        matches!(StoreFrame::read(bytes), Ok((_, StoreFrame::Detach { receiver: 1, .. })))
    };
    assert!(out.frames.iter().any(is_told), "at once");
    let ended = StoreFrame::Detached { receiver: 1, life: settings().life.max(1) };
    receiver.on_frame(0, SOURCE, &ended, NOW + 2, &mut out);
    assert_eq!(receiver.detachment(), Some(Detachment::Everywhere));
}
