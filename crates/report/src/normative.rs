//! The page that defines the lines, and the reader, know the same members.

use crate::line::Record;
use crate::read::read;
use crate::source::Source;
use serde_json::Value;
use std::path::Path;

fn checkout(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join(path)).expect("the checkout is complete")
}

/// A line for each kind, with every member that there is.
fn examples() -> String {
    let recorded = |name| checkout(&format!("crates/report/tests/recorded/{name}.jsonl"));
    recorded("every-member") + &recorded("fanout")
}

/// In backticks on the page, and no member.
const OTHERS: [&str; 7] = ["cat", "count", "null", "ns", "_ns", "_bytes", "_unix_ns"];

/// The words in backticks of the page: members, and some values of members.
fn words(page: &str) -> Vec<&str> {
    let quoted = page.split('`').skip(1).step_by(2);
    let words = quoted.filter(|word| !OTHERS.contains(word));
    words.filter(|word| word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')).collect()
}

#[test]
fn every_member_of_the_page_is_in_an_example() {
    let pages = ["docs/protocol/measurements.md", "docs/protocol/fanout.md"].map(checkout);
    let (page, examples) = (pages.concat(), examples());
    let words = words(&page);
    assert!(words.len() > 100 && words.contains(&"p99_999_ns"));
    for word in words {
        let (member, value) = (format!("\"{word}\":"), format!("\"{word}\""));
        assert!(
            examples.contains(&member) || examples.contains(&value),
            "`{word}` is in docs/protocol/measurements.md or fanout.md, but in no line of \
             every-member.jsonl or fanout.jsonl of crates/report/tests/recorded"
        );
    }
}

#[test]
fn every_member_of_the_examples_is_known_to_the_reader() {
    let found = read(&[Source::lines("every-member.jsonl", examples())]).expect("valid");
    assert_eq!(found.unknown, 0, "every kind is known");
    for line in found.lines {
        let record = match &line.record {
            Record::Publisher(record) => serde_json::to_value(record),
            Record::Subscriber(record) => serde_json::to_value(record),
            Record::Jitter(record) => serde_json::to_value(record),
            Record::Run(record) => serde_json::to_value(record),
            Record::Skipped(record) => serde_json::to_value(record),
            Record::Rival(record) => serde_json::to_value(record),
            Record::Doctor(record) => serde_json::to_value(record),
            Record::Pipes(record) => serde_json::to_value(record),
            Record::Rings(record) => serde_json::to_value(record),
            Record::Ping(record) => serde_json::to_value(record),
            Record::Pong(record) => serde_json::to_value(record),
            Record::Floor(record) => serde_json::to_value(record),
            Record::Fanout(record) => serde_json::to_value(record),
            Record::Log(_) => continue,
        };
        let mut known = serde_json::to_value(&line.head).expect("heads are objects");
        for (member, value) in
            record.expect("records are objects").as_object().into_iter().flatten()
        {
            known[member] = value.clone();
        }
        let written: Value = serde_json::from_str(&line.text).expect("it was read before");
        same(&line.place(), &written, &known);
    }
}

/// Whether all that was `written` is `known`; `place` is where.
fn same(place: &str, written: &Value, known: &Value) {
    match (written, known) {
        (Value::Object(written), Value::Object(known)) => {
            for (member, value) in written {
                let place = format!("{place}: {member}");
                let known = known.get(member);
                same(&place, value, known.unwrap_or_else(|| panic!("{place} is not known")));
            }
        }
        (Value::Array(written), Value::Array(known)) => {
            assert_eq!(written.len(), known.len(), "{place}");
            written.iter().zip(known).for_each(|(written, known)| same(place, written, known));
        }
        (Value::Number(written), Value::Number(known)) => {
            assert_eq!(written.as_f64(), known.as_f64(), "{place}");
        }
        _ => assert_eq!(written, known, "{place}"),
    }
}
