//! Runs of subscribers with filters, over each transport.

use crate::stage::{Stage, until};
use lanecast::{Event, FilteredSubscriber, Message, Publish, Run, Subscribe};

const COUNT: u64 = 200;

/// One event in words, with the message's text.
fn words(event: &Event<'_>) -> String {
    match event {
        Event::Message(message) => text(message),
        Event::Joined(stream) => format!("joined {}", stream.topic),
        Event::FilterActive(_) => "active".to_owned(),
        Event::Left(..) => "left".to_owned(),
        other => format!("{other:?}"),
    }
}

fn text(message: &Message<'_>) -> String {
    String::from_utf8(message.bytes().to_vec()).expect("text")
}

/// Takes a run in one of several ways, and notes the events that it yielded.
fn take(subscriber: &mut FilteredSubscriber, round: usize, noted: &mut Vec<String>) {
    let before = noted.len();
    match round % 6 {
        0 => drop(subscriber.take(50)),
        1 => std::mem::forget(subscriber.take(50)),
        2 => {
            let run = subscriber.take(50);
            let mut forgotten = run.iter();
            forgotten.by_ref().for_each(drop);
            std::mem::forget(forgotten);
            noted.extend(run.iter().take(3).map(|event| words(&event)));
        }
        3 => {
            let run = subscriber.take(9);
            let held: Vec<Event<'_>> = run.iter().collect();
            let again: Vec<String> = run.iter().map(|event| words(&event)).collect();
            noted.extend(held.iter().map(words));
            assert_eq!(noted[before..], again, "an iterator starts again");
        }
        4 => {
            let run = subscriber.take(64);
            noted.extend((&run).into_iter().map(|event| words(&event)));
        }
        _ => {
            subscriber.poll(5, |event| noted.push(words(&event)));
        }
    }
    subscriber.wait(noted.len() - before);
}

/// Every matching message and every other event comes once and in order, by runs as by polls, of
/// publishers that serve filters and of others.
fn runs_have_every_event_once(stage: &Stage, serves_filters: bool) {
    let mut subscriber =
        stage.subscribers.topic("market").filter("/38 >= 5").subscriber().expect("a subscriber");
    let mut filterable = serves_filters
        .then(|| stage.publishers.topic("market").filterable().publisher().expect("a publisher"));
    let mut plain =
        (!serves_filters).then(|| stage.publishers.publisher("market").expect("a publisher"));
    let (mut round, mut noted) = (0, Vec::new());
    until("the filter is active", || {
        if let Some(publisher) = &mut filterable {
            publisher.serve_filters();
        }
        round += 1;
        take(&mut subscriber, round, &mut noted);
        noted.len() >= 2
    });
    assert_eq!(noted, ["joined market", "active"]);
    for number in 0..COUNT {
        let body = format!("38={}\u{1}58={number}\u{1}", number % 8);
        match (&mut filterable, &mut plain) {
            (Some(publisher), _) => publisher.send(body.as_bytes()).expect("room"),
            (_, Some(publisher)) => publisher.send(body.as_bytes()).expect("room"),
            _ => unreachable!("one of the two"),
        }
        // Another subscriber's request and its answer come between the messages.
        if serves_filters && number % 50 == 20 {
            let other = format!("/38 = {number}");
            let mut other =
                stage.subscribers.topic("market").filter(&other).subscriber().expect("another");
            until("the other filter is active", || {
                filterable.as_mut().expect("it serves").serve_filters();
                other.poll(64, |_| {});
                round += 1;
                take(&mut subscriber, round, &mut noted);
                other.active_streams() == 1
            });
        }
    }
    let matching = (0..COUNT).filter(|number| number % 8 >= 5);
    let wanted = matching.map(|number| format!("38={}\u{1}58={number}\u{1}", number % 8));
    let mut wanted: Vec<String> = wanted.collect();
    until("all messages", || {
        round += 1;
        take(&mut subscriber, round, &mut noted);
        noted.len() >= wanted.len() + 2
    });
    assert_eq!(subscriber.streams(), 1);
    drop((filterable, plain));
    until("the end", || {
        round += 1;
        take(&mut subscriber, round, &mut noted);
        subscriber.streams() == 0
    });
    wanted.splice(0..0, ["joined market", "active"].map(str::to_owned));
    wanted.push("left".to_owned());
    assert_eq!(noted, wanted);
    assert!(subscriber.take(64).iter().next().is_none());
}

macro_rules! over_each_transport {
    ($($transports:ident: $name:literal,)*) => {
        $(mod $transports {
            use super::Stage;

            #[test]
            fn runs_of_a_publisher_that_serves_filters() {
                super::runs_have_every_event_once(&Stage::new($name), true);
            }

            #[test]
            fn runs_that_are_filtered_here() {
                super::runs_have_every_event_once(&Stage::new($name), false);
            }
        })*
    };
}

over_each_transport! {
    threads: "threads",
    shm: "shm",
    rm: "rm",
    ru: "ru",
    tcp: "tcp",
    shm_and_rm: "shm+rm",
}
