//! Requests for messages: many of them take turns of the store, in which others are served.

use crate::some_stores::{Stores, TIMEOUT, until, until_stable};
use lanecast_shm::{Domain, Publisher, Subscriber};
use lanecast_transport::{Event, Publish, Subscribe, Transport};
use lanecast_wire::store::{Ballot, STORE_NUMBER_MAX, StoreAddress, StoreFrame};
use std::time::Instant;

const BODY: usize = 16 << 10;
const MESSAGES: u64 = 16;
const FETCHES: u64 = 100;
/// Bytes of one turn, its last answer, and some that found no room in the turn before.
const TURN_BYTES: usize = 3 << 19;
const CLIENTS: [u64; 2] = [0xa, 0xb];

/// Replies to a client of the store in one turn.
#[derive(Debug, Default)]
struct Turn {
    bytes: usize,
    fetched: usize,
    states: usize,
    /// Ends of answers with the streams of a topic.
    lists: u64,
}

fn read(replies: &mut Subscriber, turn: &mut Turn) {
    replies.poll(usize::MAX, |event| {
        let Event::Message(message) = event else { return };
        let (_, frame) = StoreFrame::read(message.bytes()).expect("a frame");
        turn.bytes += message.bytes().len();
        turn.fetched += usize::from(matches!(frame, StoreFrame::Fetched { .. }));
        turn.lists += u64::from(matches!(frame, StoreFrame::Streams { .. }));
        turn.states += usize::from(matches!(frame, StoreFrame::State(_)));
    });
}

/// A request of a client about the stream of the publisher 7.
fn ask(link: &mut Publisher, client: u64, frame: &StoreFrame<'_>, stores: &mut Stores) {
    let mut bytes = Vec::new();
    frame.write(StoreAddress { client, source: 7, topic: "orders" }, &mut bytes);
    let start = Instant::now();
    while link.try_send(&bytes).is_err() {
        assert!(start.elapsed() < TIMEOUT, "no room");
        stores.poll();
    }
}

/// Has the store open the link to a client, with its first reply.
fn open_link(link: &mut Publisher, client: u64, replies: &mut Subscriber, stores: &mut Stores) {
    let (mut turn, start) = (Turn::default(), Instant::now());
    let first = StoreFrame::Fetch { from: MESSAGES, until: STORE_NUMBER_MAX, limit: 1 };
    ask(link, client, &first, stores);
    while turn.fetched == 0 {
        assert!(start.elapsed() < TIMEOUT, "no reply");
        stores.poll();
        read(replies, &mut turn);
    }
}

/// A store with messages, the way to it, and the replies to two clients, which have joined.
fn stores() -> (Stores, Publisher, Vec<Subscriber>) {
    let mut stores = Stores::new(1);
    let mut publisher = stores.open(7);
    for _ in 0..MESSAGES {
        until(&mut stores, &mut publisher, "sent", |_, it| it.try_send(&[7; BODY]).is_ok());
    }
    until_stable(&mut stores, &mut publisher);
    let subscriber = |domain: &Domain, client: u64| {
        domain.subscriber(&[&format!("_store.store-0.{client:016x}")]).expect("a subscriber")
    };
    let mut replies = CLIENTS.map(|client| subscriber(&stores.domain, client));
    let mut link = stores.domain.publisher("_store.store-0").expect("a publisher");
    assert!(link.wait_for_subscribers(1, TIMEOUT));
    for (client, replies) in CLIENTS.into_iter().zip(&mut replies) {
        open_link(&mut link, client, replies, &mut stores);
    }
    (stores, link, replies.into())
}

#[test]
fn a_turn_answers_a_bounded_number_of_bytes_and_clients_take_turns() {
    let (mut stores, mut link, mut replies) = stores();
    let ask_all = |link: &mut Publisher, client: u64, stores: &mut Stores| {
        for number in 0..FETCHES {
            let until = STORE_NUMBER_MAX - number;
            let fetch = StoreFrame::Fetch { from: 0, until, limit: 128 << 10 };
            ask(link, client, &fetch, stores);
        }
    };
    // All requests of one client come before those of the other.
    for client in CLIENTS {
        ask_all(&mut link, client, &mut stores);
    }
    let query = StoreFrame::Query { ballot: Ballot::ZERO, next: 0 };
    ask(&mut link, CLIENTS[1], &query, &mut stores);
    let (mut fetched, mut states, mut turns) = ([0; 2], 0, 0);
    let start = Instant::now();
    while fetched != [FETCHES as usize; 2] {
        assert!(start.elapsed() < TIMEOUT, "{fetched:?} after {turns} turns");
        stores.poll();
        let mut both = [Turn::default(), Turn::default()];
        for (replies, turn) in replies.iter_mut().zip(&mut both) {
            read(replies, turn);
        }
        let bytes: usize = both.iter().map(|turn| turn.bytes).sum();
        assert!(bytes <= TURN_BYTES, "{bytes} bytes in one turn: {both:?}");
        states += both[1].states;
        let is_first = fetched == [0; 2];
        turns += 1;
        fetched.iter_mut().zip(&both).for_each(|(all, turn)| *all += turn.fetched);
        let has_answer = fetched != [0; 2];
        assert!(!is_first || states == usize::from(has_answer), "it does not wait: {both:?}");
        // The first turn begins before the requests of the other are read.
        assert!(fetched[0].abs_diff(fetched[1]) <= 16, "{fetched:?} after {turns} turns");
    }
    assert!(turns >= 15, "{turns} turns");
}

#[test]
fn questions_for_many_streams_are_answered_a_bounded_number_in_a_turn() {
    const STREAMS: u64 = 300;
    const RECEIVERS: u64 = 64;
    let mut stores = Stores::new(1);
    let mut link = stores.domain.publisher("_store.store-0").expect("a publisher");
    assert!(link.wait_for_subscribers(1, TIMEOUT));
    for source in 0..STREAMS {
        let open = StoreFrame::Open { ballot: Ballot { epoch: 1, session: 1 } };
        let mut bytes = Vec::new();
        open.write(StoreAddress { client: 1, source, topic: "orders" }, &mut bytes);
        link.try_send(&bytes).expect("room");
        stores.poll();
    }
    let client = |number: u64| 0x100 + number;
    let mut replies: Vec<Subscriber> = (0..RECEIVERS)
        .map(|number| {
            let topic = format!("_store.store-0.{:016x}", client(number));
            stores.domain.subscriber(&[&topic]).expect("a subscriber")
        })
        .collect();
    for (number, replies) in (0..RECEIVERS).zip(&mut replies) {
        open_link(&mut link, client(number), replies, &mut stores);
    }
    for receiver in 0..RECEIVERS {
        let attach = StoreFrame::Attach { receiver, token: 1, since_unix_ns: 0, until_unix_ns: 0 };
        let mut bytes = Vec::new();
        attach.write(
            StoreAddress { client: client(receiver), source: 0, topic: "orders" },
            &mut bytes,
        );
        link.try_send(&bytes).expect("room");
    }
    let (mut turns, mut answers, start) = (Vec::new(), 0, Instant::now());
    while answers < RECEIVERS {
        assert!(start.elapsed() < TIMEOUT, "{answers} answers in {} turns", turns.len());
        stores.poll();
        let mut turn = Turn::default();
        replies.iter_mut().for_each(|it| read(it, &mut turn));
        turns.push(turn.bytes);
        answers += turn.lists;
    }
    let (most, all) = (turns.iter().max().copied().unwrap_or_default(), turns.iter().sum());
    assert!(most < TURN_BYTES && TURN_BYTES < all, "{most} of {all} bytes in a turn");
}
