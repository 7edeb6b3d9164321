//! Processes killed while they change a durable topic: every change reported as persisted is there,
//! and the topic is the result of a prefix of the changes.

use lanecast_filter::message_type::{Format, MessageType};
use lanecast_journal::{Directory, Durability, JournalConfig, Retention};
use lanecast_sim::rng::SimRng;
use lanecast_sow::durable::SowStore;
use lanecast_sow::{Publication, Topic, TopicDefinition};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(60);
/// Environment variable of the child process: directory of its store.
const DIRECTORY: &str = "KILLED_ARCHIVE";

fn open(directory: &Path) -> (SowStore<Directory>, Topic) {
    let format = Format::new(MessageType::Fix).with_separators(b';', b'=').expect("separators");
    let definition = TopicDefinition::new("orders", format).key("/11").expect("a path");
    let retention = Retention { bytes: Some(1), age: None };
    let settings = JournalConfig { segment_bytes: 64 << 10, retention, ..JournalConfig::default() };
    let opened = SowStore::open(Directory::new(directory), settings, vec![definition]);
    let (archive, mut topics) = opened.expect("opened");
    (archive, topics.remove(0))
}

/// Key of change `number`, and its message unless it is a deletion.
fn act(number: u64, exists: impl Fn(&str) -> bool) -> (String, Option<String>) {
    let key = format!("11={};", number * number % 97);
    if number.is_multiple_of(5) && exists(&key) {
        return (key, None);
    }
    let message = format!("{key}38={number};58={};", "x".repeat(number as usize * 31 % 400));
    (key, Some(message))
}

/// The topic after `changes` changes.
fn model(changes: u64) -> BTreeMap<String, String> {
    let mut state = BTreeMap::new();
    for number in 1..=changes {
        match act(number, |key| state.contains_key(key)) {
            (key, Some(message)) => drop(state.insert(key, message)),
            (key, None) => drop(state.remove(&key)),
        }
    }
    state
}

/// Body of the child process, no test of its own: changes the topic and reports persisted changes.
#[test]
fn victim() {
    let Some(directory) = std::env::var_os(DIRECTORY) else { return };
    let (mut archive, mut topic) = open(Path::new(&directory));
    let mut output = std::io::stdout().lock();
    let mut checkpoint = None;
    // The topic's definition precedes its changes.
    for number in archive.last().. {
        let keys = topic.iter().map(|record| record.bytes().to_vec()).collect::<Vec<_>>();
        let exists = |key: &str| keys.iter().any(|bytes| bytes.starts_with(key.as_bytes()));
        let logged = match act(number, exists) {
            (_, Some(message)) => {
                let publication = Publication::of(message.as_bytes());
                archive.publish(&mut topic, &publication, 0).expect("taken").journal_sequence
            }
            (key, None) => {
                let publication = Publication::of(key.as_bytes());
                let logged = archive.delete_as(&mut topic, &publication, 0).expect("taken");
                logged.expect("it is there").journal_sequence
            }
        };
        assert_eq!(logged, number + 1);
        if number.is_multiple_of(3) {
            archive.journal().wait(logged, Durability::Persisted, LONG).expect("persisted");
            writeln!(output, "said {number}").expect("heard");
        }
        if number.is_multiple_of(40) && checkpoint.is_none() {
            checkpoint = Some(archive.begin_checkpoint().expect("begun"));
        }
        if let Some(mut taken) = checkpoint.take() {
            if taken.advance(&[&topic], 7).expect("written") {
                checkpoint = Some(taken);
            } else {
                taken.seal().expect("sealed");
                archive.install_checkpoint(taken, LONG).expect("adopted");
            }
        }
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

/// Runs a child, kills it after `lines` reports, and returns the last sequence that it reported as
/// persisted.
fn kill(directory: &Path, lines: u64) -> u64 {
    let mut command = Command::new(std::env::current_exe().expect("a path"));
    command.args(["--exact", "kill::victim", "--nocapture"]).env(DIRECTORY, directory);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("started");
    let mut victim = Victim(child);
    let (mut said, mut heard) = (0, 0);
    let output = victim.0.stdout.take().expect("a pipe");
    for line in BufReader::new(output).lines() {
        let line = line.expect("a line");
        // The last line may be truncated.
        if let Some(text) = line.split("said ").nth(1) {
            said = text.parse().unwrap_or(said).max(said);
            heard += 1;
        }
        if heard == lines {
            victim.0.kill().expect("killed");
        }
    }
    said
}

#[test]
fn acknowledged_changes_are_recovered() {
    let rounds = if std::env::var_os("LONG_TESTS").is_some() { 100 } else { 20 };
    let directory = tempfile::tempdir().expect("a directory");
    let mut dice = SimRng::new(7);
    let mut before = 0;
    for round in 0..rounds {
        let said = kill(directory.path(), dice.spread(2..=120));
        let (archive, topic) = open(directory.path());
        let last = archive.last() - 1;
        assert!(last >= said && said > before, "round {round}: {said} was said, {last} is there");
        let mut found = BTreeMap::new();
        for record in topic.iter() {
            let text = String::from_utf8(record.bytes().to_vec()).expect("text");
            let key = text[..=text.find(';').expect("a key")].to_owned();
            found.insert(key, text);
        }
        assert_eq!(found, model(last), "round {round}");
        assert_eq!(topic.sequence(), last);
        before = last;
    }
    let (archive, _) = open(directory.path());
    assert!(archive.covered() > 0, "no checkpoint was ever taken");
}
