//! Subscriptions that begin with a query while their topic keeps changing.

use crate::command::acknowledgement::CommandResult;
use crate::command::request::{Operation, Request};
use crate::engine::subscribe;
use crate::ids::ClientId;
use crate::test_broker::TestBroker;
use lanecast_filter::message_type::MessageType;
use lanecast_sow::TopicDefinition;
use lanecast_wire::command::Header;

/// Publishes of one turn.
const BURST: usize = 1_000;

fn broker(queue_bytes: usize) -> (TestBroker, ClientId, ClientId) {
    let topic = TopicDefinition::new("orders", MessageType::Json).key("/id").expect("a path");
    let mut broker = TestBroker::new(|config| {
        config.topics = vec![topic];
        config.send_queue_bytes_max = queue_bytes;
    });
    let (publisher, subscriber) = (broker.client(), broker.client());
    (broker, publisher, subscriber)
}

/// Subscribes with a query; `waiting_max` updates may wait for its end.
fn sow_and_subscribe(broker: &mut TestBroker, id: ClientId, waiting_max: usize) {
    let command = br#"{"c":"sow_and_subscribe","t":"orders","sub_id":"1","cid":"1"}"#;
    let request = Request::parse(&Header::parse(command).expect("a header"));
    let Ok(Operation::Subscribe(mut subscribe)) = request.operation else { panic!("another") };
    subscribe.options.waiting_max = waiting_max;
    let state = &mut broker.engine.state;
    let result = subscribe::subscribe(state, broker.now, id, &request.reply_to, &subscribe);
    assert!(matches!(result, Ok(CommandResult::QueryStarted)), "{result:?}");
}

fn publish(broker: &mut TestBroker, by: ClientId, count: usize, note: &str) {
    for id in 0..count {
        let body = format!(r#"{{"id":{id},"note":"{note}"}}"#);
        broker.send(by, &format!(r#"{{"c":"p","t":"orders"}}{body}"#));
    }
}

/// Number of updates that wait behind the query of the only subscription.
fn backlog(broker: &mut TestBroker) -> usize {
    let (state, now) = (&mut broker.engine.state, broker.now);
    let topic = state.catalog.sow_ids()[0];
    let backlog = state.with_sow(topic, now, |topic, _, _| Ok(topic.subscribers().backlog()));
    backlog.expect("a topic")
}

fn is_catching_up(broker: &mut TestBroker) -> bool {
    let (state, now) = (&mut broker.engine.state, broker.now);
    let topic = state.catalog.sow_ids()[0];
    let is_catching_up =
        state.with_sow(topic, now, |topic, _, _| Ok(topic.subscribers().is_catching_up()));
    is_catching_up.expect("a topic")
}

#[test]
fn a_subscription_beside_a_fast_publisher_catches_up() {
    let (mut broker, publisher, subscriber) = broker(64 << 20);
    publish(&mut broker, publisher, 10, "");
    sow_and_subscribe(&mut broker, subscriber, 1 << 20);
    let mut heard = 0;
    for round in 0..200 {
        publish(&mut broker, publisher, BURST, "");
        broker.turn();
        let waiting = backlog(&mut broker);
        assert!(waiting <= 2 * BURST, "round {round}: {waiting} wait");
        heard += broker.received(subscriber).len();
    }
    for _ in 0..4 {
        broker.turn();
    }
    assert!(!is_catching_up(&mut broker));
    heard += broker.received(subscriber).len();
    // Begin and end of the group, and the records of its query.
    assert_eq!(heard, 200 * BURST + 2 + 10);
    assert!(broker.engine.next_disconnect().is_none());
}

#[test]
fn a_client_whose_subscription_misses_updates_is_disconnected() {
    let (mut broker, publisher, subscriber) = broker(64 << 10);
    sow_and_subscribe(&mut broker, subscriber, 100);
    let note = "x".repeat(500);
    publish(&mut broker, publisher, 99, &note);
    broker.turn();
    assert!((1..99).contains(&backlog(&mut broker)), "its queue is half full");
    // The query is answered, and more comes than may wait.
    publish(&mut broker, publisher, 100, &note);
    broker.turn();
    assert!(broker.engine.next_disconnect().is_none(), "it has not read yet");
    let heard = broker.received(subscriber).concat();
    assert!(heard.contains("group_end"), "{heard}");
    broker.turn();
    let disconnected = broker.engine.next_disconnect().map(|(id, _)| id);
    assert_eq!(disconnected, Some(subscriber));
    assert_eq!(broker.engine.counters().slow_disconnects, 1);
}
