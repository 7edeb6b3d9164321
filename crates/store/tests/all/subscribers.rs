//! Subscribers that get what they missed.

use crate::some_stores::{Stores, TIMEOUT, send, until, until_stable};
use lanecast_shm::Domain;
use lanecast_store::{
    Acknowledgement, Detachment, DurableOptions, DurableSubscriber, Pacing, PersistentOptions,
    PersistentPublisher, PersistentSendError, ReceiverEnd, ReceiverEvent, ReceiverStart,
    SendRefusal, SourceEvent,
};
use lanecast_transport::{Publish, Transport};
use lanecast_wire::store::{Ballot, StoreAddress, StoreFrame};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// A subscriber, and what it was handed out.
struct Reader {
    subscriber: DurableSubscriber<Domain>,
    /// Sequences of the streams, checked against the bodies.
    sequences: Vec<(u64, u64)>,
    recovered: usize,
    others: Vec<String>,
}

impl Reader {
    fn open(stores: &Stores, receiver: u64) -> Self {
        Self::with(stores, receiver, |_| {})
    }

    fn with(stores: &Stores, receiver: u64, change: impl FnOnce(&mut DurableOptions)) -> Self {
        let mut options = DurableOptions::new(stores.groups());
        change(&mut options);
        let domain = stores.domain.clone();
        let subscriber = DurableSubscriber::open(domain, "orders", receiver, options);
        let subscriber = subscriber.expect("a subscriber");
        Self { subscriber, sequences: Vec::new(), recovered: 0, others: Vec::new() }
    }

    fn poll(&mut self) {
        let Self { sequences, recovered, others, .. } = self;
        self.subscriber.poll(64, |event| match event {
            ReceiverEvent::Message(message) => {
                let (source, sequence) = (message.source(), message.sequence());
                assert_eq!(message.bytes(), sequence.to_le_bytes(), "the body of its sequence");
                sequences.push((source, sequence));
                *recovered += usize::from(message.is_recovered());
            }
            other => others.push(format!("{other:?}")),
        });
    }

    fn has(&self, words: &str) -> bool {
        self.others.iter().any(|event| event.contains(words))
    }
}

/// Polls all until the reader `is_done`.
#[track_caller]
fn until_read(
    stores: &mut Stores,
    mut publisher: Option<&mut PersistentPublisher<Domain>>,
    reader: &mut Reader,
    what: &str,
    is_done: impl Fn(&Reader) -> bool,
) {
    let deadline = Instant::now() + TIMEOUT;
    while !is_done(reader) {
        let (count, others) = (reader.sequences.len(), &reader.others);
        assert!(Instant::now() < deadline, "{what}: {count} messages, {others:?}");
        if let Some(publisher) = &mut publisher {
            publisher.poll(|_| {});
        }
        reader.poll();
        stores.poll();
        std::thread::yield_now();
    }
}

const fn explicit(options: &mut DurableOptions) {
    options.acknowledgement = Acknowledgement::Explicit;
}

fn sequences(source: u64, range: std::ops::Range<u64>) -> Vec<(u64, u64)> {
    range.map(|sequence| (source, sequence)).collect()
}

#[test]
fn a_subscriber_gets_what_it_missed_once_and_then_what_is_live() {
    let mut stores = Stores::new(3);
    let mut publisher = stores.open(7);
    send(&mut stores, &mut publisher, 5_000);
    until_stable(&mut stores, &mut publisher);

    let mut reader = Reader::open(&stores, 1);
    until_read(&mut stores, Some(&mut publisher), &mut reader, "the past", |it| {
        it.sequences.len() == 5_000 && it.has("Recovered")
    });
    assert_eq!(reader.recovered, 5_000);
    for _ in 0..10 {
        send(&mut stores, &mut publisher, 10);
        reader.poll();
    }
    until_read(&mut stores, Some(&mut publisher), &mut reader, "live", |it| {
        it.sequences.len() == 5_100
    });
    assert!(reader.recovered < 5_100, "{} came from stores", reader.recovered);
    until_read(&mut stores, Some(&mut publisher), &mut reader, "acknowledged", |it| {
        it.has("Acknowledged { source: 7, next: 5100 }")
    });
    assert_eq!(reader.sequences, sequences(7, 0..5_100));
    drop(reader);

    send(&mut stores, &mut publisher, 300);
    until_stable(&mut stores, &mut publisher);
    let mut reader = Reader::open(&stores, 1);
    until_read(&mut stores, Some(&mut publisher), &mut reader, "the missed", |it| {
        it.sequences.len() == 300
    });
    assert_eq!(reader.sequences, sequences(7, 5_100..5_400));
    assert!(reader.has("Joined { source: 7, next: 5100, is_resumed: true }"));
}

#[test]
fn messages_of_a_dead_publisher_are_found_and_its_next_run_goes_on() {
    let mut stores = Stores::new(1);
    let mut publisher = stores.open(7);
    send(&mut stores, &mut publisher, 100);
    until_stable(&mut stores, &mut publisher);
    drop(publisher);

    let mut reader = Reader::open(&stores, 1);
    until_read(&mut stores, None, &mut reader, "the past", |it| it.sequences.len() == 100);
    let mut publisher = stores.open(7);
    send(&mut stores, &mut publisher, 50);
    until_read(&mut stores, Some(&mut publisher), &mut reader, "its next run", |it| {
        it.sequences.len() == 150
    });
    let mut other = stores.open(8);
    send(&mut stores, &mut other, 20);
    until_read(&mut stores, Some(&mut other), &mut reader, "another publisher", |it| {
        it.sequences.len() == 170
    });
    assert_eq!(reader.sequences, [sequences(7, 0..150), sequences(8, 0..20)].concat());
}

#[test]
fn a_program_says_itself_what_it_has_consumed() {
    let mut stores = Stores::new(1);
    let mut publisher = stores.open(7);
    send(&mut stores, &mut publisher, 100);
    until_stable(&mut stores, &mut publisher);
    for round in 0..2 {
        let mut reader = Reader::with(&stores, 1, explicit);
        until_read(&mut stores, None, &mut reader, "all", |it| it.sequences.len() == 100);
        assert_eq!(reader.sequences, sequences(7, 0..100), "round {round}: nothing was consumed");
    }
    let mut reader = Reader::with(&stores, 1, explicit);
    until_read(&mut stores, None, &mut reader, "all", |it| it.sequences.len() == 100);
    reader.subscriber.acknowledge(7, 39);
    until_read(&mut stores, None, &mut reader, "acknowledged", |it| it.has("next: 40 }"));
    drop(reader);
    let mut reader = Reader::open(&stores, 1);
    until_read(&mut stores, None, &mut reader, "the rest", |it| it.sequences.len() == 60);
    assert_eq!(reader.sequences, sequences(7, 40..100));

    // Another id has consumed nothing; one that begins at the end wants nothing of the past.
    let mut new = Reader::with(&stores, 2, |options| options.settings.start = ReceiverStart::End);
    until_read(&mut stores, None, &mut new, "begun", |it| it.has("Joined"));
    send(&mut stores, &mut publisher, 5);
    until_read(&mut stores, Some(&mut publisher), &mut new, "live", |it| it.sequences.len() == 5);
    assert_eq!(new.sequences, sequences(7, 100..105));
}

/// A handler that panics, in a subscriber that is dropped then, stands for a program that dies.
#[test]
fn messages_that_are_acknowledged_on_reception_do_not_come_again() {
    for (acknowledgement, is_repeated) in
        [(Acknowledgement::OnReception, false), (Acknowledgement::OnReturn, true)]
    {
        let mut stores = Stores::new(1);
        let mut publisher = stores.open(7);
        let change = |options: &mut DurableOptions| options.acknowledgement = acknowledgement;
        let mut reader = Reader::with(&stores, 99, change);
        // Registered, and known to the store: what it consumes is reported at a later poll.
        send(&mut stores, &mut publisher, 5);
        let publisher_of = Some(&mut publisher);
        until_read(&mut stores, publisher_of, &mut reader, "five messages", |reader| {
            reader.sequences.len() == 5 && reader.subscriber.is_acknowledged()
        });
        send(&mut stores, &mut publisher, 5);
        let (mut last, deadline) = (None, Instant::now() + TIMEOUT);
        while last.is_none() {
            assert!(Instant::now() < deadline, "no message comes");
            let poll = std::panic::AssertUnwindSafe(|| {
                reader.subscriber.poll(1, |event| {
                    if let ReceiverEvent::Message(message) = event {
                        last = Some(message.sequence());
                        // Without the words and the trace of a panic that is one.
                        std::panic::resume_unwind(Box::new("the program dies"));
                    }
                })
            });
            assert_eq!(std::panic::catch_unwind(poll).is_err(), last.is_some());
            publisher.poll(|_| {});
            stores.poll();
        }
        assert_eq!(last, Some(5));
        drop(reader);
        let mut reader = Reader::with(&stores, 99, change);
        let publisher_of = Some(&mut publisher);
        until_read(&mut stores, publisher_of, &mut reader, "the rest", |reader| {
            reader.sequences.last() == Some(&(7, 9))
        });
        let first = if is_repeated { 5 } else { 6 };
        assert_eq!(reader.sequences, sequences(7, first..10), "{acknowledgement:?}");
    }
}

#[test]
fn receivers_hold_a_publisher_back_until_they_have_consumed() {
    let mut stores = Stores::new(3);
    let mut options = PersistentOptions::new(stores.groups());
    (options.settings.pacing, options.settings.unconsumed_messages) = (Pacing::Receivers, 100);
    let publisher = PersistentPublisher::open(&stores.domain, "orders", 7, options);
    let mut publisher = publisher.expect("a publisher");
    let mut reader = Reader::with(&stores, 1, explicit);
    until_read(&mut stores, Some(&mut publisher), &mut reader, "begun", |it| it.has("Joined"));
    // Its registration has to be known before the publisher goes ahead.
    until_read(&mut stores, Some(&mut publisher), &mut reader, "registered", |it| {
        it.subscriber.is_acknowledged()
    });
    send(&mut stores, &mut publisher, 100);
    until_stable(&mut stores, &mut publisher);
    let refused = publisher.try_send(b"more").expect_err("held back");
    assert!(refused.may_pass() && refused.to_string().contains("not consumed"), "{refused}");
    until_read(&mut stores, Some(&mut publisher), &mut reader, "all", |it| {
        it.sequences.len() == 100
    });
    assert!(publisher.try_send(b"more").is_err(), "read, and not consumed");
    reader.subscriber.acknowledge(7, 29);
    let events = until(&mut stores, &mut publisher, "consumed", |_, publisher| {
        reader.poll();
        publisher.consumed() == 30
    });
    assert!(events.contains(&SourceEvent::Consumed { next: 30 }), "{events:?}");
    send(&mut stores, &mut publisher, 30);
    assert!(publisher.try_send(b"more").is_err(), "held back again");
    // A receiver that is not coming back gives up its place.
    let leaving = std::thread::spawn(move || reader.subscriber.detach(TIMEOUT));
    until(&mut stores, &mut publisher, "left", |_, _| leaving.is_finished());
    assert_eq!(leaving.join().expect("it ends"), Detachment::Everywhere);
    until(&mut stores, &mut publisher, "free", |_, publisher| {
        let body = publisher.next().to_le_bytes();
        publisher.try_send(&body).is_ok()
    });
}

#[test]
fn a_receiver_that_does_not_block_holds_no_publisher_back() {
    let mut stores = Stores::new(1);
    let mut options = PersistentOptions::new(stores.groups());
    (options.settings.pacing, options.settings.unconsumed_messages) = (Pacing::Receivers, 10);
    let publisher = PersistentPublisher::open(&stores.domain, "orders", 7, options);
    let mut publisher = publisher.expect("a publisher");
    let change = |options: &mut DurableOptions| {
        options.acknowledgement = Acknowledgement::Explicit;
        options.settings.is_non_blocking = true;
    };
    let mut slow = Reader::with(&stores, 98, change);
    let mut reader = Reader::open(&stores, 99);
    for reader in [&mut slow, &mut reader] {
        until_read(&mut stores, Some(&mut publisher), reader, "registered", |reader| {
            reader.has("Joined") && reader.subscriber.is_acknowledged()
        });
    }
    // Both get all, and one consumes none of it.
    let deadline = Instant::now() + TIMEOUT;
    while publisher.next() < 100 || reader.sequences.len() < 100 || slow.sequences.len() < 100 {
        assert!(Instant::now() < deadline, "{} are sent", publisher.next());
        if publisher.next() < 100 {
            let _ = publisher.try_send(&publisher.next().to_le_bytes());
        }
        publisher.poll(|_| {});
        reader.poll();
        slow.poll();
        stores.poll();
    }
    drop(slow);
    let mut again = Reader::with(&stores, 98, change);
    until_read(&mut stores, Some(&mut publisher), &mut again, "all again", |reader| {
        reader.sequences.len() == 100
    });
    assert!(again.has("is_resumed: true") && !again.has("Lost"), "{:?}", again.others);
    // The same id holds the publisher back when it says so.
    drop(again);
    let mut blocking = Reader::with(&stores, 98, explicit);
    until_read(&mut stores, Some(&mut publisher), &mut blocking, "registered anew", |reader| {
        reader.has("Joined") && reader.subscriber.is_acknowledged()
    });
    let deadline = Instant::now() + TIMEOUT;
    let is_held = |it| matches!(it, PersistentSendError::Refused(SendRefusal::NotConsumed));
    while !publisher.try_send(b"one too many").is_err_and(is_held) {
        assert!(Instant::now() < deadline, "{} are sent", publisher.next());
        publisher.poll(|_| {});
        stores.poll();
    }
}

#[test]
fn messages_that_no_store_keeps_are_handed_out_too() {
    let mut stores = Stores::new(1);
    let mut reader = Reader::open(&stores, 1);
    let mut plain = stores.domain.publisher("orders").expect("a publisher");
    assert!(plain.wait_for_subscribers(1, TIMEOUT));
    (0..3).for_each(|number: u8| plain.send(&[number]).expect("sent"));
    until_read(&mut stores, None, &mut reader, "all", |it| it.has("number: 2, bytes: [2]"));
    plain.send(&[3]).expect("sent");
    until_read(&mut stores, None, &mut reader, "at once", |it| it.has("number: 3, bytes: [3]"));
}

#[test]
fn a_subscriber_without_stores_says_which_are_silent() {
    let mut stores = Stores::new(3);
    let mut publisher = stores.open(7);
    send(&mut stores, &mut publisher, 10);
    until_stable(&mut stores, &mut publisher);
    stores.stop(1);
    stores.stop(2);
    let mut reader = Reader::open(&stores, 1);
    until_read(&mut stores, Some(&mut publisher), &mut reader, "told", |it| {
        it.has(r#"Waiting { silent: ["store-1", "store-2"] }"#)
    });
    assert_eq!(reader.sequences, []);
    stores.start(2);
    until_read(&mut stores, Some(&mut publisher), &mut reader, "all", |it| {
        it.sequences.len() == 10
    });
}

/// Offers of more bytes than a client's share of the store's memory, and than the transport's
/// window: without the latter in one piece, a receiver would never know all streams.
#[test]
fn a_receiver_of_a_topic_with_thousands_of_streams_begins() {
    const STREAMS: u64 = 10_000;
    let mut stores = Stores::new(1);
    let mut link = stores.domain.publisher("_store.store-0").expect("a publisher");
    assert!(link.wait_for_subscribers(1, TIMEOUT));
    let mut bytes = Vec::new();
    // As publishers that have registered a run and left.
    let mut send = |source: u64, frame: &StoreFrame<'_>, stores: &mut Stores| {
        frame.write(StoreAddress { client: 3, source, topic: "orders" }, &mut bytes);
        let start = Instant::now();
        while link.try_send(&bytes).is_err() {
            assert!(start.elapsed() < TIMEOUT, "no room for frames");
            stores.poll();
        }
    };
    let ballot = Ballot { epoch: 1, session: 3 };
    for source in 0..STREAMS {
        send(source, &StoreFrame::Open { ballot }, &mut stores);
    }
    let deadline = Instant::now() + TIMEOUT;
    let mut reader = Reader::open(&stores, 1);
    let server = |stores: &Stores| stores.servers[0].as_ref().expect("running").streams().count();
    while server(&stores) < STREAMS as usize {
        assert!(Instant::now() < deadline, "{} streams", server(&stores));
        stores.poll();
    }
    until_read(&mut stores, None, &mut reader, "all streams are known", |it| {
        it.subscriber.is_registered()
    });
}

fn unix_ns() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    u64::try_from(now.as_nanos()).expect("before 2554")
}

/// A moment behind all that was written. Clocks may be coarse: a message of the same moment would
/// count as later.
fn later() -> u64 {
    let (written, mut later) = (unix_ns(), unix_ns());
    while later <= written {
        later = unix_ns();
    }
    later
}

#[test]
fn a_range_ends_at_the_stores_by_sequence_and_by_time() {
    let mut stores = Stores::new(3);
    let mut publisher = stores.open(7);
    send(&mut stores, &mut publisher, 100);
    until_stable(&mut stores, &mut publisher);
    until(&mut stores, &mut publisher, "all have all", |stores, _| {
        stores.next(7) == [Some(100); 3]
    });
    let between = later();
    send(&mut stores, &mut publisher, 50);
    until_stable(&mut stores, &mut publisher);
    for round in 0..2_u64 {
        let mut read = |receiver: u64, start: ReceiverStart, end: ReceiverEnd| {
            let mut reader = Reader::with(&stores, receiver, |options| {
                (options.settings.start, options.settings.end) = (start, end);
            });
            let publisher = Some(&mut publisher);
            until_read(&mut stores, publisher, &mut reader, "its end", |it| {
                it.subscriber.has_ended()
            });
            assert!(reader.has("Ended { source: 7"), "{:?}", reader.others);
            reader.sequences
        };
        let ids = 10 * round;
        let oldest = ReceiverStart::Oldest;
        assert_eq!(read(ids + 1, oldest, ReceiverEnd::Sequence(30)), sequences(7, 0..30));
        assert_eq!(read(ids + 2, oldest, ReceiverEnd::Time(between)), sequences(7, 0..100));
        let from = ReceiverStart::Sequence(90);
        assert_eq!(read(ids + 3, from, ReceiverEnd::Time(between)), sequences(7, 90..100));
        let now = later();
        assert_eq!(read(ids + 4, from, ReceiverEnd::Time(now)), sequences(7, 90..150));
        assert_eq!(read(ids + 5, oldest, ReceiverEnd::Time(1)), []);
        let late = ReceiverStart::Time(between);
        assert_eq!(read(ids + 6, late, ReceiverEnd::Sequence(120)), sequences(7, 100..120));
        // The second time from their disks.
        (0..3).for_each(|store| stores.stop(store));
        (0..3).for_each(|store| stores.start(store));
    }
}

/// Copies of messages are as old as the messages, in the journal and in its checkpoints.
#[test]
fn a_time_means_the_same_at_a_store_that_copied_from_another() {
    let mut stores = Stores::new(3);
    let mut publisher = stores.open(7);
    until(&mut stores, &mut publisher, "registered", |_, it| it.is_registered());
    stores.stop(2);
    send(&mut stores, &mut publisher, 100);
    until_stable(&mut stores, &mut publisher);
    let between = later();
    send(&mut stores, &mut publisher, 50);
    until_stable(&mut stores, &mut publisher);
    stores.start(2);
    until(&mut stores, &mut publisher, "all have all", |stores, _| {
        stores.next(7) == [Some(150); 3]
    });
    // The others are not there to say better; a recovery quorum has to answer.
    stores.stop(0);
    drop(publisher);
    for round in 0..2_u64 {
        let mut read = |receiver: u64, start: ReceiverStart, end: ReceiverEnd| {
            let mut reader = Reader::with(&stores, receiver, |options| {
                (options.settings.start, options.settings.end) = (start, end);
            });
            until_read(&mut stores, None, &mut reader, "its end", |it| it.subscriber.has_ended());
            reader.sequences
        };
        let (ids, time) = (10 * round, ReceiverStart::Time(between));
        assert_eq!(read(ids + 1, time, ReceiverEnd::Sequence(150)), sequences(7, 100..150));
        let end = ReceiverEnd::Time(between);
        assert_eq!(read(ids + 2, ReceiverStart::Oldest, end), sequences(7, 0..100));
        // The second time from their disks.
        stores.stop(2);
        stores.start(2);
    }
}

#[test]
fn events_of_a_run_are_consumed_when_it_is_dropped() {
    let mut stores = Stores::new(1);
    let mut publisher = stores.open(7);
    send(&mut stores, &mut publisher, 30);
    until_stable(&mut stores, &mut publisher);
    let options = DurableOptions::new(stores.groups());
    let open = |stores: &Stores| {
        let domain = stores.domain.clone();
        DurableSubscriber::open(domain, "orders", 1, options.clone()).expect("a subscriber")
    };
    let mut subscriber = open(&stores);
    let mut taken = Vec::new();
    let sequence = |event: ReceiverEvent<'_>| match event {
        ReceiverEvent::Message(message) => {
            assert_eq!(message.bytes(), message.sequence().to_le_bytes());
            Some(message.sequence())
        }
        _ => None,
    };
    let take = |subscriber: &mut DurableSubscriber<Domain>, taken: &mut Vec<u64>| {
        let run = subscriber.take(4);
        // Several are held at once; each iterator begins anew.
        let first: Vec<u64> = run.iter().take(2).filter_map(sequence).collect();
        let all: Vec<u64> = run.iter().filter_map(sequence).collect();
        assert!(all.starts_with(&first) && run.iter().count() <= 4, "{all:?}");
        for event in &run {
            if let ReceiverEvent::Acknowledged { next, .. } = event {
                assert!(next <= taken.len() as u64, "{next} of {}", taken.len());
            }
        }
        taken.extend(all);
    };
    until(&mut stores, &mut publisher, "ten messages", |_, _| {
        take(&mut subscriber, &mut taken);
        taken.len() >= 10
    });
    // What no iterator has yielded comes again, with a poll too.
    drop(subscriber.take(4));
    subscriber.poll(1, |event| taken.extend(sequence(event)));
    until(&mut stores, &mut publisher, "all of them", |_, _| {
        take(&mut subscriber, &mut taken);
        taken.len() == 30
    });
    assert_eq!(taken, Vec::from_iter(0..30));
    until(&mut stores, &mut publisher, "acknowledged", |_, _| {
        take(&mut subscriber, &mut taken);
        subscriber.is_acknowledged()
    });
    drop(subscriber);
    let (mut subscriber, mut resumed) = (open(&stores), None);
    until(&mut stores, &mut publisher, "resumed", |_, _| {
        for event in &subscriber.take(64) {
            if let ReceiverEvent::Joined { next, is_resumed, .. } = event {
                resumed = Some((next, is_resumed));
            }
        }
        resumed.is_some()
    });
    assert_eq!(resumed, Some((30, true)));
}

#[test]
fn a_subscriber_begins_with_the_first_message_of_a_time() {
    let mut stores = Stores::new(3);
    let (mut publisher, mut other) = (stores.open(7), stores.open(8));
    send(&mut stores, &mut publisher, 100);
    send(&mut stores, &mut other, 10);
    until_stable(&mut stores, &mut publisher);
    until_stable(&mut stores, &mut other);
    // More streams without a later message than a store looks up at once.
    for source in 20..32 {
        let mut older = stores.open(source);
        send(&mut stores, &mut older, 1);
        until_stable(&mut stores, &mut older);
    }
    until(&mut stores, &mut publisher, "all have all", |stores, _| {
        other.poll(|_| {});
        stores.next(7) == [Some(100); 3] && stores.next(8) == [Some(10); 3]
    });
    let since = later();
    send(&mut stores, &mut publisher, 50);
    until_stable(&mut stores, &mut publisher);
    drop((publisher, other));
    for round in 0..2_u64 {
        let mut read = |receiver: u64, unix_ns: u64, count: usize| {
            let mut reader = Reader::with(&stores, receiver, |options| {
                options.settings.start = ReceiverStart::Time(unix_ns);
            });
            until_read(&mut stores, None, &mut reader, "begun", |it| {
                it.subscriber.is_registered() && it.sequences.len() == count
            });
            reader
        };
        let ids = 10 * round;
        assert_eq!(read(ids + 1, since, 50).sequences, sequences(7, 100..150), "round {round}");
        assert_eq!(read(ids + 2, 1, 172).sequences.len(), 172, "everything is later");
        let late = read(ids + 3, u64::MAX, 0);
        assert!(late.has("Joined { source: 7, next: 150, is_resumed: false }"));
        assert!(late.has("Joined { source: 8, next: 10, is_resumed: false }"));
        // The second time from their disks.
        (0..3).for_each(|store| stores.stop(store));
        (0..3).for_each(|store| stores.start(store));
    }
}
