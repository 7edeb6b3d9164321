//! Hostile clients of a content server's engine, between honest ones: their commands are refused in
//! words or done, never a panic; an honest publisher still reaches an honest subscriber.
#![no_main]

use lanecast_broker::{ClientId, Engine, Now, ServerConfig, TopicDefinition, ViewDefinition};
use lanecast_filter::message_type::MessageType;
use lanecast_fuzz::Script;
use lanecast_wire::command::{Field, HeaderWriter};
use libfuzzer_sys::fuzz_target;

const COMMANDS: [&str; 16] = [
    "logon",
    "p",
    "delta_publish",
    "subscribe",
    "delta_subscribe",
    "sow",
    "sow_and_subscribe",
    "sow_and_delta_subscribe",
    "sow_delete",
    "unsubscribe",
    "flush",
    "heartbeat",
    "p",
    "p",
    "ack",
    "",
];
/// Values that fit one field or another.
const VALUES: [&str; 41] = [
    "orders",
    "totals",
    "fills",
    "passing",
    "^o",
    "^.*",
    "[",
    "a",
    "b",
    "all",
    "0",
    "1",
    "3",
    "100",
    "18446744073709551615",
    "-1",
    "/id > 1",
    "/id = 1 or /by like 'a'",
    "/id =",
    "/by is null",
    "/id DESC, /by",
    "oof",
    "oof,conflation=1ms",
    "oof,conflation=1ms,conflation_key=[/by]",
    "no_empties,no_sowkey",
    "select=[-/,+/id]",
    "select=[-/qty]",
    "projection=[/by]",
    "start,1",
    "beat",
    "stop",
    "processed",
    "persisted",
    "completed,stats",
    "received,processed,completed",
    "json",
    "fix",
    "nvfix",
    "xml",
    "binary",
    "true",
];
const BODIES: [&str; 12] = [
    "",
    "{}",
    r#"{"id":1,"by":"a","qty":5}"#,
    r#"{"id":2,"by":"b","qty":7}"#,
    r#"{"id":1}"#,
    r#"{"id":1,"qty":0.1}"#,
    r#"{"id":1,"by":null}"#,
    r#"{"id":"#,
    "id=1\u{1}qty=5\u{1}",
    "1=a\u{1}38=5\u{1}",
    r#"<id a="1"/>"#,
    r#"{"id":[1,{"id":2}]}"#,
];
const SECOND: u64 = 1_000_000_000;

fuzz_target!(|bytes: &[u8]| {
    let mut script = Script::new(bytes);
    let mut engine = Engine::new(settings()).expect("the settings are right");
    let mut now = SECOND;
    let mut hostile: Vec<ClientId> = Vec::new();
    while let Some(act) = script.act() {
        let one = hostile.get(usize::from(act >> 5)).copied();
        match (act % 8, one) {
            (0, _) if hostile.len() < 6 => hostile.extend(engine.connect(now)),
            (1, Some(one)) => {
                hostile.retain(|other| *other != one);
                engine.disconnect(one);
            }
            (2, _) => now += u64::from(script.short()) * (SECOND / 1_000),
            (3, Some(one)) => {
                let count = script.byte().into();
                engine.execute(moment(now), one, script.bytes(count));
            }
            (_, Some(one)) => {
                let frame = frame(&mut script);
                engine.execute(moment(now), one, &frame);
            }
            _ => {}
        }
        turn(&mut engine, now, &mut hostile);
    }
    serve_the_honest(&mut engine, now, &mut hostile);
});

fn settings() -> ServerConfig {
    let topic = |name, kind, key| TopicDefinition::new(name, kind).key(key).expect("a path");
    let view = ViewDefinition::new("totals", MessageType::Json, "orders")
        .project("/by, SUM(/qty) AS /qty, MAX(/id) AS /id")
        .group_by("/by");
    ServerConfig {
        topics: vec![
            topic("orders", MessageType::Json, "/id"),
            topic("fills", MessageType::Nvfix, "/id"),
        ],
        views: vec![view],
        topics_max: 50,
        subscriptions_max: 20,
        send_queue_bytes_max: 1 << 16,
        ..ServerConfig::default()
    }
}

const fn moment(now: u64) -> Now {
    Now { monotonic_ns: now, unix_ns: now }
}

/// A turn of the server; the departed have left.
fn turn(engine: &mut Engine, now: u64, clients: &mut Vec<ClientId>) {
    engine.on_time(moment(now));
    engine.next_deadline(moment(now));
    while engine.next_dirty().is_some() {}
    engine.end_round();
    while let Some((id, _)) = engine.next_disconnect() {
        clients.retain(|other| *other != id);
        engine.disconnect(id);
    }
}

/// A command that may make sense: of known names and values, and sometimes of any bytes.
fn frame(script: &mut Script<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    let command = COMMANDS[usize::from(script.byte()) % COMMANDS.len()];
    let mut header = HeaderWriter::record(&mut out).text(Field::Command, command);
    // Most commands are about a topic.
    if let topic @ 0..224 = usize::from(script.byte()) {
        header = header.text(Field::Topic, VALUES[topic % 6]);
    }
    for _ in 0..script.byte() % 8 {
        let field = Field::ALL[usize::from(script.byte()) % Field::ALL.len()];
        let value = match usize::from(script.byte()) {
            255 => {
                let count = script.byte().into();
                String::from_utf8_lossy(script.bytes(count)).into_owned()
            }
            number => VALUES[number % VALUES.len()].to_owned(),
        };
        header = header.text(field, &value);
    }
    header.end();
    match usize::from(script.byte()) {
        255 => {
            let count = script.byte().into();
            out.extend_from_slice(script.bytes(count));
        }
        number => out.extend_from_slice(BODIES[number % BODIES.len()].as_bytes()),
    }
    out
}

/// Honest clients are served as before.
fn serve_the_honest(engine: &mut Engine, now: u64, hostile: &mut Vec<ClientId>) {
    while let Some(id) = hostile.pop() {
        engine.disconnect(id);
    }
    let reader = engine.connect(now).expect("there is room");
    let writer = engine.connect(now).expect("there is room");
    let mut honest = vec![reader, writer];
    engine.execute(moment(now), reader, br#"{"c":"subscribe","t":"orders","sub_id":"s"}"#);
    let before = engine.counters();
    let body = br#"{"c":"p","t":"orders"}{"id":77,"by":"honest","qty":1}"#;
    engine.execute(moment(now), writer, body);
    let after = engine.counters();
    assert_eq!(after.published, before.published + 1);
    assert_eq!(after.delivered, before.delivered + 1);
    turn(engine, now, &mut honest);
    assert_eq!(honest, [reader, writer]);
}
