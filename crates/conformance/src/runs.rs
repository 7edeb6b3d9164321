//! The rules of [`Run`]: its events stay valid until its drop, which alone moves the cursor.

use crate::record::{fill, gather, until};
use crate::{Body, Entry, Record};
use lanecast_transport::{
    BackPressureReason, ClaimError, CloseReason, Event, Message, Publish, Run, Subscribe, Transport,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

/// Takes until `done`; each run's events are held together before they are recorded.
fn listen_by_runs(
    record: &mut Record,
    subscriber: &mut impl Subscribe,
    limit: usize,
    done: impl Fn(&Record) -> bool,
) {
    until("the events of runs", || {
        let run = subscriber.take(limit);
        let events: Vec<Event<'_>> = run.iter().collect();
        assert!(events.len() <= limit, "no more than asked for");
        events.iter().for_each(|event| record.note(*event));
        let work = events.len();
        drop(run);
        subscriber.wait(work);
        done(record)
    });
}

fn messages<'r, R: Run>(run: &'r R) -> Vec<Message<'r>> {
    let messages = run.iter().filter_map(|event| match event {
        Event::Message(message) => Some(message),
        _ => None,
    });
    messages.collect()
}

/// A pair that have met: the subscriber has had its joined event.
fn pair<C: Transport>(transport: &C) -> (C::Publisher, C::Subscriber) {
    let mut subscriber = transport.subscriber(&["a"]).expect("a subscriber");
    let mut publisher = transport.publisher("a").expect("a publisher");
    gather(&mut publisher, 1);
    let mut record = Record::new();
    listen_by_runs(&mut record, &mut subscriber, 64, |record| !record.joined().is_empty());
    (publisher, subscriber)
}

/// Lives, messages and their order are the same by runs as by polls.
pub fn runs_carry_every_event_in_order<C: Transport>(transport: &C) {
    for (limit, is_early) in [1, 7, usize::MAX].into_iter().flat_map(|it| [(it, true), (it, false)])
    {
        let mut subscriber = transport.subscriber(&["a", "b"]).expect("a subscriber");
        let mut publisher = transport.publisher("a").expect("a publisher");
        // Messages that are sent on a new topic before a subscriber has joined it may be missed:
        // the writer waits for that.
        let early = is_early.then(|| publisher.add_topic("b").expect("a topic"));
        gather(&mut publisher, 1);
        let longest = publisher.longest_message();
        let (all_joined, has_joined) = channel();
        let writer = thread::spawn(move || {
            let topic = early.unwrap_or_else(|| publisher.add_topic("b").expect("a topic"));
            has_joined.recv_timeout(crate::PATIENCE).expect("both topics are joined");
            for number in 0..300u64 {
                let body = Body::new(number, longest.min(4_000)).bytes();
                publisher.send(&body).expect("room");
                publisher.send_on(topic, &body).expect("room");
            }
            let report = publisher.close(crate::PATIENCE);
            assert!(report.is_complete(), "limit {limit}, early {is_early}: {report}");
            longest
        });
        let mut record = Record::new();
        listen_by_runs(&mut record, &mut subscriber, limit, |record| record.joined().len() == 2);
        all_joined.send(()).expect("the writer waits");
        listen_by_runs(&mut record, &mut subscriber, limit, |record| record.left().len() == 2);
        let longest = writer.join().expect("the writer").min(4_000);
        record.check_lives();
        if transport.keeps_order_across_topics() {
            let pairs = record.messages();
            assert!(pairs.chunks(2).all(|pair| pair[0] == pair[1]), "one order for both topics");
        }
        for topic in ["a", "b"] {
            let bodies = record.of_topic(topic);
            assert_eq!(bodies.len(), 300, "all of {topic}");
            let numbered = (0..300).zip(bodies);
            numbered.for_each(|(number, bytes)| Body::new(number, longest).check(bytes));
        }
        assert_eq!(subscriber.streams(), 0);
    }
}

/// Held messages stay what was sent while the publisher fills its window and is refused; once the
/// run is dropped and the rest is read, there is room again.
pub fn a_held_run_stays_whole_and_presses_back<C: Transport>(transport: &C) {
    let (mut publisher, mut subscriber) = pair(transport);
    let (mut next, mut sent, mut rounds) = (0, 0, 0);
    until("five runs with messages", || {
        // The publisher may learn late that all was read.
        sent += fill(&mut publisher, sent, 300);
        let run = subscriber.take(40);
        let held = messages(&run);
        if held.is_empty() {
            drop(run);
            subscriber.wait(0);
            return false;
        }
        rounds += 1;
        sent += fill(&mut publisher, sent, 300);
        // The network may take what is on its way: in the end the window is full for good.
        for _ in 0..50 {
            sent += fill(&mut publisher, sent, 300);
            thread::yield_now();
        }
        let refused = publisher.try_send(&Body::of_length(sent, 300).bytes());
        match refused {
            Ok(()) => sent += 1,
            Err(ClaimError::BackPressured(BackPressureReason::WindowFull)) => {}
            Err(other) => panic!("no back-pressure: {other}"),
        }
        for message in held {
            Body::of_length(next, 300).check(message.bytes());
            assert!(message.is_intact());
            next += 1;
        }
        rounds == 5
    });
    let mut record = Record::new();
    listen_by_runs(&mut record, &mut subscriber, 64, |record| {
        record.message_count() as u64 >= sent - next
    });
    let rest = record.messages();
    (next..sent).zip(&rest).for_each(|(number, bytes)| Body::of_length(number, 300).check(bytes));
    assert_eq!(rest.len() as u64, sent - next, "each once");
    publisher.send(b"room again").expect("room");
}

/// Events that were not yielded come again: of a run that was dropped early, untouched or
/// forgotten, with the next take or poll.
pub fn only_yielded_events_are_read<C: Transport>(transport: &C) {
    let (mut publisher, mut subscriber) = pair(transport);
    (0..300u64).for_each(|number| publisher.send(&number.to_le_bytes()).expect("room"));
    let mut read: Vec<Vec<u8>> = Vec::new();
    let mut round = 0;
    until("all messages", || {
        round += 1;
        match round % 5 {
            0 => drop(subscriber.take(50)),
            1 => std::mem::forget(subscriber.take(50)),
            2 => {
                let run = subscriber.take(50);
                let mut forgotten = run.iter();
                forgotten.by_ref().take(9).for_each(drop);
                std::mem::forget(forgotten);
                let bytes = run.iter().take(3).map(|event| bytes_of(&event));
                read.extend(bytes);
            }
            3 => {
                let run = subscriber.take(5);
                let twice = [(); 2]
                    .map(|()| -> Vec<_> { run.iter().map(|event| bytes_of(&event)).collect() });
                assert_eq!(twice[0], twice[1], "an iterator starts again");
                let [once, _] = twice;
                read.extend(once);
            }
            _ => {
                subscriber.poll(4, |event| read.push(bytes_of(&event)));
            }
        }
        read.len() >= 300
    });
    let expected: Vec<Vec<u8>> = (0..300u64).map(|number| number.to_le_bytes().to_vec()).collect();
    assert_eq!(read, expected);
    assert!(subscriber.take(0).iter().next().is_none());
}

fn bytes_of(event: &Event<'_>) -> Vec<u8> {
    match event {
        Event::Message(message) => message.bytes().to_vec(),
        other => panic!("only messages were sent: {other:?}"),
    }
}

/// Events that were yielded before a panic count as read; the others come again.
pub fn a_panic_in_a_run_keeps_the_rest<C: Transport>(transport: &C) {
    let (mut publisher, mut subscriber) = pair(transport);
    (0..60u64).for_each(|number| publisher.send(&number.to_le_bytes()).expect("room"));
    let (mut record, mut panics) = (Record::new(), 0);
    until("all messages", || {
        let take = || {
            let run = subscriber.take(64);
            for event in run.iter() {
                record.note(event);
                let fatal = matches!(event, Event::Message(message) if message.bytes()[0] % 7 == 3);
                // Quietly: without the hook's words and backtrace.
                if fatal {
                    std::panic::resume_unwind(Box::new(()));
                }
            }
        };
        panics += usize::from(catch_unwind(AssertUnwindSafe(take)).is_err());
        record.message_count() >= 60
    });
    assert_eq!(panics, 9);
    let expected: Vec<[u8; 8]> = (0..60u64).map(u64::to_le_bytes).collect();
    assert_eq!(record.messages(), expected);
    record.exhaust(&mut subscriber);
    assert_eq!(record.message_count(), 60, "each once");
}

/// Events of a stream's life in a dropped run come again, with take and poll alike.
pub fn a_dropped_run_keeps_joined_and_left<C: Transport>(transport: &C) {
    let mut subscriber = transport.subscriber(&["a"]).expect("a subscriber");
    let mut publisher = transport.publisher("a").expect("a publisher");
    gather(&mut publisher, 1);
    publisher.send(b"only").expect("room");
    let _ = publisher.close(Duration::ZERO);
    let mut record = Record::new();
    for limit in [1, 64] {
        until("the next event", || {
            drop(subscriber.take(limit));
            std::mem::forget(subscriber.take(limit));
            subscriber.wait(0);
            let before = record.entries().len();
            if limit == 1 {
                subscriber.poll(limit, |event| record.note(event));
            } else {
                let run = subscriber.take(limit);
                run.iter().for_each(|event| record.note(event));
            }
            record.entries().len() > before && (limit == 1 || !record.left().is_empty())
        });
    }
    record.check_lives();
    assert!(
        matches!(
            record.entries(),
            [Entry::Joined(_), Entry::Message { .. }, Entry::Left(_, CloseReason::Closed)]
        ),
        "{:?}",
        record.entries()
    );
    assert_eq!(subscriber.streams(), 0);
}
