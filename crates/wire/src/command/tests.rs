//! Headers and frames, among them exchanges that an independent client had over the wire.

use super::*;
use zerocopy::IntoBytes;
use zerocopy::big_endian::U32;

fn header(text: &str) -> Header<'_> {
    Header::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn refused(text: &str) -> HeaderError {
    Header::parse(text.as_bytes()).expect_err(text)
}

#[test]
fn each_name_is_read_in_both_spellings() {
    for &field in Field::ALL {
        assert_eq!(Field::named(field.long().as_bytes()), Some(field));
        assert_eq!(Field::named(field.short().as_bytes()), Some(field));
        assert!([field.long(), field.short()].contains(&field.written()));
        let text = format!("{{\"{}\":\"1\"}}", field.short());
        assert_eq!(header(&text).text(field).as_deref(), Some("1"));
    }
    assert_eq!(Field::named(b""), None);
    assert_eq!(Field::named(b"nothing"), None);
}

#[test]
fn values_come_with_quotes_or_without() {
    let read = header(r#" { "cmd" : "subscribe" , "top_n":"10","bs":5, "send_oof":true } rest"#);
    assert_eq!(read.command(), Ok(Command::Subscribe));
    assert_eq!(read.number(Field::TopN), Ok(Some(10)));
    assert_eq!(read.number(Field::BatchSize), Ok(Some(5)));
    assert_eq!((read.flag(Field::SendOof), read.flag(Field::SendKeys)), (Ok(true), Ok(false)));
    assert_eq!(read.body(), b" rest");
    assert_eq!(read.text(Field::Topic), None);
    assert_eq!(header("{}").len(), 2);
}

#[test]
fn unknown_fields_are_skipped() {
    let read = header(r#"{"new":{"a":["}",{"b":"\""}]},"c":"flush","other":-1.5e3}x"#);
    assert_eq!((read.command(), read.body()), (Ok(Command::Flush), &b"x"[..]));
}

#[test]
fn escapes_stand_for_what_they_say() {
    let read = header(r#"{"f":"a\"\\\/\b\f\n\r\t\u0041\ud83d\ude00\ud83d!"}"#);
    let text = "a\"\\/\u{8}\u{c}\n\r\tA😀\u{fffd}!";
    assert_eq!(read.text(Field::Filter).as_deref(), Some(text));
    let mut out = Vec::new();
    HeaderWriter::record(&mut out).text(Field::Filter, "a\"\\\n\u{1}é").end();
    assert_eq!(out, r#"{"filter":"a\"\\\n\u0001é"}"#.as_bytes());
    let written = header(std::str::from_utf8(&out).expect("text"));
    assert_eq!(written.text(Field::Filter).as_deref(), Some("a\"\\\n\u{1}é"));
}

#[test]
fn invalid_headers_are_refused_at_their_position() {
    assert_eq!(refused("x"), HeaderError::NoHeader { at: 0 });
    assert_eq!(refused(""), HeaderError::NoHeader { at: 0 });
    for cut in ["{", "{\"", "{\"c\"", "{\"c\":", "{\"c\":\"p", "{\"c\":1", "{\"c\":1,", "{\"z\":["]
    {
        assert_eq!(refused(cut), HeaderError::NoEnd, "{cut}");
    }
    assert_eq!(refused("{c:1}"), HeaderError::Expected { at: 1, expected: "a name in quotes" });
    assert_eq!(refused("{\"c\":1;}"), HeaderError::Expected { at: 6, expected: "`,` or `}`" });
    assert!(matches!(refused("{\"c\":\"\\q\"}"), HeaderError::Expected { at: 6, .. }));
    assert!(matches!(refused("{\"c\":\"\n\"}"), HeaderError::Expected { at: 6, .. }));
    assert_eq!(
        refused("{\"t\":\"a\",\"topic\":\"b\"}"),
        HeaderError::Twice { field: Field::Topic }
    );
    assert_eq!(refused("{\"t\":{}}"), HeaderError::Value { field: Field::Topic });
    assert!(matches!(Header::parse(b"{\"t\":\"\xff\"}"), Err(HeaderError::NoText { at: 6 })));
    let deep = format!("{{\"z\":{}", "[".repeat(1_000));
    assert!(matches!(refused(&deep), HeaderError::Expected { .. }));
    let long = format!("{{\"t\":\"{}\"}}", "a".repeat(HEADER_MAX));
    assert_eq!(refused(&long), HeaderError::NoEnd);
    let read = header(r#"{"c":"dance","s":"-1","a":"processed,soon","bs":"99999999999999999999"}"#);
    assert_eq!(read.command(), Err(HeaderError::Value { field: Field::Command }));
    assert_eq!(read.number(Field::Sequence), Err(HeaderError::Value { field: Field::Sequence }));
    assert_eq!(read.acks(), Err(HeaderError::Value { field: Field::AckType }));
    assert_eq!(read.number(Field::BatchSize), Err(HeaderError::Value { field: Field::BatchSize }));
}

#[test]
fn frames_are_found_or_refused() {
    let mut out = b"before".to_vec();
    let start = begin_frame(&mut out);
    HeaderWriter::command(&mut out, Command::Heartbeat).end();
    end_frame(&mut out, start);
    let bytes = &out[6..];
    assert_eq!(&bytes[..4], [0, 0, 0, 0x11]);
    for cut in 0..bytes.len() {
        assert_eq!(frame_bytes(&bytes[..cut], 100), Ok(None));
    }
    assert_eq!(frame_bytes(bytes, 100), Ok(Some(21)));
    assert_eq!(frame_bytes(bytes, 16), Err(FrameTooLong { length: 17, limit: 16 }));
    assert_eq!(message_payload(&bytes[4..]), Ok((&bytes[4..], false)));
    assert_eq!(message_payload(bytes), Ok((&bytes[4..], true)));
    assert!(message_payload(&bytes[..10]).is_err() && message_payload(b"").is_err());
}

#[test]
fn options_are_not_split_within_brackets() {
    let options = Options::parse("oof, top_n=5,projection=[/a, sum(/b)],,none").expect("a list");
    assert!(options.has("oof") && options.has("none") && !options.has("top_n"));
    assert_eq!((options.value("top_n"), options.value("rate")), (Some("5"), None));
    assert_eq!(options.list("projection").collect::<Vec<_>>(), ["/a", "sum(/b)"]);
    assert_eq!(options.list("grouping").count(), 0);
    assert_eq!(Options::parse("a=[b").err(), Some(OptionsError::Bracket { at: 2 }));
    assert_eq!(Options::parse("a]").err(), Some(OptionsError::Bracket { at: 1 }));
    assert_eq!(Options::parse("[[").err(), Some(OptionsError::Nested { at: 1 }));
}

/// Exchanges of an independent client of the published protocol, which it had and was content
/// with: C is what it sent, S what it was sent. Each frame's length is in hexadecimal digits.
const EXCHANGES: &str = include_str!("exchanges.txt");

/// The frame that goes by that name.
fn exchange(name: &str) -> Vec<u8> {
    let line = EXCHANGES.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    let (length, payload) = line.unwrap_or_else(|| panic!("no {name}")).split_at(8);
    let length = u32::from_str_radix(length, 16).expect("a length");
    [U32::new(length).as_bytes(), payload.as_bytes()].concat()
}

/// Checks the decoded command of an independent client.
fn understood(name: &str, command: Command, fields: &[(Field, &str)], body: &str) {
    let bytes = exchange(name);
    assert_eq!(frame_bytes(&bytes, 1_000), Ok(Some(bytes.len())), "{name}");
    let header = Header::parse(&bytes[LENGTH_BYTES..]).expect(name);
    assert_eq!(header.command(), Ok(command), "{name}");
    for (field, value) in fields {
        assert_eq!(header.text(*field).as_deref(), Some(*value), "{name}");
    }
    assert_eq!(header.body(), body.as_bytes(), "{name}");
    assert!(header.acks().is_ok(), "{name}");
}

#[test]
fn captured_commands_are_understood() {
    use Field::{
        AckType, BatchSize, Bookmark, ClientName, CommandId, CorrelationId, Filter, MessageType,
        Options, QueryId, Sequence, SubscriptionId, Topic, Version,
    };
    let logon: &[_] = &[
        (CommandId, "0"),
        (CorrelationId, "abc123"),
        (ClientName, "exp-client"),
        (Version, "0.8.18"),
        (MessageType, "json"),
    ];
    understood("C logon", Command::Logon, logon, "");
    let publish: &[_] = &[(CommandId, "1"), (Topic, "orders")];
    understood("C publish", Command::Publish, publish, r#"{"id":1,"st":"open"}"#);
    let flush: &[_] = &[(CommandId, "4"), (AckType, "processed,completed")];
    understood("C flush", Command::Flush, flush, "");
    let sow: &[_] = &[(Topic, "orders"), (BatchSize, "10"), (QueryId, "5")];
    understood("C sow", Command::Sow, sow, "");
    let both: &[_] =
        &[(Filter, "/st = 'open'"), (Options, "oof"), (QueryId, "7"), (SubscriptionId, "7")];
    understood("C sow_and_subscribe", Command::SowAndSubscribe, both, "");
    let delta = r#"{"id":1,"px":3}"#;
    understood("C delta_publish", Command::DeltaPublish, &[(CommandId, "10")], delta);
    let delete: &[_] = &[(Filter, "/id = 3"), (AckType, "stats")];
    understood("C sow_delete by filter", Command::SowDelete, delete, "");
    understood("C sow_delete by body", Command::SowDelete, &[(CommandId, "12")], r#"{"id":1}"#);
    understood("C unsubscribe", Command::Unsubscribe, &[(SubscriptionId, "7")], "");
    understood("C subscribe from a bookmark", Command::Subscribe, &[(Bookmark, "0")], "");
    let queue: &[_] = &[(Options, "max_backlog=5")];
    understood("C subscribe to a queue", Command::Subscribe, queue, "");
    let numbered = r#"{"id":5,"st":"open"}"#;
    understood("C publish with a sequence", Command::Publish, &[(Sequence, "1")], numbered);
    understood("C heartbeat start", Command::Heartbeat, &[(Options, "start,1")], "");
    understood("C heartbeat beat", Command::Heartbeat, &[(Options, "beat")], "");
    let again: &[_] = &[(Bookmark, "1111|18|"), (SubscriptionId, "3")];
    understood("C subscribe again", Command::Subscribe, again, "");
}

fn written(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    let start = begin_frame(&mut out);
    write(&mut out);
    end_frame(&mut out, start);
    out
}

#[test]
fn headers_match_the_reference_client_byte_by_byte() {
    let ack = |out: &mut Vec<u8>, acks: Acks, id: &str| {
        let header = HeaderWriter::command(out, Command::Ack).acks(acks);
        header.text(Field::Status, "success").text(Field::CommandId, id).end();
    };
    let processed = Acks::NONE.with(Ack::Processed);
    assert_eq!(
        written(|out| {
            let header = HeaderWriter::command(out, Command::Ack).acks(processed);
            let header = header.text(Field::Status, "success").text(Field::CommandId, "0");
            let header = header.text(Field::Version, "5.3.5.0");
            header.text(Field::ClientName, "exp-client").number(Field::Sequence, 0).end();
        }),
        exchange("S logon")
    );
    let completed = Acks::NONE.with(Ack::Completed);
    for (acks, vector) in [(processed, "S processed"), (completed, "S completed")] {
        assert_eq!(written(|out| ack(out, acks, "4")), exchange(vector));
    }
    assert_eq!(
        written(|out| {
            HeaderWriter::command(out, Command::GroupBegin).text(Field::QueryId, "5").end();
        }),
        exchange("S group_begin")
    );
    let stats = Acks::NONE.with(Ack::Stats);
    assert_eq!(
        written(|out| {
            let header = HeaderWriter::command(out, Command::Ack).acks(stats);
            let header = header.text(Field::Status, "success").text(Field::CommandId, "6");
            let header = header.text(Field::QueryId, "6").number(Field::Matches, 3);
            header.number(Field::TopicMatches, 3).number(Field::RecordsReturned, 3).end();
        }),
        exchange("S stats")
    );
    assert_eq!(
        written(|out| {
            let header = HeaderWriter::command(out, Command::Oof).text(Field::Topic, "orders");
            let header = header.number(Field::SowKey, 901_255_563_090_117_366);
            let header = header.text(Field::Reason, "match").text(Field::SubscriptionIds, "7");
            header.number(Field::Length, 22).end();
            out.extend_from_slice(br#"{"id":2,"st":"filled"}"#);
        }),
        exchange("S oof")
    );
}

#[test]
fn records_of_a_batch_are_those_that_went_in() {
    let records = [
        (886_263_699_231_969_848, r#"{"id":1,"st":"open"}"#),
        (901_255_563_090_117_366, r#"{"id":2,"st":"open"}"#),
    ];
    let bytes = written(|out| {
        let header = HeaderWriter::command(out, Command::Sow).text(Field::Topic, "orders");
        header.text(Field::QueryId, "6").number(Field::BatchSize, 2).end();
        for (key, body) in records {
            let header = HeaderWriter::record(out).number(Field::SowKey, key);
            header.number(Field::Length, body.len() as u64).end();
            out.extend_from_slice(body.as_bytes());
        }
    });
    let captured = concat!(
        "000000987b2263223a22736f77222c2274223a226f7264657273222c2271756572795f6964223a2236222c22",
        "6273223a327d7b226b223a22383836323633363939323331393639383438222c226c223a32307d7b22696422",
        "3a312c227374223a226f70656e227d7b226b223a22393031323535353633303930313137333636222c226c22",
        "3a32307d7b226964223a322c227374223a226f70656e227d",
    );
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, captured);
    let header = Header::parse(&bytes[LENGTH_BYTES..]).expect("a header");
    let read: Vec<_> = Records::new(header.body()).map(|record| record.expect("whole")).collect();
    for ((header, body), (key, sent)) in read.iter().zip(records) {
        assert_eq!(header.text(Field::SowKey), Some(key.to_string().into()));
        assert_eq!(*body, sent.as_bytes());
    }
    assert_eq!(read.len(), 2);
    let cut = &header.body()[..header.body().len() - 1];
    let cut: Vec<_> = Records::new(cut).collect();
    assert!(cut[0].is_ok());
    assert_eq!(cut[1].as_ref().err(), Some(&HeaderError::Value { field: Field::Length }));
    let bare: Vec<_> = Records::new(br#"{"k":"1"}x"#).collect();
    assert_eq!(bare[0].as_ref().err(), Some(&HeaderError::Missing { field: Field::Length }));
}

#[test]
fn the_page_says_the_same() {
    const PAGE: &str = include_str!("../../../../docs/protocol/command.md");
    for field in Field::ALL {
        let short = if field.short() == field.long() { "-" } else { field.short() };
        let shape = match field.shape() {
            Shape::Text => "text",
            Shape::Number => "number",
            Shape::Flag => "flag",
        };
        let row = format!("| {} | {short} | {} | {shape} |", field.long(), field.written());
        assert!(PAGE.contains(&row), "docs/protocol/command.md should have {row}");
    }
    for line in EXCHANGES.lines() {
        let (_, name) = line.split_once(' ').expect("who sent it");
        let frame = name.split_once(": ").expect("a frame").1;
        assert!(frame.is_ascii());
    }
    for limit in [HEADER_MAX, LENGTH_BYTES] {
        assert!(PAGE.contains(&limit.to_string()), "{limit}");
    }
    let title = format!("# Commands of the content server, version {PROTOCOL_VERSION}\n");
    assert!(PAGE.starts_with(&title), "docs/protocol/command.md should begin with {title}");
    for (name, value) in [
        ("PROTOCOL_VERSION", PROTOCOL_VERSION),
        ("SEQUENCE_MAX", SEQUENCE_MAX),
        ("SEQUENCE_JUMP", SEQUENCE_JUMP),
    ] {
        let row = format!("| `{name}` | {value} |");
        assert!(PAGE.contains(&row), "docs/protocol/command.md should say {row}");
    }
}
