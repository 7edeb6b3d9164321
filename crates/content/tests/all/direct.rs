//! Publishers and subscribers with filters, over each transport.

use crate::stage::{Stage, until};
use lanecast::{
    Batch, Claim, Context, Event, FilterablePublisher, FilteredSubscriber, Publish, Subscribe,
    TopicId,
};
use lanecast_market::{Day, MarketEvent};
use lanecast_wire::content::ContentFrame;
use zerocopy::little_endian::U64;

fn subscriber(context: &Context, filter: &str) -> FilteredSubscriber {
    context.topic("market").filter(filter).subscriber().expect("a subscriber")
}

fn publisher(context: &Context) -> FilterablePublisher {
    context.topic("market").filterable().publisher().expect("a publisher")
}

/// Polls once and appends the messages to `messages`.
fn read(subscriber: &mut impl Subscribe, messages: &mut Vec<Vec<u8>>) {
    subscriber.poll(64, |event| match event {
        Event::Message(message) => messages.push(message.bytes().to_vec()),
        Event::Lost(gap) => panic!("{gap:?}"),
        Event::FilterInactive(stream) => panic!("{stream} has forgotten this subscriber"),
        _ => {}
    });
}

/// Polls both sides until all filters are active.
fn settle(publisher: &mut FilterablePublisher, subscribers: &mut [FilteredSubscriber]) {
    until("all filters are in force", || {
        publisher.serve_filters();
        let mut early = Vec::new();
        subscribers.iter_mut().for_each(|subscriber| read(subscriber, &mut early));
        assert!(early.is_empty());
        subscribers.iter().all(|subscriber| subscriber.active_streams() == 1)
    });
}

/// Each subscriber receives exactly its matching messages, in order.
fn all_matching_messages_arrive(stage: &Stage) {
    let mut day = Day::new(20_000);
    let symbol = day.symbol(0).to_owned();
    let quotes = format!("/35 = 'S' and /55 = '{symbol}'");
    let filters = [&*quotes, "/35 = 'D' and /38 >= 5000", "/150 = 'F'", &*quotes, "/35 = 'none'"];
    let mut publisher = publisher(&stage.publishers);
    let mut subscribers = filters.map(|filter| subscriber(&stage.subscribers, filter));
    let mut plain = stage.subscribers.subscriber("market").expect("a subscriber");
    let (mut sent, mut plain_came) = (Vec::new(), Vec::new());
    settle(&mut publisher, &mut subscribers);
    until("the plain one is there", || {
        plain.poll(64, |event| {
            if let Event::Joined(stream) = event {
                assert_eq!(stream.topic, "market");
            }
        });
        publisher.subscribers() == filters.len() + 1 && plain.streams() == 1
    });
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
        let matches = is_quote || is_large || is_trade;
        sent.push(message.to_vec());
        until("there is room", || {
            let result = publisher.try_send(message);
            if result.is_err() {
                subscribers.iter_mut().zip(&mut came).for_each(|(s, came)| read(s, came));
                read(&mut plain, &mut plain_came);
            }
            result.is_ok()
        });
        published += usize::from(matches);
    }
    assert!(published > 1_000 && published < 10_000, "{published}");
    until("all has come", || {
        publisher.serve_filters();
        subscribers.iter_mut().zip(&mut came).for_each(|(s, came)| read(s, came));
        read(&mut plain, &mut plain_came);
        came.iter().zip(&wanted).all(|(came, wanted)| came.len() >= wanted.len())
            && plain_came.len() >= sent.len()
    });
    assert!(came == wanted);
    assert!(plain_came == sent);
    assert_eq!(
        publisher.malformed_frames()
            + subscribers.iter().map(FilteredSubscriber::malformed_frames).sum::<u64>(),
        0
    );
}

/// Subscribers come and go; unused filters are removed and their marks reused.
fn departed_subscribers_are_removed(stage: &Stage) {
    let mut publisher = publisher(&stage.publishers);
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
        publisher.send(message(round).as_bytes()).expect("room");
        publisher.send(message(3).as_bytes()).expect("room");
        for (subscriber, count) in subscribers.iter_mut().zip([1, 1]) {
            let mut came = Vec::new();
            until("a message has come", || {
                publisher.serve_filters();
                read(subscriber, &mut came);
                came.len() >= count
            });
            assert!(came.contains(&message(3).into_bytes()) || round != 3);
        }
        drop(subscribers);
        until("they are forgotten", || {
            publisher.serve_filters();
            publisher.filters() == 0
        });
        // Without filters no message is read, so none is malformed.
        assert_eq!(publisher.send(b"not FIX"), Ok(()));
        assert_eq!(publisher.malformed_messages(), 0);
    }
}

/// Subscribers start first; publishers join, leave, and join again.
fn publishers_may_come_later(stage: &Stage) {
    let mut subscribers = ["/38 = 1", "/38 = 2"].map(|text| subscriber(&stage.subscribers, text));
    for _ in 0..3 {
        let mut publisher = publisher(&stage.publishers);
        settle(&mut publisher, &mut subscribers);
        assert_eq!(publisher.send(b"38=1\x01"), Ok(()));
        assert_eq!(publisher.send(b"38=3\x01"), Ok(()));
        assert_eq!(publisher.send(b"38=2\x01"), Ok(()));
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
            subscribers.iter().all(|subscriber| subscriber.streams() == 0)
        });
    }
}

/// Malformed filters, too many filters, and malformed frames are refused.
fn the_hostile_are_refused(stage: &Stage) {
    let mut publisher = publisher(&stage.publishers);
    let mut raw = stage.subscribers.publisher("market?filters").expect("a publisher");
    let mut feed = stage.subscribers.subscriber("market?content").expect("a subscriber");
    until("they have met", || {
        publisher.serve_filters();
        feed.poll(64, |_| ());
        raw.subscribers() == 1 && feed.streams() == 1
    });
    let own = [U64::new(publisher.matching_session().0)];
    let others = [U64::new(publisher.session().0), U64::new(raw.session().0)];
    let wanted = |sessions: &[U64], filter: &str| {
        let frame = ContentFrame::Wanted { sessions, filter };
        let mut bytes = vec![0; frame.len()];
        frame.write(&mut bytes);
        bytes
    };
    let deep = format!("{}/38 = 1", "not ".repeat(900));
    let long = format!("/38 = '{}'", "x".repeat(5_000));
    for sessions in [&[][..], &others] {
        raw.send(&wanted(sessions, "/38 = 1")).expect("room");
    }
    raw.send(b"").expect("room");
    raw.send(b"x").expect("room");
    for filter in ["/38 = ", &deep, &long] {
        raw.send(&wanted(&own, filter)).expect("room");
    }
    let mut reasons = Vec::new();
    until("all are answered", || {
        publisher.serve_filters();
        feed.poll(64, |event| {
            if let Event::Message(message) = event {
                match ContentFrame::read(message.bytes()) {
                    Ok(ContentFrame::Refused { reason, .. }) => reasons.push(reason.to_owned()),
                    other => panic!("{other:?}"),
                }
            }
        });
        reasons.len() == 3
    });
    // Requests to others are neither malformed nor answered.
    assert_eq!((publisher.malformed_frames(), publisher.filters()), (2, 0));
    assert_eq!(reasons[2], "the text has 5008 bytes, and at most 4096 are allowed");
    let mut subscribers = ["/38 = 1", "/38 = 2"].map(|text| subscriber(&stage.subscribers, text));
    settle(&mut publisher, &mut subscribers);
    let mut third = subscriber(&stage.subscribers, "/38 = 3");
    let mut reason = String::new();
    until("the third is refused", || {
        publisher.serve_filters();
        third.poll(64, |event| {
            if let Event::FilterRefused(_, why) = event {
                reason = why.to_owned();
            }
        });
        !reason.is_empty()
    });
    assert_eq!(reason, "there are 2 filters already, which is the most");
    assert_eq!(publisher.send(b"no tags here"), Ok(()));
    assert_eq!(publisher.malformed_messages(), 1);
    assert_eq!(publisher.send(b"38=2\x01"), Ok(()));
}

/// A subscriber that was ejected as slow is notified, requests its filter again, and is served. 8.|
/// Many times the subscriber's buffer.
fn a_subscriber_left_behind_is_served_again(stage: &Stage) {
    let mut publisher = publisher(&stage.publishers);
    let mut subscriber = [subscriber(&stage.subscribers, "/38 = 1")];
    settle(&mut publisher, &mut subscriber);
    let [mut subscriber] = subscriber;
    // Many times what is kept for it.
    let long = format!("38=1\u{1}58={}\u{1}", "x".repeat(1_000));
    for _ in 0..1_000 {
        assert_eq!(publisher.send(long.as_bytes()), Ok(()));
    }
    let (mut told, mut next) = (Vec::new(), 0);
    let mut hear = |publisher: &mut FilterablePublisher| {
        publisher.serve_filters();
        subscriber.poll(64, |event| match event {
            Event::Lost(gap) => {
                assert_eq!((gap.first, gap.first + gap.count), (next, 1_000), "all matched");
                told.push("lost");
            }
            Event::FilterInactive(_) => told.push("lapsed"),
            Event::FilterActive(_) => told.push("in force"),
            Event::Left(..) => told.push("left"),
            Event::Message(message) if message.bytes() == b"38=1\x01" => {
                assert_eq!(message.number(), 1_000);
                told.push("short");
            }
            Event::Message(_) if told.last() == Some(&"lapsed") => panic!("it is not in force"),
            Event::Message(message) => {
                assert_eq!(message.number(), next);
                next += 1;
            }
            _ => {}
        });
        if told.last() == Some(&"left") {
            subscriber.feed().rejoin();
        }
        told.clone()
    };
    until("it is served again", || hear(&mut publisher).ends_with(&["in force"]));
    assert_eq!(publisher.send(b"38=1\x01"), Ok(()));
    until("it hears what follows", || hear(&mut publisher).ends_with(&["short"]));
    assert_eq!(told, ["lapsed", "lost", "left", "in force", "short"]);
}

#[test]
fn publishers_eject_stalled_subscribers() {
    for transports in ["threads", "shm"] {
        a_subscriber_left_behind_is_served_again(&Stage::with(
            transports,
            &[("shm.slow_consumer", "10ms")],
        ));
    }
}

#[test]
fn malformed_filters_are_refused_at_once() {
    let stage = Stage::new("shm");
    let refusal = |filter: &str| {
        let subscriber = stage.subscribers.topic("market").filter(filter).subscriber();
        subscriber.expect_err("no filter").to_string()
    };
    assert!(refusal("/38 =").starts_with("bad filter: "));
    assert!(refusal("/52 < unix_timestamp()").contains("depends on the time"));
}

/// A publisher that serves no filters: the subscriber evaluates its filter itself, and both kinds
/// of publishers are heard side by side, each message once.
fn publishers_without_filters_are_filtered_here(stage: &Stage) {
    let mut plain = stage.publishers.publisher("market").expect("a publisher");
    let mut filterable = publisher(&stage.publishers);
    let mut subscriber = subscriber(&stage.subscribers, "/38 >= 5");
    let mut everything = stage.subscribers.subscriber("market").expect("a subscriber");
    let mut early = Vec::new();
    until("all have met", || {
        filterable.serve_filters();
        read(&mut subscriber, &mut early);
        read(&mut everything, &mut early);
        let is_served = subscriber.active_streams() == 2 && everything.streams() == 2;
        is_served && plain.subscribers() == 2 && filterable.subscribers() == 2
    });
    let (mut came, mut all_came) = (Vec::new(), Vec::new());
    for number in 0..10 {
        plain.send(format!("38={number}\u{1}").as_bytes()).expect("room");
        filterable.send(format!("38={number}\u{1}58=f\u{1}").as_bytes()).expect("room");
    }
    plain.send(b"not FIX").expect("room");
    until("all has come", || {
        read(&mut subscriber, &mut came);
        read(&mut everything, &mut all_came);
        came.len() >= 10 && all_came.len() >= 21 && subscriber.malformed_messages() == 1
    });
    came.sort_unstable();
    let wanted = (5..10).flat_map(|n| [format!("38={n}\u{1}"), format!("38={n}\u{1}58=f\u{1}")]);
    assert_eq!(came, wanted.map(String::into_bytes).collect::<Vec<_>>());
    assert_eq!(all_came.len(), 21);
}

/// A filter on the topics of a pattern: evaluated by publishers that serve filters, and here for
/// the others; each topic once, new ones by themselves.
fn a_filter_works_on_the_topics_of_a_pattern(stage: &Stage) {
    let open = |topic: &str| stage.publishers.topic(topic).filterable().publisher();
    let mut first = open("market.eu").expect("a publisher");
    let mut plain = stage.publishers.publisher("market.us").expect("a publisher");
    let _other = stage.publishers.publisher("orders.eu").expect("a publisher");
    let patterns = stage.subscribers.pattern("market.*").or("market.e*");
    let mut subscriber = patterns.filter("/38 >= 5").subscriber().expect("a subscriber");
    let mut everything = stage.subscribers.pattern("market.*").subscriber().expect("a subscriber");
    let (mut early, mut joined) = (Vec::new(), Vec::new());
    let poll = |subscriber: &mut FilteredSubscriber, joined: &mut Vec<String>| {
        subscriber.poll(64, |event| {
            if let Event::Joined(stream) = event {
                joined.push(stream.topic.clone());
            }
        });
    };
    until("the first have met", || {
        first.serve_filters();
        poll(&mut subscriber, &mut joined);
        read(&mut everything, &mut early);
        subscriber.active_streams() == 2 && everything.streams() == 2
    });
    let mut second = open("market.asia").expect("a publisher");
    until("the third has come", || {
        first.serve_filters();
        second.serve_filters();
        poll(&mut subscriber, &mut joined);
        read(&mut everything, &mut early);
        subscriber.active_streams() == 3
            && everything.streams() == 3
            && second.subscribers() == 2
            && first.subscribers() == 2
            && plain.subscribers() == 2
    });
    joined.sort_unstable();
    assert_eq!(joined, ["market.asia", "market.eu", "market.us"]);
    for number in 3..7 {
        let body = |name: &str| format!("38={number}\u{1}58={name}\u{1}");
        first.send(body("eu").as_bytes()).expect("room");
        second.send(body("asia").as_bytes()).expect("room");
        plain.send(body("us").as_bytes()).expect("room");
    }
    let (mut came, mut all_came) = (Vec::new(), Vec::new());
    until("all has come", || {
        subscriber.poll(64, |event| {
            if let Event::Message(message) = event {
                let body = String::from_utf8_lossy(message.bytes()).into_owned();
                assert!(message.stream().topic.ends_with(body[8..].trim_end_matches('\u{1}')));
                came.push(body);
            }
        });
        read(&mut everything, &mut all_came);
        came.len() >= 6 && all_came.len() >= 12
    });
    assert_eq!((came.len(), all_came.len()), (6, 12));
    assert!(came.iter().all(|body| body.starts_with("38=5") || body.starts_with("38=6")));
    let bad = stage.subscribers.pattern("market.*").filter("/38 >=").subscriber();
    assert!(matches!(bad, Err(lanecast::Error::Filter(_))));
}

/// Claims written in place, chained and aborted, and batches are evaluated once they are published.
fn claims_and_batches_are_evaluated(stage: &Stage) {
    let mut publisher = publisher(&stage.publishers);
    let mut subscribers = [subscriber(&stage.subscribers, "/38 = 1")];
    settle(&mut publisher, &mut subscribers);
    let mut claim = publisher.try_claim(5).expect("room");
    claim.copy_from_slice(b"38=1\x01");
    let mut claim = claim.commit_and_claim_next(5).expect("room");
    claim.copy_from_slice(b"38=1\x01");
    claim.abort();
    let mut claim = publisher.claim(10).expect("room");
    claim.copy_from_slice(b"38=1\x0158=2\x01");
    claim.commit();
    let mut batch = publisher.batch();
    for body in [&b"38=1\x0158=3\x01"[..], b"38=2\x01", b"38=1\x0158=4\x01"] {
        batch.try_add(TopicId::FIRST, body.len()).expect("room").copy_from_slice(body);
        assert_eq!(batch.last(), body);
    }
    assert_eq!(batch.publish(), 3);
    let mut batch = publisher.batch();
    batch.try_add(TopicId::FIRST, 5).expect("room").copy_from_slice(b"38=1\x01");
    drop(batch);
    let longest = publisher.longest_message();
    let too_long = lanecast::ClaimError::TooLong { longest };
    assert_eq!(publisher.try_send(&vec![0; longest + 1]), Err(too_long));
    publisher.send(b"38=1\x0158=5\x01").expect("room");
    let mut came = Vec::new();
    let [subscriber] = &mut subscribers;
    until("all has come", || {
        read(subscriber, &mut came);
        came.len() >= 5
    });
    let texts = ["", "58=2\u{1}", "58=3\u{1}", "58=4\u{1}", "58=5\u{1}"];
    assert_eq!(came, texts.map(|text| format!("38=1\u{1}{text}").into_bytes()));
}

/// Each message is evaluated once, however it is published and however many want it.
fn messages_are_evaluated_once(stage: &Stage) {
    let mut publisher = publisher(&stage.publishers);
    publisher.send(b"38=1\x01").expect("room");
    assert_eq!(publisher.evaluations(), 0, "there is no filter");
    let filters = ["/38 = 1", "/38 = 1", "/38 = 1", "/38 = 2", "/38 >= 1"];
    let mut subscribers = filters.map(|filter| subscriber(&stage.subscribers, filter));
    settle(&mut publisher, &mut subscribers);
    assert_eq!(publisher.filters(), 3);
    for number in 0..10 {
        publisher.send(format!("38={number}\x01").as_bytes()).expect("room");
    }
    let mut claim = publisher.claim(5).expect("room");
    claim.copy_from_slice(b"38=1\x01");
    claim.commit_and_claim_next(5).expect("room").abort();
    let mut batch = publisher.batch();
    for body in [b"38=1\x01", b"38=2\x01"] {
        batch.try_add(TopicId::FIRST, body.len()).expect("room").copy_from_slice(body);
    }
    batch.publish();
    assert_eq!(publisher.evaluations(), 13);
    let mut came = filters.map(|_| Vec::new());
    until("all has come", || {
        subscribers.iter_mut().zip(&mut came).for_each(|(subscriber, came)| read(subscriber, came));
        came.iter().map(Vec::len).eq([3, 3, 3, 2, 12])
    });
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
                let few = [("filter.filters_max", "2")];
                super::the_hostile_are_refused(&Stage::with($name, &few));
            }

            #[test]
            fn publishers_without_filters_are_filtered_here() {
                super::publishers_without_filters_are_filtered_here(&Stage::new($name));
            }

            #[test]
            fn a_filter_works_on_the_topics_of_a_pattern() {
                super::a_filter_works_on_the_topics_of_a_pattern(&Stage::new($name));
            }

            #[test]
            fn messages_are_evaluated_once() {
                super::messages_are_evaluated_once(&Stage::new($name));
            }

            #[test]
            fn claims_and_batches_are_evaluated() {
                super::claims_and_batches_are_evaluated(&Stage::new($name));
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
