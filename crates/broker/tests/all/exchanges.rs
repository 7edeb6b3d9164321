//! Captured commands of an independent client, sent to a server in both spellings of field names.

use crate::test_server::Served;
use lanecast_filter::message_type::MessageType;
use lanecast_sow::TopicDefinition;
use lanecast_wire::command::{Field, Header};

const EXCHANGES: &str = include_str!("../../../wire/src/command/exchanges.txt");

/// The frame of that name, without its length.
fn exchange(name: &str) -> &'static str {
    let line = EXCHANGES.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    &line.unwrap_or_else(|| panic!("no {name}"))[8..]
}

/// The command with each name of its header spelt by `name`.
fn spelt(command: &str, name: fn(Field) -> &'static str) -> String {
    let header = Header::parse(command.as_bytes()).expect("a header");
    let (mut text, body) = (command[..header.len()].to_owned(), &command[header.len()..]);
    for field in Field::ALL {
        for other in [field.short(), field.long()] {
            for before in ['{', ','] {
                let quoted = format!("{before}\"{other}\":");
                text = text.replace(&quoted, &format!("{before}\"{}\":", name(*field)));
            }
        }
    }
    text + body
}

/// The frame with the keys of records and the version as the server makes them.
fn neutral(frame: &str) -> String {
    let mut text = frame.to_owned();
    for name in ["\"k\":\"", "\"version\":\""] {
        let mut parts = text.split(name);
        let mut masked = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let value = part.find('"').expect("it ends");
            masked = masked + name + &part[value..];
        }
        text = masked;
    }
    text
}

/// The whole conversation, in the order in which it was had.
fn hold(name: fn(Field) -> &'static str) {
    let served = Served::new(|settings| {
        settings.topics =
            vec![TopicDefinition::new("orders", MessageType::Json).key("/id").expect("a path")];
    });
    let mut client = served.client();
    let mut say = |command: &str, answers: &[&str]| {
        client.send(&spelt(command, name));
        for answer in answers {
            let told = client.next().expect("an answer");
            assert_eq!(neutral(&told), neutral(answer), "{command}");
        }
    };
    say(exchange("C logon"), &[exchange("S logon")]);
    say(exchange("C publish"), &[]);
    for id in [2, 3] {
        say(&format!(r#"{{"c":"p","t":"orders"}}{{"id":{id},"st":"open"}}"#), &[]);
    }
    say(exchange("C flush"), &[exchange("S processed"), exchange("S completed")]);
    let (begin, end) = (exchange("S group_begin"), exchange("S group_end"));
    let completed = exchange("S processed with a query").replace("processed", "completed");
    let processed = exchange("S processed with a query");
    say(exchange("C sow"), &[processed, begin, exchange("S sow"), end, &completed]);
    let seven = |frame: &str| frame.replace("\"5\"", "\"7\"");
    let group = [seven(processed), seven(begin), seven(exchange("S sow")), seven(end)];
    let group: Vec<&str> = group.iter().map(|frame| &**frame).collect();
    say(exchange("C sow_and_subscribe"), &group);
    say(r#"{"c":"p","t":"orders"}{"id":2,"st":"filled"}"#, &[exchange("S oof")]);
    let update = exchange("S publish").replace("\"bm\":\"1111|5|\",", "");
    say(r#"{"c":"p","t":"orders"}{"id":1,"st":"open","q":7}"#, &[&update]);
    let merged = r#"{"id":1,"st":"open","q":7,"px":3}"#;
    let delta =
        update.replace("\"l\":26}", "\"l\":33}").replace(&update[update.len() - 26..], merged);
    say(exchange("C delta_publish"), &[&delta]);
    say(exchange("C unsubscribe"), &[]);
    say(exchange("C sow_delete by filter"), &[exchange("S deleted")]);
    let deleted = exchange("S deleted").replace("\"11\"", "\"12\"");
    say(exchange("C sow_delete by body"), &[&deleted.replace("s\":3", "s\":2")]);
    say(exchange("C publish with a sequence"), &[]);
    let started = exchange("S processed").replace("\"4\"", "\"1\"");
    say(exchange("C heartbeat start"), &[&started, exchange("S heartbeat")]);
    say(exchange("C heartbeat beat"), &[exchange("S heartbeat")]);
    for later in ["C subscribe from a bookmark", "C subscribe again"] {
        client.send(&spelt(exchange(later), name));
        let answer = client.next().expect("an answer");
        assert!(answer.contains("failure") && answer.contains("bookmarks"), "{answer}");
    }
    assert!(served.end());
}

#[test]
fn a_captured_conversation_is_held_in_short_names() {
    hold(Field::short);
}

#[test]
fn a_captured_conversation_is_held_in_long_names() {
    hold(Field::long);
}
