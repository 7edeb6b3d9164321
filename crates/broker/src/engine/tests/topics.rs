//! Transient topics: patterns, idle topics, limits.

use crate::ids::ClientId;
use crate::test_broker::TestBroker;
use lanecast_filter::message_type::MessageType;
use std::time::Duration;

fn publish(broker: &mut TestBroker, id: ClientId, topic: &str) -> Vec<String> {
    broker.send(id, &format!(r#"{{"c":"p","t":"{topic}","cid":"1","a":"processed"}}1"#));
    broker.received(id)
}

#[test]
fn the_cost_of_a_pattern_is_independent_of_the_number_of_topics() {
    let mut broker = TestBroker::new(|_| {});
    let (publisher, subscriber) = (broker.client(), broker.client());
    for number in 0..2_000 {
        publish(&mut broker, publisher, &format!("topic-{number}"));
    }
    for number in 0..100 {
        let name = format!(r#""sub_id":"{number}","cid":"1""#);
        broker.send(subscriber, &format!(r#"{{"c":"subscribe","t":"^topic-.*{number}$",{name}}}"#));
    }
    let matched = |broker: &TestBroker| {
        let topics = broker.engine.state.catalog.transient_topics();
        topics.filter(|topic| topic.matches_patterns()).count()
    };
    assert_eq!(matched(&broker), 0, "nothing is done at any topic");
    publish(&mut broker, publisher, "topic-77");
    assert_eq!(matched(&broker), 1);
    let heard = broker.received(subscriber).join("");
    assert!(heard.contains(r#""sids":"7,77""#) || heard.contains(r#""sids":"77,7""#), "{heard}");
    // After it disconnects, its subscriptions are removed in steps, and deliver nothing.
    broker.engine.disconnect(subscriber);
    assert_eq!(
        broker.engine.state.subscriptions.ended_len(),
        100 - crate::engine::subscribe::REMOVE_STEP
    );
    let before = broker.engine.counters().delivered;
    publish(&mut broker, publisher, "topic-99");
    assert_eq!(broker.engine.counters().delivered, before);
    broker.run_until_idle();
    assert_eq!(broker.engine.state.subscriptions.ended_len(), 0);
}

#[test]
fn a_topic_has_a_matcher_only_while_it_has_subscriptions_of_its_own() {
    let mut broker = TestBroker::new(|_| {});
    let (publisher, subscriber) = (broker.client(), broker.client());
    let matchers = |broker: &TestBroker| {
        let topics = broker.engine.state.catalog.transient_topics();
        topics.filter(|topic| topic.has_matcher()).count()
    };
    broker.send(subscriber, r#"{"c":"subscribe","t":"^t.*","sub_id":"all","cid":"1"}"#);
    for number in 0..10 {
        publish(&mut broker, publisher, &format!("t{number}"));
    }
    assert_eq!(matchers(&broker), 0, "a pattern has its own");
    broker.send(subscriber, r#"{"c":"subscribe","t":"t7","sub_id":"7","cid":"2"}"#);
    assert_eq!(matchers(&broker), 1);
    broker.received(subscriber);
    publish(&mut broker, publisher, "t7");
    assert_eq!(broker.received(subscriber).len(), 1);
    broker.send(subscriber, r#"{"c":"unsubscribe","sub_id":"7","cid":"3"}"#);
    broker.run_until_idle();
    assert_eq!(matchers(&broker), 0);
}

#[test]
fn a_publisher_that_has_many_patterns_tried_leaves_others_their_turn() {
    let mut broker = TestBroker::new(|_| {});
    let (publisher, subscriber) = (broker.client(), broker.client());
    for number in 0..500 {
        let rest = format!(r#""t":"^a{number}.*","sub_id":"{number}""#);
        broker.send(subscriber, &format!(r#"{{"c":"subscribe",{rest}}}"#));
    }
    broker.turn();
    let listened = |broker: &mut TestBroker, from: usize| {
        let mut topics = from..from + 1_000;
        topics.find(|number| {
            publish(broker, publisher, &format!("t{number}"));
            !broker.engine.can_execute(publisher)
        })
    };
    assert_eq!(listened(&mut broker, 0), Some(8), "the ninth topic is too many");
    assert!(broker.engine.can_execute(subscriber));
    assert!(broker.turn(), "it goes on at once");
    assert!(broker.engine.can_execute(publisher));
    assert_eq!(listened(&mut broker, 0), Some(17), "what was tried is not tried again");
}

#[test]
fn subscriptions_of_a_disconnected_client_are_removed_in_steps() {
    let kept = ["kept".to_owned(), "other".to_owned()];
    let kept = kept.map(|name| {
        let topic = lanecast_sow::TopicDefinition::new(&name, MessageType::Json);
        topic.key("/id").expect("a path")
    });
    let mut broker = TestBroker::new(|config| config.topics = kept.into());
    let (leaving, staying) = (broker.client(), broker.client());
    for topic in ["kept", "passing", "^(kept|passing)$"] {
        for number in 0..200 {
            let rest = format!(r#""sub_id":"{topic}{number}","filter":"/id > {number}""#);
            broker.send(leaving, &format!(r#"{{"c":"subscribe","t":"{topic}",{rest}}}"#));
        }
    }
    broker.send(staying, r#"{"c":"subscribe","t":"kept","sub_id":"1"}"#);
    broker.engine.disconnect(leaving);
    assert_eq!(broker.engine.state.clients.get(leaving).map(|_| ()), None);
    let again = broker.client();
    assert_eq!(again, leaving, "its number is given again at once");
    for topic in ["kept", "passing"] {
        broker.send(again, &format!(r#"{{"c":"p","t":"{topic}"}}{{"id":1000}}"#));
    }
    assert_eq!(broker.received(again), [""; 0], "nothing of the old one's is for the new one");
    assert_eq!(broker.received(staying).len(), 1);
    let turns = broker.run_until_idle();
    assert!(turns >= 600 / crate::engine::subscribe::REMOVE_STEP - 2, "{turns} turns");
    broker.send(staying, r#"{"c":"unsubscribe","sub_id":"all"}"#);
    let topic = broker.engine.state.catalog.find_sow(MessageType::Json, "kept").expect("a topic");
    let topic = broker.engine.state.catalog.sow_mut(topic).expect("a SOW topic");
    assert!(!topic.has_subscribers(), "all are gone");
}

#[test]
fn idle_topics_are_removed() {
    let idle = Duration::from_secs(60);
    let mut broker = TestBroker::new(|config| config.topics_idle = idle);
    let (publisher, subscriber) = (broker.client(), broker.client());
    broker.run_until_idle();
    for number in 0..3_000 {
        publish(&mut broker, publisher, &format!("t{number}"));
    }
    broker.send(subscriber, r#"{"c":"subscribe","t":"t5","sub_id":"1"}"#);
    // The second one uses the cached header.
    broker.send(publisher, r#"{"c":"p","t":"usual"}1"#);
    broker.send(publisher, r#"{"c":"p","t":"usual"}2"#);
    for _ in 0..2 {
        broker.now.monotonic_ns += idle.as_nanos() as u64;
        assert_eq!(broker.run_until_idle(), 2, "a thousand at a time");
    }
    let known = |broker: &TestBroker, name: &str| {
        broker.engine.state.catalog.find(MessageType::Json, name).is_some()
    };
    assert!(known(&broker, "t5") && !known(&broker, "t6") && !known(&broker, "usual"));
    assert_eq!(broker.engine.state.catalog.len(), 1);
    // Ids are reused, and the publisher's message still goes to its own topic.
    for number in 0..3_000 {
        let name = format!(r#""t":"u{number}","sub_id":"u{number}""#);
        broker.send(subscriber, &format!(r#"{{"c":"subscribe",{name}}}"#));
    }
    assert_eq!(broker.engine.state.catalog.entries_len(), 3_001);
    broker.send(publisher, r#"{"c":"p","t":"usual"}3"#);
    assert_eq!(broker.received(subscriber), [""; 0]);
    publish(&mut broker, publisher, "u2999");
    assert_eq!(broker.received(subscriber).len(), 1);
}

#[test]
fn one_client_does_not_use_up_the_topics_of_all() {
    let mut broker = TestBroker::new(|config| {
        (config.topics_max, config.client_topics_max) = (100, 20);
    });
    let (greedy, other) = (broker.client(), broker.client());
    let subscribe = |broker: &mut TestBroker, id, number| {
        let name = format!(r#""t":"s{number}","sub_id":"{number}","cid":"1","a":"processed""#);
        broker.send(id, &format!(r#"{{"c":"subscribe",{name}}}"#));
        broker.received(id).concat()
    };
    for number in 0..20 {
        assert!(subscribe(&mut broker, greedy, number).contains("success"));
    }
    let refused = subscribe(&mut broker, greedy, 20);
    assert!(refused.contains("this client has made 20"), "{refused}");
    assert!(subscribe(&mut broker, other, 21).contains("success"));
    assert!(subscribe(&mut broker, greedy, 5).contains("already exists"));
    assert!(publish(&mut broker, greedy, "p").concat().contains("this client has made 20"));
    // What it has ended is forgotten, and counts no more.
    broker.send(greedy, r#"{"c":"unsubscribe","sub_id":"all"}"#);
    for _ in 0..3 {
        broker.now.monotonic_ns += 60_000_000_000;
        broker.run_until_idle();
    }
    assert!(publish(&mut broker, greedy, "p").concat().contains("success"));
}

#[test]
fn a_full_server_makes_room_at_once() {
    let mut broker = TestBroker::new(|config| config.topics_max = 3);
    let publisher = broker.client();
    for number in 0..3 {
        assert!(
            publish(&mut broker, publisher, &format!("a{number}")).concat().contains("success")
        );
    }
    let refused = publish(&mut broker, publisher, "b").concat();
    assert!(refused.contains("there are 3"), "{refused}");
    publish(&mut broker, publisher, "a1");
    assert!(publish(&mut broker, publisher, "b").concat().contains("success"));
    assert!(broker.engine.state.catalog.find(MessageType::Json, "a1").is_some(), "it is in use");
    assert!(broker.engine.state.catalog.find(MessageType::Json, "a0").is_none());
}
