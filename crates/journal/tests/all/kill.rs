//! Processes killed while they append: the next process finds every record that was reported as
//! written or persisted.
#![forbid(unsafe_code)]

use lanecast_journal::{
    Directory, Durability, Entry, Journal, JournalConfig, Log, OpenError, Start, StorageErrorKind,
};
use lanecast_sim::rng::SimRng;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(60);
/// Environment variable of the child process: directory of its journal.
const DIRECTORY: &str = "KILLED_JOURNAL";

fn settings() -> JournalConfig {
    JournalConfig { segment_bytes: 256 << 10, ..JournalConfig::default() }
}

fn body(sequence: u64) -> Vec<u8> {
    let length = sequence * 37 % 900;
    (0..length).map(|at| (at + sequence * 11) as u8).collect()
}

/// Body of the child process, no test of its own: appends and reports progress.
#[test]
fn victim() {
    let Some(directory) = std::env::var_os(DIRECTORY) else { return };
    let journal = Journal::open(Directory::new(directory), settings()).unwrap();
    let mut output = std::io::stdout().lock();
    let mut next = journal.recovered().last + 1;
    loop {
        let bodies: Vec<Vec<u8>> = (next..next + 1 + next % 7).map(body).collect();
        let entries: Vec<_> =
            bodies.iter().map(|body| Entry { body, ..Entry::default() }).collect();
        let last = *journal.append(&entries).unwrap().end();
        let (durability, word) = if last.is_multiple_of(2) {
            (Durability::Written, 'r')
        } else {
            (Durability::Persisted, 'p')
        };
        journal.wait(last, durability, LONG).unwrap();
        writeln!(output, "said {word} {last}").unwrap();
        next = last + 1;
    }
}

/// The child process; killed when the test ends.
struct Victim(Child);

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a child, kills it after `lines` reports, and returns the last sequence that it reported.
fn kill(directory: &Path, lines: u64) -> u64 {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "kill::victim", "--nocapture"]).env(DIRECTORY, directory);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut victim = Victim(child);
    let mut said = 0;
    let mut heard = 0;
    let output = victim.0.stdout.take().unwrap();
    for line in BufReader::new(output).lines() {
        let line = line.unwrap();
        // The last line may be truncated.
        if let Some(text) = line.split("said ").nth(1).and_then(|text| text.get(2..)) {
            said = text.parse().unwrap_or(said).max(said);
        }
        heard += 1;
        if heard == lines {
            victim.0.kill().unwrap();
        }
    }
    said
}

fn check(directory: &Path, said: u64) -> u64 {
    let log = Log::open(Directory::new(directory), settings()).unwrap();
    let last = log.recovered().last;
    assert!(last >= said, "{said} was said, {last} is there");
    let mut cursor = log.cursor(Start::Oldest).unwrap();
    let mut next = 1;
    while let Some(record) = cursor.read().unwrap() {
        assert_eq!((record.sequence, record.body), (next, &body(next)[..]));
        next += 1;
    }
    assert_eq!(next, last + 1);
    last
}

#[test]
fn a_killed_process_takes_nothing_with_it() {
    let rounds = if std::env::var_os("LONG_TESTS").is_some() { 300 } else { 10 };
    let directory = tempfile::tempdir().unwrap();
    let mut dice = SimRng::new(3);
    let mut last = 0;
    for _ in 0..rounds {
        let said = kill(directory.path(), dice.spread(4..=100));
        last = check(directory.path(), said).max(last);
    }
    assert!(last > rounds, "{last}");
}

#[test]
fn a_directory_has_one_owner_and_readers_do_not_mind() {
    let directory = tempfile::tempdir().unwrap();
    let open = || Journal::open(Directory::new(directory.path()), settings());
    let journal = open().unwrap();
    let refused = open().unwrap_err();
    let own = std::process::id();
    let OpenError::Storage(error) = &refused else { panic!("{refused}") };
    assert_eq!(error.kind, StorageErrorKind::Locked { pid: Some(own) });
    let text = refused.to_string();
    assert!(text.contains(&format!("process {own}")) && text.contains("reading only"), "{text}");
    journal.persist(&[Entry { body: b"here", ..Entry::default() }], LONG).unwrap();
    let reader = lanecast_journal::Reader::open(Directory::new(directory.path())).unwrap();
    let mut cursor = reader.cursor(Start::Oldest).unwrap();
    assert_eq!(cursor.read().unwrap().unwrap().body, b"here");
    let place = Directory::new(directory.path());
    assert_eq!(place.owner(), Some(own));
    journal.close().unwrap();
    assert_eq!(place.owner(), None);
    drop(open().unwrap());
}
