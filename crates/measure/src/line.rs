//! Measurement lines, as `docs/protocol/measurements.md` defines them.

use crate::host::Host;
use crate::names::named;
use serde::Serialize;
use std::ffi::OsString;
use std::path::Path;
use std::time::SystemTime;

/// The version of the format.
pub const SCHEMA: u32 = 1;

named! {
    /// The kind of a line: the result it holds.
    pub enum Kind: "kind" {
        /// A publisher's run.
        Publisher = "publisher",
        /// A subscriber's run.
        Subscriber = "subscriber",
        /// A jitter test.
        Jitter = "jitter",
        /// One repetition of one case of a series.
        Run = "run",
        /// An experiment that was left out.
        Skipped = "skipped",
        /// One repetition of another library.
        Rival = "rival",
        /// Findings about this machine.
        Doctor = "doctor",
        /// One repetition of messages between two threads, through a pipe or sockets.
        Pipes = "pipes",
        /// One repetition of messages between threads, through a ring.
        Rings = "rings",
        /// Round trips, seen by the side that begins.
        Ping = "ping",
        /// Round trips, seen by the side that answers.
        Pong = "pong",
        /// The baseline of bare sockets.
        Baseline = "baseline",
        /// One repetition of bursts from a few publishers to many subscribers.
        Fanout = "fanout",
        /// One run of the group test.
        Group = "group",
        /// One repetition of a test with or without stores, or of the disk's ceiling.
        Persist = "persist",
    }
}

/// Head of a line: program, command, start and machine. Made when the program starts.
#[derive(Clone, Debug, Serialize)]
pub struct Head {
    /// The version of lanecast.
    pub version: &'static str,
    /// The command line, words joined by blanks.
    pub command: String,
    /// When the program started, in nanoseconds since 1970.
    pub started_unix_ns: u64,
    /// The machine.
    pub host: Host,
}

#[derive(Serialize)]
struct Line<'a, T> {
    schema: u32,
    kind: Kind,
    #[serde(flatten)]
    head: &'a Head,
    #[serde(flatten)]
    result: &'a T,
}

impl Head {
    /// This program, started now on this machine.
    pub fn now() -> Self {
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let ns = since_1970.map_or(0, |passed| passed.as_nanos());
        Self {
            version: env!("CARGO_PKG_VERSION"),
            command: command(std::env::args_os()),
            started_unix_ns: u64::try_from(ns).unwrap_or(0),
            host: Host::read(Path::new("/")),
        }
    }

    /// A whole line (without its end) for a result, which must be an object in JSON.
    ///
    /// # Errors
    /// If `result` is no object.
    pub fn line(&self, kind: Kind, result: &impl Serialize) -> serde_json::Result<String> {
        serde_json::to_string(&Line { schema: SCHEMA, kind, head: self, result })
    }
}

/// A command line as one would type it; of the program's path only the name is kept.
fn command(words: impl IntoIterator<Item = OsString>) -> String {
    let mut words = words.into_iter();
    let program = words.next().unwrap_or_default();
    let name = Path::new(&program).file_name().unwrap_or_default().to_owned();
    let words: Vec<_> =
        std::iter::once(name).chain(words).map(|word| quoted(&word.to_string_lossy())).collect();
    words.join(" ")
}

/// A word as a shell reads it back.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:=,+@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn commands_read_as_they_were_typed() {
        let words = ["/opt/bin/lanecast", "perf", "pub", "-t", "a b", "", "it's", "x=1"];
        let command = command(words.map(OsString::from));
        assert_eq!(command, r"lanecast perf pub -t 'a b' '' 'it'\''s' x=1");
        assert_eq!(super::command([]), "''");
    }

    #[test]
    fn a_line_is_one_object_with_the_head_first() {
        let line = Head::now().line(Kind::Skipped, &json!({"why": "one\nnode"})).unwrap();
        assert!(line.starts_with(r#"{"schema":1,"kind":"skipped","version":""#), "{line}");
        assert!(!line.contains('\n'), "{line}");
        let line: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(line["why"], "one\nnode");
        assert!(line["started_unix_ns"].as_u64().unwrap() > 1_600_000_000_000_000_000);
        assert!(line["host"].is_object());
        assert!(Head::now().line(Kind::Run, &7).is_err());
    }
}
