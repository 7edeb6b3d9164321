//! The client and a server on loopback.

use crate::test_server::Served;
use lanecast_client::{
    Client, ClientError, Deletion, Event, Identity, Publication, Query, Settings, SubscribeOptions,
};
use std::time::Duration;

const PATIENCE: Option<Duration> = Some(Duration::from_secs(20));

/// Plays with a server that runs beside it.
fn beside(play: impl FnOnce(&str)) {
    let served = Served::new();
    play(&served.address());
}

fn json(server: &str) -> Client {
    Client::connect(server, &Identity::default()).expect("it is there")
}

#[test]
fn messages_reach_matching_subscribers() {
    let identity = Identity { message_type: "nvfix".to_owned(), ..Identity::default() };
    beside(|server| {
        let mut reader = Client::connect(server, &identity).expect("it is there");
        let all = reader.subscribe("orders", None).expect("a topic");
        let some = reader.subscribe("^ord", Some("/qty > 9990")).expect("a filter");
        let mut publisher = Client::connect(server, &identity).expect("it is there");
        for number in 0..10_000 {
            let body = format!("qty={number}\u{1}");
            publisher.publish("orders", body.as_bytes()).expect("it is taken");
        }
        publisher.flush().expect("all were");
        for number in 0..10_000 {
            let event = reader.next(PATIENCE).expect("connected").expect("it comes");
            let Event::Message(message) = event else { panic!("{event:?}") };
            assert_eq!(message.body, format!("qty={number}\u{1}").as_bytes());
            assert_eq!(message.topic, "orders");
            assert!(message.subscriptions.contains(&all));
            assert_eq!(message.subscriptions.contains(&some), number > 9_990);
        }
        reader.unsubscribe(&all);
        assert!(reader.next(Some(Duration::from_millis(1))).expect("connected").is_none());
    });
}

#[test]
fn a_refusal_of_the_server_is_an_error_with_its_reason() {
    let identity = Identity { message_type: "fix".to_owned(), ..Identity::default() };
    beside(|server| {
        let mut client = json(server);
        let error = client.subscribe("t", Some("/a = ")).expect_err("no filter");
        assert!(error.to_string().contains("bad filter"), "{error}");
        let error = client.publish("", b"x").and_then(|()| client.flush()).expect_err("no topic");
        assert!(matches!(error, ClientError::Refused { .. }), "{error}");
        let words = error.to_string();
        assert!(words.starts_with("cannot publish message 1: the server says: "), "{words}");
        client.publish("t", b"x").expect("said once");
        client.flush().expect("the next one is good");
        // Its number is that of the message, whatever was asked for between.
        let error = client.publish("", b"x").and_then(|()| client.flush()).expect_err("no topic");
        assert!(error.to_string().starts_with("cannot publish message 3: "), "{error}");

        let mut typed = Client::connect(server, &identity).expect("it is there");
        typed.subscribe("t", Some("/55 = 'IBM'")).expect("a filter");
        typed.publish("t", b"no tags here").expect("on its way");
        let error = typed.flush().expect_err("malformed");
        assert!(error.to_string().contains("bad message"), "{error}");

        let wrong = Identity { message_type: "morse".to_owned(), ..Identity::default() };
        let error = Client::connect(server, &wrong).expect_err("no such type");
        assert!(error.to_string().contains("invalid message type"), "{error}");
        // That is final, also for one that would connect again.
        let error = Client::connect_with(Settings::new([server], wrong)).expect_err("the same");
        assert!(matches!(error, ClientError::Refused { .. }), "{error}");
        // An unreachable server makes the client try the next one.
        let servers = ["127.0.0.1:1", server];
        let found = Client::connect_with(Settings::new(servers, Identity::default()));
        found.expect("the second one").flush().expect("nothing to wait for");
    });
    let error = Client::connect("127.0.0.1:1", &identity).expect_err("no server is there");
    assert!(matches!(error, ClientError::Connect { .. }), "{error}");
}

#[test]
fn kept_records_are_asked_for_and_removed() {
    beside(|server| {
        let mut client = json(server);
        for id in 0..1_000 {
            let body = format!(r#"{{"id":{id},"even":{}}}"#, id % 2 == 0);
            client.publish("stock", body.as_bytes()).expect("it is taken");
        }
        let question = Query {
            filter: Some("/even = true".to_owned()),
            order_by: Some("/id DESC".to_owned()),
            top: Some(300),
            skip: 100,
            ..Query::default()
        };
        let records = client.query("stock", &question).expect("an answer");
        let ids = records.iter().map(|record| String::from_utf8_lossy(&record.body).into_owned());
        let expected = (100..400).map(|at| format!(r#"{{"id":{},"even":true}}"#, 998 - 2 * at));
        assert!(ids.eq(expected));
        assert_eq!(client.delete("stock", "/even = true").expect("done"), 500);
        let left = client.query("stock", &Query::default()).expect("an answer");
        assert_eq!(left.len(), 500);
        let error = client.query("passing", &question).expect_err("keeps no records");
        assert!(error.to_string().contains("keeps no records"), "{error}");
    });
}

#[test]
fn records_are_followed_from_the_question_on() {
    beside(|server| {
        let mut client = json(server);
        for id in 0..250 {
            let body = format!(r#"{{"id":{id},"open":true}}"#);
            client.publish("stock", body.as_bytes()).expect("it is taken");
        }
        client.flush().expect("all were");
        let question = Query {
            filter: Some("/open = true".to_owned()),
            order_by: Some("/id".to_owned()),
            ..Query::default()
        };
        let wishes = SubscribeOptions { out_of_focus: true, ..SubscribeOptions::default() };
        let name = client.query_and_subscribe("stock", &question, &wishes).expect("it is kept");
        let mut next = || client.next(PATIENCE).expect("connected").expect("it comes");
        let mut keys = Vec::new();
        for id in 0..250 {
            let event = next();
            let Event::Record { subscription, record } = event else { panic!("{event:?}") };
            assert_eq!(subscription, name);
            assert_eq!(record.body, format!(r#"{{"id":{id},"open":true}}"#).as_bytes());
            keys.push(record.key);
        }
        assert!(matches!(next(), Event::Current { subscription } if subscription == name));
        let mut other = json(server);
        other.publish("stock", br#"{"id":7,"open":true,"qty":1}"#).expect("it is taken");
        other.publish("stock", br#"{"id":8,"open":false}"#).expect("it is taken");
        other.flush().expect("both were");
        let event = next();
        let Event::Message(message) = event else { panic!("{event:?}") };
        assert_eq!((message.key, message.subscriptions), (Some(keys[7]), vec![name]));
        let event = next();
        let Event::OutOfFocus { message, reason } = event else { panic!("{event:?}") };
        assert_eq!((message.key, &*reason), (Some(keys[8]), "match"));
    });
}

#[test]
fn records_that_cannot_be_sorted_end_their_subscription_alone() {
    let served = Served::with(|config| config.query_sort_bytes = 1 << 10);
    let mut client = json(&served.address());
    for id in 0..1_000 {
        client.publish("stock", format!(r#"{{"id":{id}}}"#).as_bytes()).expect("it is taken");
    }
    client.flush().expect("all were");
    let all = client.subscribe("stock", None).expect("a topic");
    let sorted = Query { order_by: Some("/id DESC".to_owned()), ..Query::default() };
    let error = match client.query_and_subscribe("stock", &sorted, &SubscribeOptions::default()) {
        // The server had answered before the call looked.
        Err(error) => error,
        Ok(name) => match client.next(PATIENCE).expect("connected").expect("it comes") {
            Event::Ended { subscription, error } if subscription == name => error,
            other => panic!("{other:?}"),
        },
    };
    assert!(error.to_string().contains("top_n"), "{error}");
    client.publish("stock", br#"{"id":1,"qty":1}"#).expect("it is taken");
    let event = client.next(PATIENCE).expect("connected").expect("it comes");
    assert!(matches!(event, Event::Message(message) if message.subscriptions == [all]));
    client.close().expect("the connection goes on");
}

#[test]
fn deltas_arrive_without_the_records_before() {
    beside(|server| {
        let mut client = json(server);
        client.publish("stock", br#"{"id":1,"qty":5,"by":"a"}"#).expect("it is taken");
        client.flush().expect("it was");
        let question = Query { select: Some("-/by".to_owned()), ..Query::default() };
        let wishes =
            SubscribeOptions { deltas: true, out_of_focus: true, ..SubscribeOptions::default() };
        client.subscribe_with("stock", &question, &wishes).expect("it is kept");
        let change = Publication {
            is_delta: true,
            correlation: Some("why"),
            ..Publication::of("stock", br#"{"id":1,"qty":6,"by":"b"}"#)
        };
        client.publish_with(&change).expect("it is taken");
        let event = client.next(PATIENCE).expect("connected").expect("it comes");
        let Event::Message(message) = event else { panic!("{event:?}") };
        assert_eq!(String::from_utf8_lossy(&message.body), r#"{"id":1,"qty":6}"#);
        assert_eq!(message.correlation.as_deref(), Some("why"));
        let sorted = Query { top: Some(1), ..question };
        let error = client.subscribe_with("stock", &sorted, &wishes).expect_err("no records come");
        assert!(matches!(error, ClientError::Query(_)), "{error}");
    });
}

#[test]
fn records_are_removed_by_their_numbers_and_by_their_keys() {
    beside(|server| {
        let mut client = json(server);
        for id in 0..4 {
            client.publish("stock", format!(r#"{{"id":{id}}}"#).as_bytes()).expect("it is taken");
        }
        let records = client.query("stock", &Query::default()).expect("an answer");
        let keys = [records[0].key, records[2].key];
        assert_eq!(client.delete_with("stock", &Deletion::Keys(&keys)).expect("done"), 2);
        let like = Deletion::Like(&records[1].body);
        assert_eq!(client.delete_with("stock", &like).expect("done"), 1);
        assert_eq!(client.delete_with("stock", &like).expect("done"), 0);
        let left = client.query("stock", &Query::default()).expect("an answer");
        assert_eq!(left, [records[3].clone()]);
        client.delete_with("stock", &Deletion::Like(b"")).expect_err("which one?");
    });
}

#[test]
fn only_the_server_receives_the_password() {
    let identity = Identity { password: "hunter2".to_owned(), ..Identity::default() };
    let settings = Settings::once("127.0.0.1:9007", identity);
    assert!(!format!("{settings:?}").contains("hunter2"));
}
