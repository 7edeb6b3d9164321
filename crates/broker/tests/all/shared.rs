//! Messages that many clients receive, each in its own order.

use crate::test_server::Served;
use lanecast_wire::command::{Field, Header};

const MESSAGES: u32 = 20_000;

fn body(number: u32) -> String {
    format!("{{\"id\":{number},\"text\":\"{}\"}}", "x".repeat(number as usize % 300))
}

#[test]
fn slow_and_quick_readers_get_everything_in_order() {
    let served = Served::new(|_| ());
    let mut publisher = served.client();
    let mut clients: Vec<_> = (0..12).map(|_| served.client()).collect();
    for (at, client) in clients.iter_mut().enumerate() {
        // Some choose the same name, and some want only a part.
        let name = ["same", "same", "other"][at % 3].to_owned() + &"+".repeat(at / 9);
        let filter = if at % 4 == 3 { r#","f":"/id % 3 = 0""# } else { "" };
        client.send(&format!(r#"{{"c":"subscribe","t":"t","sub_id":"{name}"{filter}}}"#));
        client.flush();
    }
    for number in 0..MESSAGES {
        publisher.send(&format!(r#"{{"c":"p","t":"t"}}{}"#, body(number)));
        if number % 5_000 == 0 {
            // An answer stands between what is shared.
            clients[1].send(&format!(r#"{{"c":"flush","cid":"{number}","a":"completed"}}"#));
        }
    }
    publisher.flush();
    for (at, client) in clients.iter_mut().enumerate() {
        let mut answers = 0;
        let step = if at % 4 == 3 { 3 } else { 1 };
        for number in (0..MESSAGES).step_by(step) {
            let mut message = client.next().expect("a message");
            while message.contains(r#""c":"ack""#) {
                answers += 1;
                message = client.next().expect("a message");
            }
            assert!(message.ends_with(&body(number)), "client {at}, message {number}");
        }
        let asked = if at == 1 { MESSAGES / 5_000 } else { 0 };
        for _ in answers..asked {
            assert!(client.next().expect("an answer").contains(r#""c":"ack""#));
        }
        client.flush();
    }
    assert!(served.end());
}

#[test]
fn a_header_known_by_its_bytes_means_what_it_says_now() {
    let served = Served::new(|_| ());
    let (mut publisher, mut json, mut fix) = (served.client(), served.client(), served.client());
    fix.send(r#"{"c":"logon","mt":"fix"}"#);
    for client in [&mut json, &mut fix] {
        client.send(r#"{"c":"subscribe","t":"t","sub_id":"1"}"#);
        client.flush();
    }
    let header = r#"{"c":"p","t":"t"}"#;
    let mut publish = |header: &str, body: &str| publisher.send(&format!("{header}{body}"));
    for (header, body) in [(header, "{}"), (header, "{ }"), (header, "")] {
        publish(header, body);
    }
    publish(r#"{"c":"p","t":"u"}"#, "{}");
    publish(r#"{"c":"p","t":"t","x":"mine"}"#, "{}");
    publish(r#"{"c":"p","t":"t"}"#, "{  }");
    publish(r#"{"c":"logon","mt":"fix"}"#, "");
    publish(header, "1=a\u{1}");
    publish(header, "1=b\u{1}");
    publisher.flush();
    for expected in ["{}", "{ }", "", "{}", "{  }"] {
        let message = json.next().expect("a message");
        let header = Header::parse(message.as_bytes()).expect("a header");
        assert_eq!(header.body(), expected.as_bytes());
        assert_eq!(header.text(Field::Topic).as_deref(), Some("t"));
    }
    for expected in ["1=a\u{1}", "1=b\u{1}"] {
        assert!(fix.next().expect("a message").ends_with(expected));
    }
    json.flush();
    fix.flush();
    assert!(served.end());
}

#[test]
fn frames_longer_than_what_is_read_at_a_time_come_whole() {
    let served = Served::new(|_| ());
    let (mut publisher, mut client) = (served.client(), served.client());
    client.send(r#"{"c":"subscribe","t":"t","sub_id":"1"}"#);
    client.flush();
    let bodies: Vec<String> =
        [3, 900_000, 200_000, 0, 131_000, 600_000].map(|size| "x".repeat(size)).into();
    let reader = std::thread::spawn(move || {
        let messages = (0..6).map(|_| client.next().expect("a message"));
        messages.map(|message| message.len() - message.find('}').expect("a header") - 1).collect()
    });
    for body in &bodies {
        publisher.send(&format!(r#"{{"c":"p","t":"t"}}{body}"#));
    }
    publisher.flush();
    let lengths: Vec<usize> = reader.join().expect("all come");
    assert_eq!(lengths, bodies.iter().map(String::len).collect::<Vec<_>>());
    assert!(served.end());
}
