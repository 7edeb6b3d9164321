//! Deletions of many records, expiry and sorting, in steps.

use crate::ids::ClientId;
use crate::test_broker::TestBroker;
use crate::time::Now;
use lanecast_filter::message_type::MessageType;
use lanecast_sow::TopicDefinition;
use std::time::Duration;

const RECORDS: usize = 20_000;

/// A server of a topic with many records, of which every other one is of the kind `a`.
fn broker() -> (TestBroker, ClientId, ClientId) {
    let topic = TopicDefinition::new("orders", MessageType::Json).key("/id").expect("a path");
    let mut broker = TestBroker::new(|config| config.topics = vec![topic]);
    let (one, other) = (broker.client(), broker.client());
    for id in 0..RECORDS {
        publish(&mut broker, one, id, if id % 2 == 0 { "a" } else { "b" });
    }
    (broker, one, other)
}

fn publish(broker: &mut TestBroker, by: ClientId, id: usize, kind: &str) {
    let body = format!(r#"{{"id":{id},"kind":"{kind}"}}"#);
    broker.send(by, &format!(r#"{{"c":"p","t":"orders"}}{body}"#));
}

fn count(broker: &mut TestBroker, by: ClientId, filter: &str) -> usize {
    let rest = format!(r#""t":"orders","cid":"q","a":"stats","filter":"{filter}""#);
    broker.send(by, &format!(r#"{{"c":"sow",{rest}}}"#));
    while broker.turn() {}
    let heard = broker.received(by);
    let (_, matches) = heard.last().expect("stats").split_once(r#""matches":"#).expect("there");
    matches.split(',').next().expect("a number").trim_matches('"').parse().expect("a number")
}

#[test]
fn a_large_deletion_runs_in_steps_and_is_counted_exactly() {
    let (mut broker, one, other) = broker();
    broker.send(other, r#"{"c":"subscribe","t":"orders","sub_id":"1"}"#);
    let acks = r#""cid":"d","a":"processed,completed,stats","t":"orders""#;
    broker.send(one, &format!(r#"{{"c":"sow_delete",{acks},"filter":"/kind = 'a'"}}"#));
    assert_eq!(broker.received(one), [""; 0], "it goes on");
    assert!(!broker.engine.can_execute(one) && broker.engine.can_execute(other));
    // Covered, and deleted before: 19,998 is there anew. Not covered: 19,999 and a new one.
    publish(&mut broker, other, RECORDS - 2, "a");
    publish(&mut broker, other, RECORDS - 1, "a");
    publish(&mut broker, other, RECORDS + 7, "a");
    assert_eq!(broker.received(other).len(), 3, "others are served in between");
    let turns = broker.run_until_idle();
    assert!(turns >= 20, "{turns} turns");
    let heard = broker.received(one);
    assert_eq!(heard.len(), 3, "{heard:?}");
    assert!(heard[0].contains(r#""a":"processed","status":"success","cid":"d""#), "{heard:?}");
    let stats = &heard[2];
    assert!(stats.contains(r#""records_deleted":10000"#), "{stats}");
    assert!(stats.contains(r#""topic_matches":20000"#), "{stats}");
    assert!(broker.engine.can_execute(one));
    assert_eq!(count(&mut broker, one, "/kind = 'a'"), 3);
    assert_eq!(count(&mut broker, one, "/kind = 'b'"), RECORDS / 2 - 1);
}

#[test]
fn deletions_run_one_after_another_when_clients_disconnect() {
    let (mut broker, one, other) = broker();
    let (third, acks) = (broker.client(), r#""cid":"d","a":"stats","t":"orders""#);
    broker.send(one, &format!(r#"{{"c":"sow_delete",{acks},"filter":"/kind = 'a'"}}"#));
    broker.send(other, &format!(r#"{{"c":"sow_delete",{acks},"filter":"/id < 100"}}"#));
    broker.send(third, &format!(r#"{{"c":"sow_delete",{acks}}}{{"id":19998}}"#));
    let stats = broker.received(third).concat();
    assert!(stats.contains(r#""records_deleted":0"#), "the first covers it: {stats}");
    broker.engine.disconnect(one);
    let again = broker.client();
    assert_eq!(again, one);
    broker.run_until_idle();
    assert_eq!(broker.received(again), [""; 0], "that is not for it");
    let stats = broker.received(other).concat();
    assert!(stats.contains(r#""records_deleted":50"#), "{stats}");
    assert_eq!(count(&mut broker, other, "/id >= 0"), RECORDS / 2 - 50);
}

/// Publishes records that expire after a second, and lets more than that pass.
fn publish_brief(broker: &mut TestBroker, by: ClientId, count: usize) {
    for id in RECORDS..RECORDS + count {
        let kind = if id % 2 == 0 { "a" } else { "b" };
        let body = format!(r#"{{"id":{id},"kind":"{kind}"}}"#);
        broker.send(by, &format!(r#"{{"c":"p","t":"orders","e":1}}{body}"#));
    }
}

fn len(broker: &mut TestBroker) -> usize {
    let topic = broker.engine.state.catalog.sow_ids()[0];
    let topic = broker.engine.state.catalog.sow_mut(topic).expect("a topic");
    topic.owned_topic().expect("no view").len()
}

const LATER: Now = Now { monotonic_ns: 5_000_000_000, unix_ns: 5_000_000_000 };

#[test]
fn records_expire_while_clients_delete() {
    let (mut broker, one, other) = broker();
    publish_brief(&mut broker, one, 100);
    broker.now = LATER;
    for turn in 0..20 {
        for client in [one, other] {
            if broker.engine.can_execute(client) {
                let filter = r#""filter":"/kind = 'none'""#;
                broker.send(client, &format!(r#"{{"c":"sow_delete","t":"orders",{filter}}}"#));
            }
        }
        let due = broker.engine.next_deadline(broker.now);
        assert_eq!(due.is_some_and(|due| due <= LATER.monotonic_ns), turn == 0);
        broker.turn();
        assert!(!broker.engine.state.deleting.is_empty());
    }
    assert_eq!(len(&mut broker), RECORDS);
}

#[test]
fn a_deletion_counts_covered_records_that_expire_meanwhile() {
    let (mut broker, one, other) = broker();
    publish_brief(&mut broker, one, 100);
    let delete = r#""t":"orders","cid":"d","a":"stats","filter":"/kind = 'a'""#;
    broker.send(one, &format!(r#"{{"c":"sow_delete",{delete}}}"#));
    broker.now = LATER;
    broker.turn();
    // In the row of an expired record, and not covered.
    publish(&mut broker, other, 2 * RECORDS, "a");
    broker.run_until_idle();
    let stats = broker.received(one).concat();
    assert!(stats.contains(r#""records_deleted":10050"#), "{stats}");
    assert_eq!(len(&mut broker), RECORDS / 2 + 1);
}

#[test]
fn a_deletion_that_is_sent_again_while_it_runs_is_awaited_and_runs_once() {
    let (mut broker, one, other) = broker();
    broker.engine.disconnect(one);
    let log_on = |broker: &mut TestBroker| {
        let client = broker.client();
        broker.send(client, r#"{"c":"logon","cid":"l","a":"processed","client_name":"a"}"#);
        broker.received(client);
        client
    };
    let fields = r#""t":"orders","s":7,"a":"completed,stats","filter":"/kind = 'a'""#;
    let first = log_on(&mut broker);
    broker.send(first, &format!(r#"{{"c":"sow_delete",{fields},"cid":"1"}}"#));
    broker.engine.disconnect(first);
    publish(&mut broker, other, 2 * RECORDS, "a");
    let again = log_on(&mut broker);
    broker.send(again, &format!(r#"{{"c":"sow_delete",{fields},"cid":"2"}}"#));
    assert!(!broker.engine.can_execute(again));
    broker.run_until_idle();
    let heard = broker.received(again);
    assert_eq!(heard.len(), 2, "{heard:?}");
    assert!(heard.iter().all(|ack| ack.contains(r#""cid":"2""#)), "{heard:?}");
    assert!(heard[1].contains(r#""records_deleted":10000"#), "{heard:?}");
    assert_eq!(count(&mut broker, other, "/kind = 'a'"), 1, "published since");
    // Once it is complete, it is a duplicate as any other.
    broker.send(again, &format!(r#"{{"c":"sow_delete",{fields},"cid":"3"}}"#));
    assert!(broker.received(again)[0].contains("duplicate"));
}

#[test]
fn mass_expiry_runs_in_steps() {
    let topic = TopicDefinition::new("orders", MessageType::Json).key("/id").expect("a path");
    let topic = topic.lifetime(Duration::from_secs(1));
    let mut broker = TestBroker::new(|config| config.topics = vec![topic]);
    let one = broker.client();
    (0..2_000).for_each(|id| publish(&mut broker, one, id, "a"));
    broker.now = Now { monotonic_ns: 5_000_000_000, unix_ns: 5_000_000_000 };
    broker.turn();
    let due = broker.engine.next_deadline(broker.now).expect("there is more");
    assert!(due <= broker.now.monotonic_ns, "at once");
    let rest = count(&mut broker, one, "/id >= 0");
    assert!((1..2_000).contains(&rest), "{rest} are left");
    for _ in 0..10 {
        broker.turn();
    }
    assert_eq!(count(&mut broker, one, "/id >= 0"), 0);
}

#[test]
fn sorting_has_a_budget() {
    let (mut broker, one, other) = broker();
    let sorted = |broker: &mut TestBroker, id, rest: &str| {
        let command = format!(r#""t":"orders","orderby":"/id DESC","cid":"s",{rest}"#);
        broker.send(id, &format!(r#"{{"c":"sow",{command}}}"#));
        broker.run_until_idle();
        broker.received(id)
    };
    let all = sorted(&mut broker, one, r#""a":"completed""#);
    assert!(all.last().expect("an end").contains("success"), "{:?}", all.last());
    broker.engine.state.config.query_sort_bytes = 256 << 10;
    let refused = sorted(&mut broker, one, r#""a":"completed""#);
    let why = refused.last().expect("an end");
    assert!(why.contains("failure") && why.contains("262144 bytes"), "{why}");
    assert!(why.contains("top_n") && why.contains(r#""cid":"s""#), "{why}");
    assert_eq!(refused.iter().filter(|it| it.contains("group_end")).count(), 0, "no end");
    // Its memory is free again, and that of others is their own.
    let top = sorted(&mut broker, one, r#""a":"completed","top_n":10"#);
    assert!(top.last().expect("an end").contains("success"), "{top:?}");
    // A subscription that would follow ends, and its connection stays.
    let subscribe = |broker: &mut TestBroker, rest: &str| {
        let command = format!(r#""t":"orders","cid":"w","sub_id":"w","a":"processed"{rest}"#);
        broker.send(other, &format!(r#"{{"c":"sow_and_subscribe",{command}}}"#));
        broker.run_until_idle();
        broker.received(other)
    };
    let refused = subscribe(&mut broker, r#","orderby":"/id","query_id":"q""#);
    let why = refused.last().expect("an end");
    assert!(why.contains("completed") && why.contains("failure"), "{why}");
    assert!(why.contains(r#""cid":"w""#) && why.contains(r#""query_id":"q""#), "{why}");
    broker.send(one, r#"{"c":"p","t":"orders","a":"processed"}{"id":1,"qty":1}"#);
    broker.run_until_idle();
    assert!(broker.received(other).is_empty(), "no updates without the records before");
    assert!(broker.engine.next_disconnect().is_none());
    // Its name is free again.
    let again = subscribe(&mut broker, r#","filter":"/id < 10""#);
    assert!(again.last().expect("an end").contains("group_end"), "{again:?}");
}
