//! `lanecast journal`: a journal as people meet it, whole, damaged and repaired.

use crate::run::Stage;
use lanecast_journal::{Directory, Entry, JournalConfig, Log, Retention};
use serde_json::Value;
use std::fs::File;
use std::os::unix::fs::FileExt;

const SEGMENT: u64 = 16 << 10;

fn open(stage: &Stage) -> Log<Directory> {
    let settings = JournalConfig { segment_bytes: SEGMENT, ..JournalConfig::default() };
    Log::open(Directory::new(stage.path("j")), settings).unwrap()
}

/// A journal of a few segments in `j`.
fn fill(stage: &Stage) -> Log<Directory> {
    let mut log = open(stage);
    for number in 1..=120_u64 {
        let body = format!("order {number} {}", "x".repeat(200));
        let body = if number == 2 { b"\xff\x00\x1b[2J".as_slice() } else { body.as_bytes() };
        let topic = 1 + number as u32 % 2;
        let (client, client_sequence, unix_ns) = (7, number, number * 1_000_000_000);
        let entry = Entry { topic, client, client_sequence, unix_ns, flags: 3, head: b"", body };
        log.append(&[entry]).unwrap();
        log.commit().unwrap();
    }
    log
}

fn damage(stage: &Stage, segment: u64, offset: u64) {
    let path = stage.path("j").join(format!("{segment:016x}.segment"));
    let file = File::options().write(true).open(path).unwrap();
    file.write_all_at(&[0xa5; 8], offset).unwrap();
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn a_whole_journal_is_shown_and_verified() {
    let stage = Stage::new();
    let log = fill(&stage);
    let text = stage.run("journal inspect j").good();
    assert!(text.contains("120 records") && text.contains("it is whole"), "{text}");
    assert!(text.contains(&format!("process {} owns it", std::process::id())), "{text}");
    drop(log);
    let inspected = json(&stage.run("journal inspect --json j").good());
    let verified = json(&stage.run("journal verify --json j").good());
    for look in [&inspected, &verified] {
        assert_eq!((&look["verdict"], &look["owner_pid"]), (&"whole".into(), &Value::Null));
        let segments = look["segments"].as_array().unwrap();
        let records: u64 = segments.iter().map(|s| s["records"].as_u64().unwrap()).sum();
        assert_eq!((records, &segments[0]["is_sealed"]), (120, &true.into()));
    }
    assert!(stage.run("journal verify j").good().contains("no process owns it"));
    assert_eq!(stage.run("journal repair j").good(), "there is nothing to repair\n");
}

#[test]
fn records_are_printed_as_lines_and_as_json() {
    let stage = Stage::new();
    drop(fill(&stage));
    let text = stage.run("journal dump j --count 3").good();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3);
    assert!(lines[0].contains("1970-01-01 00:00:01.000") && lines[0].contains("7:1  0x0003"));
    assert!(!lines[1].contains('\x1b'), "a body must not control the terminal");
    let text = stage.run("journal dump j --json --from 118").good();
    let bodies: Vec<Value> = text.lines().map(json).collect();
    assert_eq!((bodies.len(), &bodies[0]["sequence"]), (3, &118.into()));
    assert!(bodies[2]["body"].as_str().unwrap().starts_with("order 120 "));
    let odd = json(&stage.run("journal dump j --json --count 1 --from 2").good());
    assert_eq!(odd["body_hex"], "ff001b5b324a");
    let since = stage.run("journal dump j --since-ns 119500000000").good();
    assert_eq!(since.lines().count(), 1);
    assert_eq!(stage.run("journal dump j --topic 1").good().lines().count(), 60);
}

#[test]
fn the_end_is_followed() {
    let stage = Stage::new();
    let mut log = fill(&stage);
    let run = stage.start("journal dump j --follow --from 120 --count 2");
    log.append(&[Entry { body: b"the latest", ..Entry::default() }]).unwrap();
    log.commit().unwrap();
    let text = run.finish().good();
    assert!(text.ends_with("the latest\n") && text.lines().count() == 2, "{text}");
}

#[test]
fn damage_is_named_and_repaired_when_told_to() {
    let stage = Stage::new();
    drop(fill(&stage));
    damage(&stage, 2, 8192 + 100);
    let done = stage.run("journal verify j");
    let words = done.refused(1);
    assert!(words.contains("0000000000000002.segment is corrupt at offset 8192"), "{words}");
    assert!(words.contains("lanecast journal repair j"), "{words}");
    let done = stage.run("journal dump j");
    assert!(done.refused(1).contains("is corrupt") && done.out.starts_with(b"       1  "));

    let done = stage.run("journal repair j");
    assert_eq!(done.code, Some(1));
    let text = String::from_utf8(done.out).unwrap();
    assert!(text.contains("would be cut at offset 8192") && text.contains("--yes"), "{text}");
    assert!(stage.run("journal repair j").code == Some(1), "nothing was changed");
    let text = stage.run("journal repair --yes j").good();
    assert!(text.contains("was cut") && text.contains("segment 3 was removed"), "{text}");
    assert!(stage.run("journal verify j").good().contains("it is whole"));
    let last = open(&stage).recovered().last;
    assert!((10..60).contains(&last), "{last}");
}

#[test]
fn a_living_owner_is_not_repaired_behind_its_back() {
    let stage = Stage::new();
    let log = fill(&stage);
    damage(&stage, 1, 8192 + 100);
    let done = stage.run("journal repair --yes j");
    let words = done.refused(1);
    assert!(words.contains(&format!("process {}", std::process::id())), "{words}");
    drop(log);
}

/// Runs each command on a damaged journal; all of them refuse.
fn refused(stage: &Stage, damage: &str, words: &[&str]) {
    for command in ["inspect", "verify", "dump", "repair"] {
        let done = stage.run(&format!("journal {command} j"));
        assert_eq!(done.code, Some(1), "{damage}, {command}: {done:?}");
        let told = format!("{}{}", String::from_utf8_lossy(&done.out), done.err);
        for word in words {
            assert!(told.contains(word), "{damage}, {command}: {told}");
        }
    }
}

#[test]
fn whatever_has_become_of_its_files_is_named_and_repaired() {
    let path = |stage: &Stage, number: u64| stage.path("j").join(format!("{number:016x}.segment"));
    let cut = |stage: &Stage, number, length| {
        File::options().write(true).open(path(stage, number)).unwrap().set_len(length).unwrap();
    };
    let repaired = |damage: &dyn Fn(&Stage), words: &[&str], left: u64| {
        let stage = Stage::new();
        drop(fill(&stage));
        damage(&stage);
        refused(&stage, words[0], words);
        stage.run("journal repair --yes j").good();
        assert!(stage.run("journal verify j").good().contains("it is whole"));
        let last = open(&stage).recovered().last;
        assert!(last >= left && last < 120, "{words:?}: {last}");
    };
    repaired(&|stage| cut(stage, 2, 9_000), &["0000000000000002.segment", "has 9000 bytes"], 30);
    repaired(&|stage| cut(stage, 2, 0), &["0000000000000002.segment", "too short"], 20);
    let missing = |stage: &Stage| std::fs::remove_file(path(stage, 2)).unwrap();
    repaired(&missing, &["0000000000000002.segment", "is missing"], 20);
    let other = |stage: &Stage| {
        std::fs::copy(path(stage, 1), path(stage, 2)).unwrap();
    };
    repaired(&other, &["0000000000000002.segment", "it is segment 1"], 20);
}

#[test]
fn a_journal_that_has_gone_round_is_whole() {
    let stage = Stage::new();
    let retention = Retention { bytes: Some(2 * SEGMENT), age: None };
    let settings = JournalConfig { segment_bytes: SEGMENT, retention, ..JournalConfig::default() };
    let mut log = Log::open(Directory::new(stage.path("j")), settings).unwrap();
    for _ in 0..500 {
        log.append(&[Entry { body: &[9; 300], ..Entry::default() }]).unwrap();
        log.commit().unwrap();
        log.apply_retention().unwrap();
    }
    drop(log);
    assert!(stage.run("journal inspect j").good().contains("it is whole"));
    assert!(stage.run("journal verify j").good().contains("it is whole"));
    let text = stage.run("journal dump j").good();
    assert!(text.lines().last().unwrap().trim_start().starts_with("500 "), "{text}");
    assert_eq!(stage.run("journal repair j").good(), "there is nothing to repair\n");
}

#[test]
fn a_directory_without_a_journal_is_refused() {
    let stage = Stage::new();
    std::fs::create_dir(stage.path("empty")).unwrap();
    stage.write("file", "some text");
    for (line, part) in [
        ("journal inspect missing", "the file does not exist"),
        ("journal inspect empty", "no journal in empty"),
        ("journal verify empty", "no journal in empty"),
        ("journal dump empty", "no journal in empty"),
        ("journal repair empty", "no journal in empty"),
        ("journal inspect file", "cannot read the directory file: Not a directory"),
        ("journal verify file", "cannot read the directory file: Not a directory"),
        ("journal dump file", "cannot read the directory file: Not a directory"),
        ("journal repair --yes file", "cannot read the directory file: Not a directory"),
    ] {
        let done = stage.run(line);
        let words = done.refused(1);
        assert!(words.contains(part), "{line}: {words}");
    }
    drop(fill(&stage));
    assert!(stage.run("journal dump j --from 500").refused(1).contains("does not exist yet"));
}
