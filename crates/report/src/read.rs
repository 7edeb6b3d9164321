//! Reads measurement lines: skips what is new to this version, refuses what is wrong.

use crate::hlog;
use crate::line::{Kind, Line};
use crate::schema::{self, SCHEMA};
use crate::source::{Format, Source};
use serde_json::Value;
use serde_json::error::Category;

/// A source that cannot be read: the place, and how to mend it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {what}")]
pub struct ReadError {
    file: String,
    line: usize,
    what: String,
}

/// All lines of all sources.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lines {
    pub(crate) lines: Vec<Line>,
    /// Lines of a kind that this version does not know.
    pub(crate) unknown: usize,
}

/// Reads all `sources`.
pub(crate) fn read(sources: &[Source]) -> Result<Lines, ReadError> {
    let mut found = Lines::default();
    for source in sources {
        for (index, bytes) in source.bytes.split(|byte| *byte == b'\n').enumerate() {
            let number = index + 1;
            let fail = |what| ReadError { file: source.name.clone(), line: number, what };
            let text = std::str::from_utf8(bytes).map_err(|_| {
                fail("this is not text in UTF-8: is it a file of measurements?".to_owned())
            })?;
            let text = text.trim_end_matches('\r');
            // A byte order mark is no part of the first line.
            let text = if index == 0 { text.trim_start_matches('\u{feff}') } else { text };
            let parsed = match source.format {
                _ if text.trim().is_empty() => continue,
                Format::Lines => parse(text).map_err(fail)?,
                Format::IntervalLog => hlog::parse(text).map_err(fail)?,
            };
            let Some(line) = parsed else {
                found.unknown += usize::from(source.format == Format::Lines);
                continue;
            };
            let (id, file) = (found.lines.len() + 1, source.name.clone());
            found.lines.push(line.placed(id, file, number));
        }
    }
    Ok(found)
}

/// The measurement line in `text`; none if its kind is unknown.
fn parse(text: &str) -> Result<Option<Line>, String> {
    let mut members: Value = serde_json::from_str(text).map_err(|error| in_words(text, &error))?;
    let Some(object) = members.as_object_mut() else { return Err(NO_OBJECT.to_owned()) };
    schema::rename_former(object);
    match members.get("schema").and_then(Value::as_u64) {
        None => return Err("no measurement line: it has no \"schema\" (see --json)".to_owned()),
        Some(schema) if schema > SCHEMA => {
            return Err(format!(
                "schema {schema} is newer than this version reads ({SCHEMA}): use the version of \
                 lanecast that wrote the file, or a later one"
            ));
        }
        Some(_) => {}
    }
    let Some(kind) = members.get("kind").and_then(Value::as_str) else {
        return Err("no measurement line: it has no \"kind\"".to_owned());
    };
    let Some(kind) = Kind::named(kind) else { return Ok(None) };
    schema::check(&members)?;
    Line::new(kind, text, members).map(Some).map_err(|error| error.to_string())
}

const NO_OBJECT: &str = "no measurement line: one JSON object on each line is expected";

/// A JSON error in words, with its column.
fn in_words(text: &str, error: &serde_json::Error) -> String {
    let full = error.to_string();
    // The line number is the file's, so the parser's own is removed.
    let end = format!(" at line {} column {}", error.line(), error.column());
    let what = full.strip_suffix(&end).unwrap_or(&full);
    let column = error.column();
    match error.classify() {
        Category::Eof => format!("the line is cut off after {column} characters"),
        Category::Syntax if !text.trim_start().starts_with('{') => NO_OBJECT.to_owned(),
        Category::Syntax | Category::Data | Category::Io => {
            format!("no JSON: {what}, column {column}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read_lines(text: &str) -> Result<Lines, String> {
        read(&[Source::lines("a.jsonl", text)]).map_err(|error| error.to_string())
    }

    #[test]
    fn unknown_members_and_kinds_are_skipped() {
        let text = "{\"schema\":1,\"kind\":\"publisher\",\"rate\":5.5,\"colour\":\"red\"}\r\n\
                    \n{\"schema\":1,\"kind\":\"weather\"}\n";
        let found = read_lines(text).unwrap();
        assert_eq!((found.lines.len(), found.unknown), (1, 1));
        let line = &found.lines[0];
        assert_eq!(
            (line.kind, line.real("rate"), line.whole("sent")),
            (Kind::Publisher, Some(5.5), None)
        );
        assert_eq!(found.lines[0].place(), "a.jsonl:1");
    }

    #[test]
    fn null_is_missing() {
        let text = "{\"schema\":1,\"kind\":\"run\",\"host\":null,\"case\":null,\
                    \"publisher\":{\"interference\":null,\"cpus\":{\"pinned\":null}},\
                    \"subscribers\":[{\"latency\":{\"actual\":{\"buckets\":null}}}]}";
        assert!(read_lines(text).unwrap().lines[0].doubts().is_empty());
    }

    #[test]
    fn mistakes_name_their_place_and_what_to_do() {
        let good = "{\"schema\":1,\"kind\":\"skipped\"}\n";
        for (line, parts) in [
            ("{\"schema\":2,\"kind\":\"run\"}", &["a.jsonl:2", "schema 2 is newer"] as &[&str]),
            ("{\"kind\":\"run\"}", &["a.jsonl:2", "no \"schema\""]),
            ("{\"schema\":1}", &["no \"kind\""]),
            ("{\"schema\":1,\"kind\":\"ru", &["cut off after 22"]),
            ("hello", &["a.jsonl:2: no measurement line"]),
            ("{\"schema\":1,}", &["no JSON", "column"]),
            ("{\"schema\":1,\"kind\":\"publisher\",\"rate\":\"x\"}", &["invalid type: string"]),
            ("{\"schema\":1,\"kind\":\"publisher\",\"sent\":-1}", &["-1"]),
            ("{\"schema\":1,\"kind\":\"publisher\",\"rate\":1e999}", &["out of range"]),
        ] {
            let error = read_lines(&format!("{good}{line}\n")).unwrap_err();
            assert!(parts.iter().all(|part| error.contains(part)), "{line}: {error}");
            assert!(!error.contains("at line 1"), "{error}");
        }
        let error = read(&[Source::lines("b", b"\xff\xfe".to_vec())]).unwrap_err();
        assert!(error.to_string().starts_with("b:1: this is not text"), "{error}");
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&[Source::lines("x", bytes.clone())]);
            let _ = read(&[Source::interval_log("x", bytes)]);
        }
    }
}
