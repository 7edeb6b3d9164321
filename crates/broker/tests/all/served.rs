//! A server on loopback, and clients that speak to it in bytes.

use crate::test_server::Served;
use lanecast_wire::command::{Field, Header};
use std::io::Write;

#[test]
fn each_gets_what_its_filter_lets_through() {
    let served = Served::new(|_| ());
    let (mut publisher, mut all, mut some) = (served.client(), served.client(), served.client());
    for client in [&mut publisher, &mut all, &mut some] {
        client.send(r#"{"c":"logon","cid":"0","a":"processed","mt":"nvfix"}"#);
        let answer = client.next().expect("an answer");
        assert!(answer.starts_with(r#"{"c":"ack","a":"processed","status":"success""#), "{answer}");
    }
    all.send(r#"{"c":"subscribe","cid":"1","t":"orders","sub_id":"everything"}"#);
    let filter = r"/symbol = 'IBM' and /qty >= 5000";
    let rest = format!(r#""f":"{filter}","a":"processed","sub_id":"big""#);
    some.send(&format!(r#"{{"c":"subscribe","cid":"1","t":"orders",{rest}}}"#));
    some.expect(r#"{"c":"ack","a":"processed","status":"success","cid":"1","sub_id":"big"}"#);
    all.flush();
    let bodies =
        ["symbol=IBM\u{1}qty=4999\u{1}", "symbol=IBM\u{1}qty=5000\u{1}", "symbol=MSFT\u{1}"];
    for body in bodies {
        publisher.send(&format!(r#"{{"c":"p","t":"orders"}}{body}"#));
    }
    publisher.flush();
    for body in bodies {
        let header = format!(r#"{{"c":"p","t":"orders","sids":"everything","l":{}}}"#, body.len());
        all.expect(&format!("{header}{body}"));
    }
    let body = bodies[1];
    some.expect(&format!(r#"{{"c":"p","t":"orders","sids":"big","l":{}}}{body}"#, body.len()));
    some.send(r#"{"c":"unsubscribe","sub_id":"big"}"#);
    some.flush();
    publisher.send(&format!(r#"{{"c":"p","t":"orders"}}{body}"#));
    publisher.flush();
    some.flush();
    assert!(served.end());
}

#[test]
fn a_message_comes_once_however_many_subscriptions_want_it() {
    let served = Served::new(|_| ());
    let mut client = served.client();
    for (name, topic) in [("a", "t.1"), ("b", "t.1"), ("c", "^t"), ("d", "t.2")] {
        client.send(&format!(r#"{{"c":"subscribe","t":"{topic}","sub_id":"{name}"}}"#));
    }
    client.send(r#"{"c":"publish","t":"t.1","x":"mine"}{"id":1}"#);
    let message = client.next().expect("a message");
    let header = Header::parse(message.as_bytes()).expect("a header");
    let names = header.text(Field::SubscriptionIds).expect("the recipients");
    let mut names: Vec<&str> = names.split(',').collect();
    names.sort_unstable();
    assert_eq!(names, ["a", "b", "c"]);
    assert_eq!(header.text(Field::CorrelationId).as_deref(), Some("mine"));
    assert_eq!(header.body(), br#"{"id":1}"#);
    client.send(r#"{"c":"unsubscribe","sub_id":"all"}"#);
    client.send(r#"{"c":"publish","t":"t.1"}{"id":2}"#);
    client.flush();
    assert!(served.end());
}

#[test]
fn filters_may_ask_for_the_name_of_the_server() {
    let served = Served::new(|settings| settings.name = "east".into());
    let mut client = served.client();
    for (name, filter) in [("a", "INSTANCE_NAME() = /at"), ("b", "AMPS_INSTANCE_NAME() = 'west'")] {
        client.send(&format!(r#"{{"c":"subscribe","t":"t","sub_id":"{name}","f":"{filter}"}}"#));
    }
    client.send(r#"{"c":"publish","t":"t"}{"at":"west"}"#);
    client.send(r#"{"c":"publish","t":"t"}{"at":"east"}"#);
    let message = client.next().expect("a message");
    let header = Header::parse(message.as_bytes()).expect("a header");
    assert_eq!(header.text(Field::SubscriptionIds).as_deref(), Some("a"));
    assert_eq!(header.body(), br#"{"at":"east"}"#);
    client.flush();
    assert!(served.end());
}

#[test]
fn impossible_commands_fail_with_a_reason() {
    let served = Served::new(|settings| settings.subscriptions_max = 2);
    let mut client = served.client();
    let mut reason = |command: &str, expected: &str| {
        client.send(command);
        let answer = client.next().expect("an answer");
        let header = Header::parse(answer.as_bytes()).expect("a header");
        assert_eq!(header.text(Field::Status).as_deref(), Some("failure"), "{command}: {answer}");
        let reason = header.text(Field::Reason).unwrap_or_default();
        assert!(reason.contains(expected), "{command}: {reason}");
    };
    let subscribe = |rest: &str| format!(r#"{{"c":"subscribe","a":"processed",{rest}}}"#);
    reason(&subscribe(r#""t":"a","sub_id":"1","f":"/a =""#), "bad filter");
    reason(&subscribe(r#""t":"a(","sub_id":"1""#), "bad regex topic");
    reason(&subscribe(r#""sub_id":"1""#), "topic is missing");
    reason(&subscribe(r#""t":"a""#), "bad sub_id");
    reason(&subscribe(r#""t":"a","sub_id":"1,2""#), "bad sub_id");
    reason(&subscribe(r#""t":"a","sub_id":"1","o":"dance""#), "the option dance");
    reason(&subscribe(r#""t":"a","sub_id":"1","bm":"0""#), "bookmarks");
    reason(r#"{"c":"oof","a":"processed"}"#, "not for servers");
    reason(r#"{"c":"dance","a":"processed"}"#, "cmd");
    reason(r#"{"c":"p","a":"soon","t":"a"}"#, "ack_type");
    reason(r#"{"c":"p","a":"persisted","t":"a"}1"#, "not persisted");
    reason(r#"{"c":"p","a":"processed","t":"a","s":"x"}1"#, "seq");
    reason(r#"{"c":"heartbeat","o":"start,0","a":"processed"}"#, "bad heartbeat");
    reason(r#"{"c":"logon","mt":"morse","a":"processed"}"#, "invalid message type");
    assert!(served.end());
}

#[test]
fn limits_hold() {
    let served = Served::new(|settings| {
        settings.subscriptions_max = 2;
        settings.clients_max = 1;
        settings.topics_max = 3;
    });
    let mut client = served.client();
    for name in ["a", "b", "c"] {
        client.send(&format!(r#"{{"c":"subscribe","t":"t","sub_id":"{name}","a":"processed"}}"#));
    }
    assert!(client.next().expect("an answer").contains("success"));
    assert!(client.next().expect("an answer").contains("success"));
    assert!(client.next().expect("an answer").contains("may have 2"));
    client.send(r#"{"c":"subscribe","t":"u","sub_id":"a","o":"replace","a":"processed"}"#);
    assert!(client.next().expect("an answer").contains("success"));
    client.send(r#"{"c":"subscribe","t":"u","sub_id":"a","a":"processed"}"#);
    assert!(client.next().expect("an answer").contains("already exists"));
    for topic in ["v", "w"] {
        client.send(&format!(r#"{{"c":"p","t":"{topic}","a":"processed"}}"#));
    }
    assert!(client.next().expect("an answer").contains("success"));
    assert!(client.next().expect("an answer").contains("there are 3 already"));
    let mut other = served.client();
    assert_eq!(other.next(), None, "there is room for one only");
    client.flush();
    assert!(served.end());
}

#[test]
fn invalid_bytes_end_only_their_connection() {
    let served = Served::new(|settings| settings.frame_bytes_max = 2_000);
    let mut good = served.client();
    good.send(r#"{"c":"subscribe","t":"t","sub_id":"s"}"#);
    good.flush();
    for bytes in [&b"\0\0\0\x05hello"[..], b"\xff\xff\xff\xff", b"GET / HTTP/1.1\r\n\r\n"] {
        let mut bad = served.client();
        bad.stream.write_all(bytes).expect("it listens");
        assert_eq!(bad.next(), None);
    }
    let mut half = served.client();
    half.stream.write_all(b"\0\0\x01\0{\"c\":\"p\"").expect("it listens");
    drop(half);
    good.send(r#"{"c":"p","t":"t"}still"#);
    good.expect(r#"{"c":"p","t":"t","sids":"s","l":5}still"#);
    assert!(served.end());
}

#[test]
fn a_slow_consumer_is_disconnected_and_delays_no_other_client() {
    let served = Served::new(|settings| settings.send_queue_bytes_max = 256 << 10);
    let (mut slow, mut quick, mut publisher) = (served.client(), served.client(), served.client());
    for client in [&mut slow, &mut quick] {
        client.send(r#"{"c":"subscribe","t":"t","sub_id":"s"}"#);
        client.flush();
    }
    let body = "x".repeat(10_000);
    let mut read = 0;
    // More than all buffers hold; the quick one keeps up.
    for _ in 0..2_000 {
        publisher.send(&format!(r#"{{"c":"p","t":"t"}}{body}"#));
        assert!(quick.next().expect("it stays").ends_with("xxx"));
        read += 1;
    }
    assert_eq!(read, 2_000);
    let got = std::iter::from_fn(|| slow.next()).count();
    assert!(got < 2_000, "it was let go");
    assert!(served.end());
}

#[test]
fn a_repeated_sequence_number_is_not_published_again() {
    let served = Served::new(|_| ());
    let mut reader = served.client();
    reader.send(r#"{"c":"subscribe","t":"t","sub_id":"s"}"#);
    reader.flush();
    for (first, last) in [(1, 3), (2, 5)] {
        let mut publisher = served.client();
        publisher.send(r#"{"c":"logon","client_name":"me","a":"processed"}"#);
        let answer = publisher.next().expect("an answer");
        let header = Header::parse(answer.as_bytes()).expect("a header");
        let known = header.number(Field::Sequence).expect("a number").expect("there");
        assert_eq!(known, if first == 1 { 0 } else { 3 });
        for number in first..=last {
            publisher.send(&format!(r#"{{"c":"p","t":"t","s":{number}}}{number}"#));
        }
        publisher.flush();
    }
    for number in 1..=5 {
        reader.expect(&format!(r#"{{"c":"p","t":"t","sids":"s","l":1}}{number}"#));
    }
    reader.flush();
    assert!(served.end());
}

#[test]
fn a_name_is_one_connections() {
    let served = Served::new(|_| ());
    let (mut old, mut other, mut new) = (served.client(), served.client(), served.client());
    old.send(r#"{"c":"logon","client_name":"desk","user_id":"a","a":"processed"}"#);
    assert!(old.next().expect("an answer").contains("success"));
    other.send(r#"{"c":"logon","client_name":"desk","user_id":"b","a":"processed"}"#);
    assert!(other.next().expect("an answer").contains("name in use"));
    new.send(r#"{"c":"logon","client_name":"desk","user_id":"a","a":"processed"}"#);
    assert!(new.next().expect("an answer").contains("success"));
    assert_eq!(old.next(), None, "the new one took its place");
    new.send(r#"{"c":"logon","a":"processed"}"#);
    assert!(new.next().expect("an answer").contains("already exists"));
    for name in ["x".repeat(256), "a\\nb".to_owned()] {
        let mut strange = served.client();
        strange.send(&format!(r#"{{"c":"logon","client_name":"{name}","a":"processed"}}"#));
        assert!(strange.next().expect("an answer").contains("bad client_name"));
    }
    assert!(served.end());
}

#[test]
fn signs_of_life_are_given_and_wanted() {
    let served = Served::new(|_| ());
    let mut client = served.client();
    client.send(r#"{"c":"heartbeat","cid":"1","opts":"start,1","a":"processed"}"#);
    client.expect(r#"{"c":"ack","a":"processed","status":"success","cid":"1"}"#);
    client.expect(r#"{"c":"heartbeat"}"#);
    client.send(r#"{"c":"heartbeat","opts":"beat"}"#);
    let beats = std::iter::from_fn(|| client.next()).take(10).count();
    assert!((2..10).contains(&beats), "{beats}: it fell silent and was let go");
    assert!(served.end());
}
