//! Publishers and subscribers with filters, over each transport.

use crate::stage::{Stage, until};
use lanecast::{Context, Publish, Subscribe};
use lanecast_content::{ContentSettings, Event, Publisher, Subscriber};
use lanecast_filter::message_type::MessageType;
use lanecast_market::{Day, MarketEvent};

fn settings() -> ContentSettings {
    ContentSettings::new(MessageType::Fix)
}

fn subscriber(context: &Context, filter: &str) -> Subscriber<Context> {
    Subscriber::new(context, "market", filter, &settings()).expect("a subscriber")
}

/// Polls once and appends the messages to `messages`.
fn read(subscriber: &mut Subscriber<Context>, messages: &mut Vec<Vec<u8>>) {
    subscriber.poll(64, |event| match event {
        Event::Message(message) => messages.push(message.bytes().to_vec()),
        Event::Lost(gap) => panic!("{gap:?}"),
        Event::FilterLost(stream) => panic!("{stream} has forgotten this subscriber"),
        _ => {}
    });
}

/// Polls both sides until all filters are active.
fn settle(publisher: &mut Publisher<Context>, subscribers: &mut [Subscriber<Context>]) {
    until("all filters are in force", || {
        publisher.poll_subscribers();
        let mut early = Vec::new();
        subscribers.iter_mut().for_each(|subscriber| read(subscriber, &mut early));
        assert!(early.is_empty());
        subscribers.iter().all(|subscriber| subscriber.active_publishers() == 1)
    });
}

/// Each subscriber receives exactly its matching messages, in order.
fn all_matching_messages_arrive(stage: &Stage) {
    let mut day = Day::new(20_000);
    let symbol = day.symbol(0).to_owned();
    let quotes = format!("/35 = 'S' and /55 = '{symbol}'");
    let filters = [&*quotes, "/35 = 'D' and /38 >= 5000", "/150 = 'F'", &*quotes, "/35 = 'none'"];
    let mut publisher = Publisher::new(&stage.publishers, "market", settings()).expect("one");
    let mut subscribers = filters.map(|filter| subscriber(&stage.subscribers, filter));
    settle(&mut publisher, &mut subscribers);
    assert_eq!(publisher.filters(), 4);
    let (mut wanted, mut came) = (vec![Vec::new(); 5], vec![Vec::new(); 5]);
    let mut published = 0;
    while let Some(step) = day.advance() {
        let message = day.message();
        let is_quote = matches!(step.event, MarketEvent::Quote(quote) if quote.symbol == 0);
        let is_large = matches!(step.event, MarketEvent::New(order) if order.quantity >= 5_000);
        let is_trade = message.windows(7).any(|part| part == b"\x01150=F\x01");
        for (holds, wanted) in [is_quote, is_large, is_trade, is_quote].into_iter().zip(&mut wanted)
        {
            if holds {
                wanted.push(message.to_vec());
            }
        }
        let matches = usize::from(is_quote) + usize::from(is_large) + usize::from(is_trade);
        until("there is room", || {
            let result = publisher.try_publish(message);
            if result.is_err() {
                subscribers.iter_mut().zip(&mut came).for_each(|(s, came)| read(s, came));
            }
            assert!(result.as_ref().is_err() || result == Ok(matches), "{result:?}");
            result.is_ok()
        });
        published += usize::from(matches > 0);
    }
    assert!(published > 1_000 && published < 10_000, "{published}");
    until("all has come", || {
        publisher.poll_subscribers();
        subscribers.iter_mut().zip(&mut came).for_each(|(s, came)| read(s, came));
        came.iter().zip(&wanted).all(|(came, wanted)| came.len() >= wanted.len())
    });
    assert!(came == wanted);
    assert_eq!(
        publisher.malformed_frames()
            + subscribers.iter().map(Subscriber::malformed_frames).sum::<u64>(),
        0
    );
}

/// Subscribers come and go; unused filters are removed and their marks reused.
fn departed_subscribers_are_removed(stage: &Stage) {
    let mut publisher = Publisher::new(&stage.publishers, "market", settings()).expect("one");
    let message = |number: u32| format!("35=D\u{1}38={number}\u{1}");
    for round in 0..5 {
        let mut subscribers = vec![
            subscriber(&stage.subscribers, &format!("/38 = {round}")),
            subscriber(&stage.subscribers, "/38 >= 3"),
            subscriber(&stage.subscribers, "/38 >= 3"),
        ];
        settle(&mut publisher, &mut subscribers);
        assert_eq!(publisher.filters(), 2);
        drop(subscribers.pop());
        publisher.publish(message(round).as_bytes()).expect("room");
        publisher.publish(message(3).as_bytes()).expect("room");
        for (subscriber, count) in subscribers.iter_mut().zip([1, 1]) {
            let mut came = Vec::new();
            until("a message has come", || {
                publisher.poll_subscribers();
                read(subscriber, &mut came);
                came.len() >= count
            });
            assert!(came.contains(&message(3).into_bytes()) || round != 3);
        }
        drop(subscribers);
        until("they are forgotten", || {
            publisher.poll_subscribers();
            publisher.filters() == 0
        });
        assert_eq!(publisher.publish(message(3).as_bytes()), Ok(0));
        assert_eq!(publisher.publish(b"nobody reads this"), Ok(0));
    }
}

/// Subscribers start first; publishers join, leave, and join again.
fn publishers_may_come_later(stage: &Stage) {
    let mut subscribers = ["/38 = 1", "/38 = 2"].map(|text| subscriber(&stage.subscribers, text));
    for _ in 0..3 {
        let mut publisher = Publisher::new(&stage.publishers, "market", settings()).expect("one");
        settle(&mut publisher, &mut subscribers);
        assert_eq!(publisher.publish(b"38=1\x01"), Ok(1));
        assert_eq!(publisher.publish(b"38=3\x01"), Ok(0));
        assert_eq!(publisher.publish(b"38=2\x01"), Ok(1));
        for (number, subscriber) in (1..).zip(&mut subscribers) {
            let mut came = Vec::new();
            until("its message has come", || {
                read(subscriber, &mut came);
                !came.is_empty()
            });
            assert_eq!(came, [format!("38={number}\u{1}").into_bytes()]);
        }
        drop(publisher);
        until("the publisher is gone", || {
            subscribers.iter_mut().for_each(|subscriber| read(subscriber, &mut Vec::new()));
            subscribers.iter().all(|subscriber| subscriber.publishers() == 0)
        });
    }
}

/// Malformed filters, too many filters, and malformed frames are refused.
fn the_hostile_are_refused(stage: &Stage) {
    let few = ContentSettings { filters_max: 2, ..settings() };
    let mut publisher = Publisher::new(&stage.publishers, "market", few).expect("one");
    let mut raw = stage.subscribers.publisher("market?filters").expect("a publisher");
    let mut feed = stage.subscribers.subscriber("market?content").expect("a subscriber");
    until("they have met", || {
        publisher.poll_subscribers();
        feed.poll(64, |_| ());
        raw.subscribers() == 1 && feed.streams() == 1
    });
    let deep = format!("\u{1}\u{5}\0\0{}/38 = 1", "not ".repeat(900));
    let long = format!("\u{1}\u{5}\0\0/38 = '{}'", "x".repeat(5_000));
    for bytes in ["", "x", "\u{1}\u{5}\0\0/38 = ", &deep, &long] {
        raw.send(bytes.as_bytes()).expect("room");
    }
    let mut refusals = 0;
    until("all are answered", || {
        publisher.poll_subscribers();
        feed.poll(64, |event| {
            if let lanecast::Event::Message(message) = event {
                assert_eq!(message.bytes()[..2], [1, 3], "refused");
                refusals += 1;
            }
        });
        publisher.malformed_frames() == 2 && refusals == 3
    });
    let mut subscribers = ["/38 = 1", "/38 = 2"].map(|text| subscriber(&stage.subscribers, text));
    settle(&mut publisher, &mut subscribers);
    let mut third = subscriber(&stage.subscribers, "/38 = 3");
    let mut reason = String::new();
    until("the third is refused", || {
        publisher.poll_subscribers();
        third.poll(64, |event| {
            if let Event::Refused(_, why) = event {
                reason = why.to_owned();
            }
        });
        !reason.is_empty()
    });
    assert_eq!(reason, "there are 2 filters already, which is the most");
    assert!(publisher.publish(b"no tags here").is_err());
    assert_eq!(publisher.publish(b"38=2\x01"), Ok(1));
}

/// A subscriber that was ejected as slow is notified, requests its filter again, and is served. 8.|
/// Many times the subscriber's buffer.
fn who_was_left_behind_is_served_again(stage: &Stage) {
    let mut publisher = Publisher::new(&stage.publishers, "market", settings()).expect("one");
    let mut subscriber = [subscriber(&stage.subscribers, "/38 = 1")];
    settle(&mut publisher, &mut subscriber);
    let [mut subscriber] = subscriber;
    // Many times what is kept for it.
    let long = format!("38=1\u{1}58={}\u{1}", "x".repeat(1_000));
    for _ in 0..1_000 {
        assert_eq!(publisher.publish(long.as_bytes()), Ok(1));
    }
    let mut told = Vec::new();
    let mut hear = |publisher: &mut Publisher<Context>| {
        publisher.poll_subscribers();
        subscriber.poll(64, |event| match event {
            Event::Lost(_) => told.push("lost"),
            Event::FilterLost(_) => told.push("lapsed"),
            Event::FilterActive(_) => told.push("in force"),
            Event::Left(..) => told.push("left"),
            Event::Message(message) if message.bytes() == b"38=1\x01" => told.push("short"),
            Event::Message(_) if told.last() == Some(&"lapsed") => panic!("it is not in force"),
            _ => {}
        });
        if told.last() == Some(&"left") {
            subscriber.feed().rejoin();
        }
        told.clone()
    };
    until("it is served again", || hear(&mut publisher).ends_with(&["in force"]));
    assert_eq!(publisher.publish(b"38=1\x01"), Ok(1));
    until("it hears what follows", || hear(&mut publisher).ends_with(&["short"]));
    assert_eq!(told, ["lost", "lapsed", "left", "in force", "short"]);
}

#[test]
fn publishers_eject_stalled_subscribers() {
    for transports in ["threads", "shm"] {
        who_was_left_behind_is_served_again(&Stage::with(
            transports,
            &[("shm.slow_consumer", "10ms")],
        ));
    }
}

#[test]
fn malformed_filters_are_refused_at_once() {
    let stage = Stage::new("shm");
    let refusal = |filter: &str| {
        let subscriber = Subscriber::new(&stage.subscribers, "market", filter, &settings());
        subscriber.expect_err("no filter").to_string()
    };
    assert!(refusal("/38 =").starts_with("bad filter: "));
    assert!(refusal("/52 < unix_timestamp()").contains("depends on the time"));
}

macro_rules! over_each_transport {
    ($($transports:ident: $name:literal,)*) => {
        $(mod $transports {
            use super::Stage;

            #[test]
            fn all_matching_messages_arrive() {
                super::all_matching_messages_arrive(&Stage::new($name));
            }

            #[test]
            fn departed_subscribers_are_removed() {
                super::departed_subscribers_are_removed(&Stage::new($name));
            }

            #[test]
            fn publishers_may_come_later() {
                super::publishers_may_come_later(&Stage::new($name));
            }

            #[test]
            fn the_hostile_are_refused() {
                super::the_hostile_are_refused(&Stage::new($name));
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
