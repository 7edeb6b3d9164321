//! Topics whose last messages are kept: asked for, followed, removed.

use crate::test_server::Served;
use lanecast_broker::{Engine, Now, ServerConfig, StorageConfig};
use lanecast_filter::message_type::MessageType;
use lanecast_sow::TopicDefinition;
use lanecast_wire::command::{Field, Header};
use std::time::Duration;

fn served() -> Served {
    Served::new(|settings| {
        let orders = TopicDefinition::new("orders", MessageType::Json).key("/id").expect("a path");
        let brief = TopicDefinition::new("brief", MessageType::Json).key("/id").expect("a path");
        settings.topics = vec![orders, brief.lifetime(Duration::from_millis(50))];
    })
}

#[test]
fn records_are_queried_by_filter_order_and_number() {
    let served = served();
    let mut client = served.client();
    for (id, price) in [(1, 30), (2, 10), (3, 20), (2, 40)] {
        client.send(&format!(r#"{{"c":"p","t":"orders"}}{{"id":{id},"px":{price}}}"#));
    }
    client.send(r#"{"c":"sow","cid":"5","t":"orders","bs":10,"a":"processed,completed"}"#);
    client.expect(r#"{"c":"ack","a":"processed","status":"success","cid":"5"}"#);
    let mut all = client.answer("5");
    all.sort();
    assert_eq!(all, [r#"{"id":1,"px":30}"#, r#"{"id":2,"px":40}"#, r#"{"id":3,"px":20}"#]);
    client.expect(r#"{"c":"ack","a":"completed","status":"success","cid":"5","query_id":"5"}"#);
    let rest = r#""orderby":"/px DESC","top_n":2,"a":"stats","query_id":"q""#;
    client.send(&format!(r#"{{"c":"sow","cid":"6","t":"orders","f":"/px > 10",{rest}}}"#));
    assert_eq!(client.answer("q"), [r#"{"id":2,"px":40}"#, r#"{"id":1,"px":30}"#]);
    let stats = client.next().expect("numbers");
    let header = Header::parse(stats.as_bytes()).expect("a header");
    assert_eq!(header.number(Field::RecordsReturned), Ok(Some(2)));
    assert_eq!(header.number(Field::TopicMatches), Ok(Some(3)));
    assert!(served.end());
}

#[test]
fn a_subscriber_receives_the_state_and_then_each_change_once() {
    let served = served();
    let (mut publisher, mut reader) = (served.client(), served.client());
    for id in 0..2_000 {
        publisher.send(&format!(r#"{{"c":"p","t":"orders"}}{{"id":{id},"n":0}}"#));
    }
    publisher.flush();
    reader.send(r#"{"c":"sow_and_subscribe","cid":"7","t":"orders","bs":100,"sub_id":"7"}"#);
    for n in 1..=2_000 {
        let id = n * 7 % 2_000;
        publisher.send(&format!(r#"{{"c":"p","t":"orders"}}{{"id":{id},"n":{n}}}"#));
    }
    publisher.flush();
    let mut state: Vec<String> = reader.answer("7");
    assert_eq!(state.len(), 2_000);
    let number = |body: &str| -> u32 {
        let text = body.rsplit(':').next().expect("a number").trim_end_matches('}');
        text.parse().expect("a number")
    };
    let newest = state.iter().map(|body| number(body)).max().expect("some");
    for n in newest + 1..=2_000 {
        let update = reader.told();
        assert_eq!(number(&update.body), n, "none is missing, none comes twice");
        assert_eq!(update.subscriptions, "7");
        state.push(update.body);
    }
    reader.flush();
    assert!(served.end());
}

#[test]
fn a_subscriber_is_told_which_records_leave_and_why() {
    let served = served();
    let mut client = served.client();
    client.send(r#"{"c":"p","t":"orders"}{"id":1,"st":"open"}"#);
    let rest = r#""filter":"/st = 'open'","opts":"oof","query_id":"7","sub_id":"7""#;
    client.send(&format!(r#"{{"c":"sow_and_subscribe","cid":"7","t":"orders","bs":10,{rest}}}"#));
    assert_eq!(client.answer("7"), [r#"{"id":1,"st":"open"}"#]);
    let mut told = |command: &str, kind: &str, reason: &str, body: &str| {
        client.send(command);
        let told = client.told();
        assert_eq!((&*told.command, &*told.reason, &*told.body), (kind, reason, body));
    };
    let filled = r#"{"id":1,"st":"filled"}"#;
    told(&format!(r#"{{"c":"p","t":"orders"}}{filled}"#), "oof", "match", filled);
    let open = r#"{"id":2,"st":"open"}"#;
    told(&format!(r#"{{"c":"p","t":"orders"}}{open}"#), "p", "", open);
    told(r#"{"c":"sow_delete","t":"orders","filter":"/id = 2"}"#, "oof", "deleted", open);
    told(&format!(r#"{{"c":"p","t":"orders"}}{open}"#), "p", "", open);
    told(r#"{"c":"sow_delete","t":"orders"}{"id":2}"#, "oof", "deleted", open);
    client.send(r#"{"c":"sow_delete","cid":"11","t":"orders","filter":"/id = 1","a":"stats"}"#);
    let numbers = r#""records_deleted":1,"matches":1,"topic_matches":1"#;
    client.expect(&format!(r#"{{"c":"ack","a":"stats","status":"success","cid":"11",{numbers}}}"#));
    client.send(r#"{"c":"subscribe","t":"brief","opts":"oof","sub_id":"b"}"#);
    client.send(r#"{"c":"p","t":"brief"}{"id":9}"#);
    assert!(client.next().expect("an update").starts_with(r#"{"c":"p","t":"brief","k":"#));
    let expired = client.next().expect("its time is over");
    assert!(expired.contains(r#""reason":"expired""#), "{expired}");
    assert!(served.end());
}

#[test]
fn invalid_queries_fail_with_a_reason() {
    let served = served();
    let mut client = served.client();
    let mut reason = |command: &str, expected: &str| {
        client.send(command);
        let answer = client.next().expect("an answer");
        assert!(answer.contains("failure") && answer.contains(expected), "{command}: {answer}");
    };
    reason(r#"{"c":"sow","t":"passing","a":"processed"}"#, "passing keeps no records");
    reason(r#"{"c":"sow","t":"orders","orderby":"px","a":"processed"}"#, "bad orderby");
    reason(r#"{"c":"sow","t":"orders","sow_keys":"a","a":"processed"}"#, "bad sow_keys");
    reason(r#"{"c":"sow","t":"orders","opts":"skip_n=x","a":"processed"}"#, "skip_n");
    reason(r#"{"c":"sow","t":"orders","opts":"top_n","a":"processed"}"#, "top_n=VALUE");
    reason(r#"{"c":"subscribe","t":"orders","opts":"oof=1","a":"processed"}"#, "oof stands alone");
    let auto =
        r#"{"c":"subscribe","t":"orders","cid":"1","opts":"conflation=auto","a":"processed"}"#;
    reason(auto, "100ms");
    reason(r#"{"c":"sow","t":"orders","bm":"0","a":"processed"}"#, "bookmarks");
    let by_bookmark = r#"{"c":"sow_delete","t":"orders","bm":"1|1|","f":"/id=1","a":"stats"}"#;
    reason(by_bookmark, "bookmarks");
    for (command, filter) in [
        ("subscribe", "CLIENT_NAME() = 'a'"),
        ("delta_subscribe", "/until > UNIX_TIMESTAMP()"),
        ("sow_and_subscribe", "IF(UNIX_TIMESTAMP() > 1, /a, /b) = 1"),
    ] {
        let opts = if command == "delta_subscribe" { "none" } else { "oof" };
        let rest = format!(r#""t":"orders","cid":"1","filter":"{filter}","a":"processed""#);
        reason(&format!(r#"{{"c":"{command}","opts":"{opts}",{rest}}}"#), "matched it before");
    }
    reason(r#"{"c":"sow_delete","t":"orders","a":"processed"}"#, "give one of");
    reason(r#"{"c":"p","t":"orders","a":"processed"}{"px":1}"#, "/id");
    reason(r#"{"c":"p","t":"orders","a":"processed"}{"px":"#, "malformed");
    client.send(r#"{"c":"sow_and_subscribe","t":"orders","sub_id":"s"}"#);
    assert!(client.answer("").is_empty());
    client.send(r#"{"c":"unsubscribe","sub_id":"s"}"#);
    client.send(r#"{"c":"p","t":"orders"}{"id":1}"#);
    client.flush();
    assert!(served.end());
}

#[test]
fn a_lifetime_of_zero_never_expires() {
    let served = served();
    let mut client = served.client();
    client.send(r#"{"c":"subscribe","t":"brief","opts":"oof","sub_id":"b"}"#);
    client.send(r#"{"c":"p","t":"brief","e":0}{"id":1}"#);
    client.send(r#"{"c":"p","t":"brief"}{"id":2}"#);
    let told: Vec<_> = (0..3).map(|_| client.told()).collect();
    let told: Vec<_> = told.iter().map(|told| (&*told.reason, &*told.body)).collect();
    assert_eq!(told, [("", r#"{"id":1}"#), ("", r#"{"id":2}"#), ("expired", r#"{"id":2}"#)]);
    client.send(r#"{"c":"sow","t":"brief","query_id":"q"}"#);
    assert_eq!(client.answer("q"), [r#"{"id":1}"#]);
    assert!(served.end());
}

#[test]
fn sow_and_subscribe_on_a_transient_topic_fails_and_the_connection_stays() {
    let served = Served::new(|_| {});
    let mut client = served.client();
    let rest = r#""t":"new","query_id":"q","sub_id":"s","cid":"1","a":"processed,completed,stats""#;
    client.send(&format!(r#"{{"c":"sow_and_subscribe",{rest},"filter":"/id > 1"}}"#));
    let ack = r#"{"c":"ack","a":"processed","status":"success","cid":"1","query_id":"q"}"#;
    client.expect(ack);
    client.expect(r#"{"c":"group_begin","query_id":"q"}"#);
    client.expect(r#"{"c":"group_end","query_id":"q"}"#);
    client.expect(&ack.replace("processed", "completed"));
    let stats = client.next().expect("stats");
    assert!(stats.contains(r#""records_returned":0"#), "{stats}");
    client.send(r#"{"c":"p","t":"new"}{"id":1}"#);
    client.send(r#"{"c":"p","t":"new"}{"id":2}"#);
    let told = client.told();
    assert_eq!((&*told.reason, &*told.body), ("", r#"{"id":2}"#));
    client.send(r#"{"c":"sow_and_subscribe","t":"new","query_id":"silent","sub_id":"t"}"#);
    client.expect(r#"{"c":"group_begin","query_id":"silent"}"#);
    client.expect(r#"{"c":"group_end","query_id":"silent"}"#);
    for wrong in [r#""top_n":"x""#, r#""orderby":"/a up""#, r#""sow_keys":"x""#] {
        let rest = r#""t":"newer","sub_id":"w","cid":"2","a":"processed""#;
        client.send(&format!(r#"{{"c":"sow_and_subscribe",{rest},{wrong}}}"#));
        let answer = client.next().expect("an answer");
        assert!(answer.contains("failure"), "{wrong}: {answer}");
    }
    assert!(served.end());
}

#[test]
fn deltas_make_no_record_longer_than_a_frame() {
    let directory = tempfile::tempdir().expect("a directory");
    let served = Served::new(|settings| {
        let topic =
            |name| TopicDefinition::new(name, MessageType::Json).key("/id").expect("a path");
        settings.topics = vec![topic("orders"), topic("fills").durable()];
        let storage = StorageConfig::at(directory.path());
        settings.storage = Some(StorageConfig { segment_bytes: 64 << 10, ..storage });
        settings.frame_bytes_max = 1_024;
    });
    let mut client = served.client();
    let note = "x".repeat(600);
    for topic in ["orders", "fills"] {
        let mut merge = |field: &str| {
            let delta = format!(r#"{{"id":1,"{field}":"{note}"}}"#);
            let rest = format!(r#""t":"{topic}","cid":"1","a":"processed""#);
            client.send(&format!(r#"{{"c":"delta_publish",{rest}}}{delta}"#));
            client.next().expect("an answer")
        };
        let heard = [merge("a"), merge("a"), merge("b")];
        assert!(heard[0].contains("success") && heard[1].contains("success"), "{heard:?}");
        assert!(heard[2].contains("failure") && heard[2].contains("1024 are allowed"), "{heard:?}");
    }
    assert!(served.end());
}

#[test]
fn a_query_creates_no_topic() {
    let served = Served::new(|settings| settings.topics_max = 1);
    let mut client = served.client();
    for command in ["sow", "sow_delete", "delta_publish"] {
        let rest = r#""t":"none","sow_keys":"1","cid":"1","a":"processed""#;
        client.send(&format!(r#"{{"c":"{command}",{rest}}}"#));
        let answer = client.next().expect("an answer");
        assert!(answer.contains("none keeps no records"), "{answer}");
    }
    client.send(r#"{"c":"p","t":"t","cid":"2","a":"processed"}1"#);
    client.expect(r#"{"c":"ack","a":"processed","status":"success","cid":"2"}"#);
    assert!(served.end());
}

#[test]
fn a_lifetime_of_centuries_does_not_overflow() {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 3_600);
    let orders = TopicDefinition::new("orders", MessageType::Json).key("/id").expect("a path");
    let topics = vec![orders.lifetime(500 * YEAR)];
    let mut engine =
        Engine::new(ServerConfig { topics, ..ServerConfig::default() }).expect("settings");
    // A host that has run for longer than its wall clock says.
    let now = Now { monotonic_ns: (100 * YEAR).as_nanos() as u64, unix_ns: 1 };
    let client = engine.connect(now.monotonic_ns).expect("room");
    engine.execute(now, client, br#"{"c":"p","t":"orders"}{"id":1}"#);
    assert_eq!(engine.next_deadline(now), Some(u64::MAX));
}
