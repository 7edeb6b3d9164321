//! Parts of messages, both ways: deltas that are published and told, fields that are selected.

use crate::test_server::{Client, Served};
use lanecast_filter::message_type::MessageType;
use lanecast_sow::TopicDefinition;

fn served() -> Served {
    Served::new(|settings| {
        let topic = |name, kind, key| TopicDefinition::new(name, kind).key(key).expect("a path");
        settings.topics = vec![
            topic("orders", MessageType::Json, "/id"),
            topic("orders", MessageType::Nvfix, "/id"),
            topic("orders", MessageType::Xml, "/order/@id"),
        ];
    })
}

#[test]
fn a_delta_is_merged_and_subscribers_receive_the_whole_record() {
    let served = served();
    let (mut publisher, mut reader) = (served.client(), served.client());
    reader.send(r#"{"c":"subscribe","t":"orders","sub_id":"s"}"#);
    reader.flush();
    publisher.send(r#"{"c":"p","t":"orders"}{"id":1,"st":"open","at":{"x":1,"y":2}}"#);
    publisher
        .send(r#"{"c":"delta_publish","cid":"10","t":"orders","x":"a1"}{"id":1,"at":{"y":3}}"#);
    publisher.send(r#"{"c":"delta_publish","t":"orders"}{"id":2,"st":"new"}"#);
    publisher.flush();
    let bodies: Vec<String> = (0..3).map(|_| reader.told().body).collect();
    let merged = r#"{"id":1,"st":"open","at":{"x":1,"y":3}}"#;
    assert_eq!(bodies[1..], [merged, r#"{"id":2,"st":"new"}"#]);
    reader.send(r#"{"c":"sow","cid":"q","t":"orders","f":"/id = 1"}"#);
    assert_eq!(reader.answer("q"), [merged]);
    let mut fix = served.client();
    fix.speak("nvfix");
    fix.send("{\"c\":\"p\",\"t\":\"orders\"}id=1\u{1}qty=5\u{1}px=7\u{1}");
    fix.send("{\"c\":\"delta_publish\",\"t\":\"orders\"}id=1\u{1}px=8\u{1}");
    fix.send(r#"{"c":"sow","cid":"q","t":"orders"}"#);
    assert_eq!(fix.answer("q"), ["id=1\u{1}qty=5\u{1}px=8\u{1}"]);
    assert!(served.end());
}

#[test]
fn a_delta_subscriber_receives_changed_fields_and_the_key() {
    let served = served();
    let (mut publisher, mut reader) = (served.client(), served.client());
    publisher.send(r#"{"c":"p","t":"orders"}{"id":1,"st":"open","px":1}"#);
    publisher.flush();
    let wants = r#""filter":"/st = 'open'","opts":"oof,no_empties","sub_id":"7""#;
    reader.send(&format!(r#"{{"c":"sow_and_delta_subscribe","cid":"7","t":"orders",{wants}}}"#));
    assert_eq!(reader.answer("7"), [r#"{"id":1,"st":"open","px":1}"#]);
    for body in [
        r#"{"id":1,"st":"open","px":2}"#,
        r#"{"id":1,"st":"open","px":2}"#,
        r#"{"id":1,"st":"held","px":2}"#,
        r#"{"id":1,"st":"open","px":3}"#,
        r#"{"id":2,"st":"open"}"#,
    ] {
        publisher.send(&format!(r#"{{"c":"p","t":"orders"}}{body}"#));
    }
    publisher.send(r#"{"c":"delta_publish","t":"orders"}{"id":2,"px":9}"#);
    publisher.flush();
    let told: Vec<_> = (0..5).map(|_| reader.told()).collect();
    let expected = [
        ("p", r#"{"id":1,"px":2}"#),
        ("oof", r#"{"id":1,"st":"held","px":2}"#),
        ("p", r#"{"id":1,"st":"open","px":3}"#),
        ("p", r#"{"id":2,"st":"open"}"#),
        ("p", r#"{"id":2,"px":9}"#),
    ];
    let told: Vec<(&str, &str)> = told.iter().map(|it| (&*it.command, &*it.body)).collect();
    assert_eq!(told, expected, "the repeated message is not worth a word");
    reader.flush();
    assert!(served.end());
}

#[test]
fn each_gets_the_fields_that_it_selected() {
    let served = served();
    let (mut publisher, mut reader) = (served.client(), served.client());
    publisher.send(r#"{"c":"p","t":"orders"}{"id":1,"px":1,"note":"long"}"#);
    publisher.flush();
    let ask = |command: &str, rest: &str| format!(r#"{{"c":"{command}","t":"orders",{rest}}}"#);
    reader.send(&ask("sow", r#""cid":"q","opts":"select=[-/,+/px]""#));
    assert_eq!(reader.answer("q"), [r#"{"px":1}"#]);
    reader.send(&ask("sow_and_subscribe", r#""opts":"select=[-/note]","sub_id":"a""#));
    assert_eq!(reader.answer(""), [r#"{"id":1,"px":1}"#]);
    reader.send(&ask("subscribe", r#""sub_id":"b","opts":"select=[-/,+/note]""#));
    reader.send(&ask("subscribe", r#""sub_id":"c","opts":"select=[-/note]""#));
    reader.send(&ask("subscribe", r#""sub_id":"d""#));
    let delta = r#""sub_id":"e","opts":"no_empties,select=[-/,+/note]""#;
    reader.send(&ask("delta_subscribe", delta));
    reader.flush();
    publisher.send(r#"{"c":"p","t":"orders"}{"id":1,"px":2,"note":"long"}"#);
    publisher.send(r#"{"c":"p","t":"passing"}{"id":1}"#);
    publisher.flush();
    let mut told: Vec<(String, String)> = (0..3)
        .map(|_| {
            let told = reader.told();
            let mut names: Vec<&str> = told.subscriptions.split(',').collect();
            names.sort_unstable();
            (names.join(","), told.body)
        })
        .collect();
    told.sort();
    let told: Vec<(&str, &str)> = told.iter().map(|(a, b)| (&**a, &**b)).collect();
    let whole = r#"{"id":1,"px":2,"note":"long"}"#;
    let expected = [("a,c", r#"{"id":1,"px":2}"#), ("b", r#"{"note":"long"}"#), ("d", whole)];
    assert_eq!(told, expected, "what did not change is not worth a word");
    reader.send(r#"{"c":"subscribe","t":"passing","sub_id":"p","opts":"select=[-/id]"}"#);
    reader.flush();
    publisher.send(r#"{"c":"p","t":"passing"}{"id":1,"st":2}"#);
    assert_eq!(reader.told().body, r#"{"st":2}"#);
    assert!(served.end());
}

#[test]
fn conflated_updates_are_delivered_when_due() {
    let served = served();
    let (mut publisher, mut reader) = (served.client(), served.client());
    reader.send(r#"{"c":"delta_subscribe","t":"orders","sub_id":"s","opts":"conflation=30ms"}"#);
    reader.flush();
    for px in 0..100 {
        publisher.send(&format!(r#"{{"c":"p","t":"orders"}}{{"id":1,"px":{px}}}"#));
    }
    let mut count = 1;
    while reader.told().body != r#"{"id":1,"px":99}"# {
        count += 1;
    }
    assert!(count < 100, "{count}");
    assert!(served.end());
}

#[test]
fn deltas_of_unsupported_message_types_are_refused() {
    let served = served();
    let (mut json, mut xml) = (served.client(), served.client());
    xml.speak("xml");
    let reason = |client: &mut Client, command: &str, expected: &str| {
        client.send(command);
        let answer = client.next().expect("an answer");
        assert!(answer.contains("failure") && answer.contains(expected), "{command}: {answer}");
    };
    let passing = r#"{"c":"delta_publish","t":"passing","a":"processed"}{"id":1}"#;
    reason(&mut json, passing, "passing keeps no records");
    json.send(r#"{"c":"p","t":"orders"}{"id":1}"#);
    let broken = r#"{"c":"delta_publish","t":"orders","a":"processed"}{"id":1,}"#;
    reason(&mut json, broken, "malformed");
    let unsigned = r#"{"c":"subscribe","t":"a","sub_id":"s","opts":"select=[/a]","a":"processed"}"#;
    reason(&mut json, unsigned, "+/a if it is to stay");
    let deltas = r#"{"c":"delta_subscribe","t":"orders","sub_id":"s","a":"processed"}"#;
    reason(&mut xml, deltas, "xml messages have no deltas");
    xml.send(r#"{"c":"p","t":"orders"}<order id="1"/>"#);
    let delta = r#"{"c":"delta_publish","t":"orders","a":"processed"}<order id="1"><q/></order>"#;
    reason(&mut xml, delta, "xml messages have no deltas");
    let select = r#"{"c":"sow","t":"orders","opts":"select=[-/order]","a":"processed"}"#;
    reason(&mut xml, select, "no fields to select");
    assert!(served.end());
}
