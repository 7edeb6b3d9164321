//! Conflated subscriptions: the clock by which their intervals end, and their replacement.

use crate::ids::ClientId;
use crate::test_broker::TestBroker;
use lanecast_filter::message_type::MessageType;
use lanecast_sow::TopicDefinition;

const SECOND: u64 = 1_000_000_000;
const HOUR: u64 = 3_600 * SECOND;

/// A broker of one topic, a publisher and a subscriber.
fn broker() -> (TestBroker, ClientId, ClientId) {
    let topic = TopicDefinition::new("orders", MessageType::Json).key("/id").expect("a path");
    let mut broker = TestBroker::new(|config| config.topics = vec![topic]);
    broker.now.unix_ns = 1_000 * HOUR;
    let (publisher, subscriber) = (broker.client(), broker.client());
    (broker, publisher, subscriber)
}

fn publish(broker: &mut TestBroker, by: ClientId, id: u32, px: u32) {
    broker.send(by, &format!(r#"{{"c":"p","t":"orders"}}{{"id":{id},"px":{px}}}"#));
}

/// Lets time pass on both clocks.
fn pass(broker: &mut TestBroker, ns: u64) {
    broker.now.monotonic_ns += ns;
    broker.now.unix_ns += ns;
    broker.run_until_idle();
}

/// The bodies of the messages that wait for a client, out-of-focus ones with their reason first.
fn bodies(broker: &mut TestBroker, id: ClientId) -> Vec<String> {
    let payloads = broker.received(id);
    let mut bodies = Vec::new();
    for payload in &payloads {
        let end = payload.find('}').expect("a header") + 1;
        let (header, body) = payload.split_at(end);
        if header.contains(r#""c":"sow""#) {
            // Each record has a header of its own.
            let (_, record) = body.split_once('}').expect("a record");
            bodies.push(format!("sow {record}"));
        } else if header.contains(r#""c":"oof""#) {
            bodies.push(format!("oof {body}"));
        } else if !body.is_empty() {
            bodies.push(body.to_owned());
        }
    }
    bodies
}

#[test]
fn intervals_end_though_the_wall_clock_is_set_back() {
    let (mut broker, publisher, subscriber) = broker();
    let command = r#"{"c":"subscribe","t":"orders","sub_id":"s","opts":"conflation=1s"}"#;
    broker.send(subscriber, command);
    publish(&mut broker, publisher, 1, 1);
    publish(&mut broker, publisher, 1, 2);
    assert_eq!(bodies(&mut broker, subscriber), [r#"{"id":1,"px":1}"#]);
    broker.now.unix_ns -= HOUR;
    publish(&mut broker, publisher, 2, 1);
    publish(&mut broker, publisher, 2, 2);
    assert_eq!(bodies(&mut broker, subscriber), [r#"{"id":2,"px":1}"#]);
    let now = broker.now;
    let due = broker.engine.next_deadline(now).expect("updates wait");
    assert!(due <= now.monotonic_ns + SECOND, "{due}");
    pass(&mut broker, SECOND);
    assert_eq!(bodies(&mut broker, subscriber), [r#"{"id":1,"px":2}"#, r#"{"id":2,"px":2}"#]);
    // Nor does a clock that is set ahead end them.
    publish(&mut broker, publisher, 1, 3);
    broker.now.unix_ns += HOUR;
    broker.run_until_idle();
    assert_eq!(bodies(&mut broker, subscriber), [""; 0]);
}

#[test]
fn a_replacement_delivers_what_the_old_subscription_owes() {
    for (options, ends_at_once) in [("replace,conflation=10s", false), ("replace", true)] {
        let (mut broker, publisher, subscriber) = broker();
        let subscribe = |options: &str| {
            format!(r#"{{"c":"subscribe","t":"orders","sub_id":"s","opts":"{options}"}}"#)
        };
        broker.send(subscriber, &subscribe("conflation=1s"));
        for (id, px) in [(1, 1), (1, 2), (2, 1)] {
            publish(&mut broker, publisher, id, px);
        }
        pass(&mut broker, SECOND / 2);
        broker.send(subscriber, &subscribe(options));
        broker.run_until_idle();
        let first = [r#"{"id":1,"px":1}"#, r#"{"id":2,"px":1}"#];
        let owed = r#"{"id":1,"px":2}"#;
        let mut expected = first.to_vec();
        expected.extend(ends_at_once.then_some(owed));
        assert_eq!(bodies(&mut broker, subscriber), expected, "{options}");
        // The interval that has begun goes on.
        pass(&mut broker, SECOND / 2);
        let expected: &[&str] = if ends_at_once { &[] } else { &[owed] };
        assert_eq!(bodies(&mut broker, subscriber), expected, "{options}");
        publish(&mut broker, publisher, 2, 2);
        pass(&mut broker, 10 * SECOND);
        assert_eq!(bodies(&mut broker, subscriber), [r#"{"id":2,"px":2}"#], "{options}");
        assert_eq!(broker.engine.next_deadline(broker.now), None);
    }
}

#[test]
fn a_replacement_goes_on_with_the_answer_and_the_updates_behind_it() {
    let (mut broker, publisher, subscriber) = broker();
    publish(&mut broker, publisher, 1, 1);
    let ask = r#"{"c":"sow_and_subscribe","t":"orders","sub_id":"s","cid":"1","a":"completed"}"#;
    broker.send(subscriber, ask);
    publish(&mut broker, publisher, 1, 2);
    publish(&mut broker, publisher, 2, 1);
    let replace =
        r#"{"c":"subscribe","t":"^ord","sub_id":"s","opts":"replace","filter":"/px < 5"}"#;
    broker.send(subscriber, replace);
    publish(&mut broker, publisher, 1, 3);
    publish(&mut broker, publisher, 1, 9);
    broker.run_until_idle();
    let received = broker.received(subscriber);
    let at = |part: &str| received.iter().position(|payload| payload.contains(part));
    let order = [
        at(r#""c":"group_begin""#),
        at(r#"{"id":1,"px":1}"#),
        at(r#""c":"group_end""#),
        at(r#""a":"completed""#),
        at(r#"{"id":1,"px":2}"#),
        at(r#"{"id":2,"px":1}"#),
        at(r#"{"id":1,"px":3}"#),
    ];
    assert!(order.iter().all(Option::is_some) && order.is_sorted(), "{received:?}");
    assert_eq!(at(r#""px":9"#), None, "the new filter is in force");
    broker.engine.disconnect(subscriber);
    let topic = broker.engine.state.catalog.sow_ids()[0];
    let topic = broker.engine.state.catalog.sow_mut(topic).expect("a topic");
    assert!(!topic.has_subscribers());
}

#[test]
fn records_that_have_left_are_told_before_the_answer_of_a_replacement() {
    let (mut broker, publisher, subscriber) = broker();
    let subscribe = |options: &str| {
        let (topic, filter) = (r#""t":"orders","sub_id":"s""#, r#""filter":"/px < 5""#);
        format!(r#"{{"c":"sow_and_subscribe",{topic},{filter},"opts":"oof,{options}"}}"#)
    };
    broker.send(subscriber, &subscribe("conflation=1s"));
    broker.run_until_idle();
    for (id, px) in [(1, 1), (2, 1), (1, 9), (2, 2)] {
        publish(&mut broker, publisher, id, px);
    }
    broker.send(subscriber, &subscribe("replace"));
    broker.run_until_idle();
    let (left, there) = (r#"oof {"id":1,"px":9}"#, r#"sow {"id":2,"px":2}"#);
    let before = [r#"{"id":1,"px":1}"#, r#"{"id":2,"px":1}"#];
    assert_eq!(bodies(&mut broker, subscriber), [before[0], before[1], left, there]);
}
