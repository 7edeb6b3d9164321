//! Checks the examples and limits of docs/protocol/messages.md.
#![forbid(unsafe_code)]

use lanecast_filter::fields::{FieldSet, SLOTS_MAX};
use lanecast_filter::message_type::Format;
use lanecast_filter::reader::Reader;
use lanecast_filter::row::Row;
use lanecast_filter::value::Value;

const PAGE: &str = include_str!("../../../../docs/protocol/messages.md");

fn cells(line: &str) -> Option<[&str; 4]> {
    let cells: Vec<_> = line.strip_prefix('|')?.strip_suffix('|')?.split('|').collect();
    <[&str; 4]>::try_from(cells).ok().map(|cells| cells.map(str::trim))
}

/// The values of `path` in `message`, in the notation of the page.
fn outcome(message_type: &str, message: &str, path: &str) -> String {
    let format = Format::new(message_type.parse().expect("a message type"));
    let format = format.with_separators(b';', b'=').expect("as the page says");
    let mut fields = FieldSet::new(format);
    let slot = fields.slot(&path.parse().expect("a path")).expect("room");
    let mut row = Row::new();
    if let Err(error) = Reader::new(&fields).read(message.as_bytes(), &mut row) {
        return format!("malformed at {}", error.offset);
    }
    let values = row.values(slot, message.as_bytes()).map(|value| match value {
        Value::Null => "`NULL`".into(),
        Value::Bool(truth) => format!("`{truth}`"),
        Value::Text(text) => format!("`{}`", String::from_utf8_lossy(text)),
        value => format!("`{}`", value.number().expect("a number")),
    });
    let values: Vec<String> = values.collect();
    if values.is_empty() { "nothing".into() } else { values.join(" ") }
}

#[test]
fn the_examples_are_true() {
    let mut count = 0;
    for [message_type, message, path, expected] in PAGE.lines().filter_map(cells) {
        if matches!(message_type, "type" | "---") {
            continue;
        }
        let (message, path) = (message.trim_matches('`'), path.trim_matches('`'));
        assert_eq!(outcome(message_type, message, path), expected, "{path} in {message}");
        count += 1;
    }
    assert!(count > 30, "{count} examples");
}

#[test]
fn the_limits_are_those_of_the_code() {
    let slots = SLOTS_MAX.to_string();
    let (thousands, rest) = slots.split_at(slots.len() - 3);
    assert!(PAGE.contains(&format!("| {thousands} {rest} |")), "slots");
    let nested = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
    let refused = |levels: usize| {
        outcome("json", &format!("{{\"a\":{}}}", nested(levels - 1)), "/a").starts_with("malformed")
    };
    assert!(refused(65) && !refused(64) && PAGE.contains("| 64 |"), "levels");
}
