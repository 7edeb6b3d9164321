//! Stores with limits: the disk they use, and what late subscribers are told.

use crate::some_stores::{Stores, TIMEOUT, send, until, until_stable};
use lanecast_shm::Domain;
use lanecast_store::{
    DurableOptions, DurableSubscriber, Pacing, PersistentOptions, PersistentPublisher,
    ReceiverEvent, SourceEvent, StoreOptions,
};
use std::time::Instant;

const SEGMENT: u64 = 64 << 10;
const LIMIT: u64 = 10 * SEGMENT;

fn options() -> StoreOptions {
    let mut options = StoreOptions::default();
    options.journal.segment_bytes = SEGMENT;
    options.retention.bytes = Some(LIMIT);
    options.retention.unconsumed_bytes = 100_000;
    options
}

fn file_bytes(stores: &Stores) -> u64 {
    let files = std::fs::read_dir(stores.path(0).join("journal")).expect("a directory");
    files.map(|file| file.and_then(|it| it.metadata()).map_or(0, |it| it.len())).sum()
}

/// Polls until the subscriber has been told of the message before `end`; returns the first that it
/// was given, and the other events. Messages come in order, and gaps are told.
#[track_caller]
fn read_until(
    stores: &mut Stores,
    publisher: Option<&mut PersistentPublisher<Domain>>,
    subscriber: &mut DurableSubscriber<Domain>,
    end: u64,
) -> (u64, Vec<String>) {
    let mut publisher = publisher;
    let (mut first, mut next, mut others) = (None, 0, Vec::new());
    let deadline = Instant::now() + TIMEOUT;
    while next < end {
        assert!(Instant::now() < deadline, "{next} of {end}, {others:?}");
        stores.poll();
        if let Some(publisher) = &mut publisher {
            publisher.poll(|_| {});
        }
        subscriber.poll(256, |event| match event {
            ReceiverEvent::Message(message) => {
                let sequence = message.sequence();
                assert_eq!(message.bytes(), sequence.to_le_bytes());
                assert!(first.is_none() || sequence == next, "{sequence} where {next} is next");
                first = first.or(Some(sequence));
                next = sequence + 1;
            }
            ReceiverEvent::Lost { source: _, first: lost, count, .. } => {
                next = lost + count;
                others.push(format!("lost {lost}..{next}"));
            }
            other => others.push(format!("{other:?}")),
        });
    }
    (first.unwrap_or(end), others)
}

#[test]
fn a_store_within_its_limit_tells_which_messages_are_lost() {
    let mut stores = Stores::new(0);
    stores.add(options());
    let mut publisher = stores.open(7);
    let open = |stores: &Stores, receiver| {
        let options = DurableOptions::new(stores.groups());
        let opened = DurableSubscriber::open(stores.domain.clone(), "orders", receiver, options);
        opened.expect("a subscriber")
    };
    // A subscriber that is away for long.
    let mut away = open(&stores, 1);
    send(&mut stores, &mut publisher, 100);
    until_stable(&mut stores, &mut publisher);
    read_until(&mut stores, Some(&mut publisher), &mut away, 100);
    until(&mut stores, &mut publisher, "acknowledged", |_, _| {
        away.poll(256, |_| {});
        away.is_acknowledged()
    });
    drop(away);
    for _ in 0..8 {
        send(&mut stores, &mut publisher, 5_000);
        until_stable(&mut stores, &mut publisher);
    }
    // Nearly 3 MB were written.
    until(&mut stores, &mut publisher, "few files", |stores, _| {
        file_bytes(stores) < LIMIT + 5 * SEGMENT
    });
    let count = publisher.next();
    drop(publisher);
    // It starts again from checkpoints, since the journal's beginning is gone.
    drop(stores.servers[0].take());
    stores.start(0);
    let server = stores.servers[0].as_ref().expect("running");
    assert!(server.recovery().checkpoint.is_some(), "{:?}", server.recovery());

    let mut late = open(&stores, 2);
    let (first, _) = read_until(&mut stores, None, &mut late, count);
    assert!(first > count / 2, "{first} of {count}");
    let mut away = open(&stores, 1);
    let (first, others) = read_until(&mut stores, None, &mut away, count);
    assert!(first > count / 2, "{first} of {count}");
    // Retention may go on while it reads: in several parts then, without gaps between them.
    let range = |event: &String| {
        let (from, until) = event.strip_prefix("lost ")?.split_once("..")?;
        Some((from.parse::<u64>().ok()?, until.parse::<u64>().ok()?))
    };
    let lost: Vec<(u64, u64)> = others.iter().filter_map(range).collect();
    let ends = (lost.first().map(|it| it.0), lost.last().map(|it| it.1));
    let is_whole = lost.windows(2).all(|pair| pair[0].1 == pair[1].0);
    assert!(is_whole && ends == (Some(100), Some(first)), "lost 100..{first}: {others:?}");
}

#[test]
fn a_receiver_that_paces_its_publisher_loses_nothing() {
    let mut stores = Stores::new(0);
    let mut options = options();
    options.retention.unconsumed_bytes = 100_000;
    stores.add(options);
    let mut options = PersistentOptions::new(stores.groups());
    (options.settings.pacing, options.settings.flight_messages) = (Pacing::Receivers, 500);
    let open = |topic, source, options: &PersistentOptions| {
        let opened = PersistentPublisher::open(&stores.domain, topic, source, options.clone());
        opened.expect("a publisher")
    };
    let mut publisher = open("orders", 7, &options);
    options.settings.pacing = Pacing::Source;
    let mut other = open("quotes", 8, &options);
    let subscriber = |stores: &Stores| {
        let options = DurableOptions::new(stores.groups());
        let opened = DurableSubscriber::open(stores.domain.clone(), "orders", 1, options);
        opened.expect("a subscriber")
    };
    let mut away = subscriber(&stores);
    send(&mut stores, &mut publisher, 10);
    read_until(&mut stores, Some(&mut publisher), &mut away, 10);
    until(&mut stores, &mut publisher, "acknowledged", |_, _| {
        away.poll(256, |_| {});
        away.is_acknowledged()
    });
    drop(away);
    // The publisher stops when the store holds as much as it may.
    let mut events = Vec::new();
    let mut is_full = false;
    let deadline = Instant::now() + TIMEOUT;
    while !is_full {
        assert!(Instant::now() < deadline, "it never stops: {}", publisher.next());
        let _ = publisher.try_send(&publisher.next().to_le_bytes());
        publisher.poll(|event| {
            is_full |= matches!(event, SourceEvent::FlightSize { is_exceeded: true, .. })
                && stores.next(7)[0].is_some_and(|next| next > 1_000);
            events.push(event);
        });
        stores.poll();
    }
    let held = stores.next(7)[0].expect("a stream");
    assert!((1_000..2_000).contains(&held), "{held}");
    // Several turns of the journal.
    for _ in 0..10 {
        send(&mut stores, &mut other, 3_000);
        until_stable(&mut stores, &mut other);
        publisher.poll(|event| events.push(event));
    }
    let end = publisher.next();
    assert!(end > held, "the last ones are not stable");
    let mut back = subscriber(&stores);
    let (first, others) = read_until(&mut stores, Some(&mut publisher), &mut back, end);
    assert!(first <= 10 && !others.iter().any(|it| it.starts_with("lost")), "{others:?}");
    until_stable(&mut stores, &mut publisher);
    let is_forced = |it: &SourceEvent| matches!(it, SourceEvent::Reclaimed { is_forced: true, .. });
    assert!(!events.iter().any(is_forced), "{events:?}");
}
