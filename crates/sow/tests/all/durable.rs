//! Restarts of durable topics, and the errors of damaged ones.

use crate::topics::{State, change, definitions, settings, state, world};
use lanecast_filter::message_type::MessageType;
use lanecast_journal::{AppendError, Directory, Durability, JournalConfig};
use lanecast_sim::rng::SimRng;
use lanecast_sow::durable::{Dump, Schema, SowStore, SowStoreError, WriteError};
use lanecast_sow::{KEY_BYTES_MAX, Publication, Topic, TopicDefinition, TopicError};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(60);

type Opened = (SowStore<Directory>, Vec<Topic>);

fn open(directory: &tempfile::TempDir) -> Result<Opened, SowStoreError> {
    SowStore::open(Directory::new(directory.path()), settings(), definitions())
}

fn checkpoint<S: lanecast_journal::Storage + Clone>(
    archive: &mut SowStore<S>,
    topics: &mut [Topic],
    dice: &mut SimRng,
    now_ns: u64,
) -> Result<(), SowStoreError> {
    let mut checkpoint = archive.begin_checkpoint()?;
    loop {
        let all: Vec<&Topic> = topics.iter().collect();
        if !checkpoint.advance(&all, dice.within(1..=20) as usize)? {
            break;
        }
        // Back-pressure and disk errors show at the next operation.
        let _ = change(archive, topics, dice, now_ns);
    }
    checkpoint.seal()?;
    archive.install_checkpoint(checkpoint, LONG)
}

#[test]
fn topics_are_the_same_after_a_restart_with_and_without_checkpoints() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut dice = SimRng::new(5);
    let mut expected = None;
    for round in 0..12_u64 {
        let (mut archive, mut topics) = open(&directory).expect("opened");
        if let Some(expected) = &expected {
            assert_eq!(&world(&topics), expected, "round {round}");
        }
        for step in 0..200 {
            change(&mut archive, &mut topics, &mut dice, round * 1_000 + step).expect("taken");
            if step % 70 == 60 && round % 3 > 0 {
                checkpoint(&mut archive, &mut topics, &mut dice, round * 1_000).expect("taken");
            }
        }
        assert!(round < 2 || archive.covered() > 0);
        expected = Some(world(&topics));
    }
    let names = std::fs::read_dir(directory.path()).expect("a directory");
    let names = names.map(|entry| entry.expect("an entry").file_name().into_string());
    let names: Vec<String> = names.map(|name| name.expect("text")).collect();
    assert_eq!(names.iter().filter(|name| name.contains("checkpoint")).count(), 1, "{names:?}");
    let segments = names.iter().filter(|name| name.ends_with(".segment")).count();
    assert!(segments < 12, "what is covered is removed: {names:?}");
}

#[test]
fn a_refused_message_is_not_stored() {
    let directory = tempfile::tempdir().expect("a directory");
    {
        let (mut archive, mut topics) = open(&directory).expect("opened");
        let refused = archive.publish(&mut topics[0], &Publication::of(b"38=1;"), 0);
        assert!(matches!(refused, Err(WriteError::Refused(TopicError::MissingKeyField(_)))));
        let long = vec![b'x'; 40 << 10];
        let named = Publication { key: Some("a"), ..Publication::of(&long) };
        let refused = archive.publish(&mut topics[1], &named, 0);
        assert!(matches!(refused, Err(WriteError::Append(_))));
        assert!(topics.iter().all(|topic| topic.is_empty() && topic.sequence() == 0));
    }
    let (_, topics) = open(&directory).expect("opened");
    assert!(topics.iter().all(Topic::is_empty));
}

#[test]
fn a_key_that_is_too_long_is_refused_and_forges_no_entries() {
    let directory = tempfile::tempdir().expect("a directory");
    // Segments that hold the whole key: the journal alone would refuse it otherwise.
    let settings = JournalConfig { segment_bytes: 1 << 20, ..settings() };
    let open = || SowStore::open(Directory::new(directory.path()), settings.clone(), definitions());
    let whole = "k".repeat(KEY_BYTES_MAX);
    {
        let (mut archive, mut topics) = open().expect("opened");
        let blobs = &mut topics[1];
        for length in [KEY_BYTES_MAX + 1, 70_000] {
            let key = "k".repeat(length);
            let named = Publication { key: Some(&key), ..Publication::of(b"blob") };
            let refusal = TopicError::KeyTooLong(length);
            let refused = archive.publish(blobs, &named, 0).map(drop);
            assert_eq!(refused, Err(WriteError::Refused(refusal.clone())));
            assert_eq!(archive.publish_delta(blobs, &named, 0).map(drop), refused);
            assert_eq!(blobs.publish(&named, 0).map(drop), Err(refusal));
        }
        let named = Publication { key: Some(&whole), ..Publication::of(b"blob") };
        archive.publish(blobs, &named, 0).expect("the longest key");
    }
    let (_, topics) = open().expect("readable");
    let names: Vec<_> = topics[1].iter().map(lanecast_sow::Record::name).collect();
    assert_eq!(names, [Some(&*whole)]);
}

#[test]
fn a_name_that_is_too_long_is_refused_at_the_start() {
    let directory = tempfile::tempdir().expect("a directory");
    let storage = Directory::new(directory.path());
    let long = TopicDefinition::new(&"t".repeat(1 << 16), MessageType::Fix);
    let settings = JournalConfig { segment_bytes: 1 << 20, ..settings() };
    let opened = SowStore::open(storage, settings.clone(), vec![long]).map(drop);
    assert_eq!(opened, Err(SowStoreError::Append(AppendError::TooLong)));
    let storage = Directory::new(directory.path());
    SowStore::open(storage, settings, definitions()).expect("nothing was written");
}

#[test]
fn damage_to_a_checkpoint_is_named() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut dice = SimRng::new(9);
    let covered = {
        let (mut archive, mut topics) = open(&directory).expect("opened");
        for step in 0..400 {
            change(&mut archive, &mut topics, &mut dice, step).expect("taken");
        }
        checkpoint(&mut archive, &mut topics, &mut dice, 400).expect("taken");
        assert!(archive.journal().apply_retention().is_ok());
        archive.covered()
    };
    let path = directory.path().join(format!("{covered:016x}.checkpoint"));
    let whole = std::fs::read(&path).expect("a checkpoint");
    for at in (0..whole.len()).step_by(1_013).chain([20, 28, whole.len() - 1]) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x10;
        std::fs::write(&path, &damaged).expect("written");
        let error = open(&directory).map(drop).expect_err("damaged");
        let text = error.to_string();
        assert!(text.contains("checkpoint"), "byte {at}: {text}");
        std::fs::write(&path, &whole[..at]).expect("written");
        let error = open(&directory).map(drop).expect_err("cut");
        assert!(matches!(error, SowStoreError::Damaged { .. }), "cut at {at}: {error}");
    }
    std::fs::remove_file(&path).expect("removed");
    let error = open(&directory).map(drop).expect_err("records are missing");
    assert!(matches!(error, SowStoreError::Read(_)), "{error}");
}

#[test]
fn topics_are_told_apart_and_others_stay_when_one_is_forgotten() {
    let directory = tempfile::tempdir().expect("a directory");
    let twice = vec![
        TopicDefinition::new("a", MessageType::Fix),
        TopicDefinition::new("a", MessageType::Fix),
    ];
    let storage = Directory::new(directory.path());
    let error = SowStore::open(storage.clone(), settings(), twice).map(drop).expect_err("twice");
    assert!(error.to_string().contains("rename one"), "{error}");
    let expected = {
        let (mut archive, mut topics) = open(&directory).expect("opened");
        let mut dice = SimRng::new(2);
        for step in 0..50 {
            change(&mut archive, &mut topics, &mut dice, step).expect("taken");
        }
        state(&topics[1])
    };
    let blobs = definitions().split_off(1);
    let forget = vec!["orders".into()];
    let schema = Schema { topics: blobs, forget, ..Schema::default() };
    let (_, topics) = SowStore::open(storage, settings(), schema).expect("opened");
    assert_eq!(state(&topics[0]), expected);
}

/// Contents of a dump, by topic.
fn dumped(dump: &Dump) -> Vec<State> {
    let numbers = ["orders", "blobs"].map(Dump::number_of);
    let of = |number: &u32| {
        let records = dump.records.iter().filter(|record| record.topic == *number);
        let entry = |record: &lanecast_sow::durable::DumpedRecord| {
            let bytes = [record.name.as_bytes(), &record.message].concat();
            (record.key.0, (bytes, record.sequence, record.expires_ns))
        };
        records.map(entry).collect()
    };
    numbers.iter().map(of).collect()
}

#[test]
fn a_dump_shows_what_its_owner_has_and_changes_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let storage = Directory::new(directory.path());
    assert!(matches!(Dump::read(&storage), Err(SowStoreError::Open(_))), "nothing is there");
    let (mut archive, mut topics) = open(&directory).expect("new");
    let mut dice = SimRng::new(11);
    for round in 0..4 {
        let mut last = 0;
        for now_ns in 0..200 {
            let logged = change(&mut archive, &mut topics, &mut dice, now_ns).expect("room");
            last = logged.unwrap_or(last);
        }
        archive.journal().wait(last, Durability::Persisted, LONG).expect("persisted");
        let dump = Dump::read(&storage).expect("readable");
        assert_eq!(dump.damage, []);
        assert_eq!((dumped(&dump), dump.last), (world(&topics).0, last), "round {round}");
        assert_eq!(dump.names.len(), 2);
        checkpoint(&mut archive, &mut topics, &mut dice, 200).expect("room");
    }
    drop(archive);
    let whole = dumped(&Dump::read(&storage).expect("readable"));
    let (_, topics) = open(&directory).expect("unharmed");
    assert_eq!(whole, world(&topics).0);

    let path = std::fs::read_dir(directory.path())
        .expect("files")
        .map(|file| file.expect("a file").path());
    let path =
        path.into_iter().find(|path| path.extension().is_some_and(|end| end == "checkpoint"));
    let path = path.expect("a checkpoint");
    let mut bytes = std::fs::read(&path).expect("bytes");
    *bytes.get_mut(100).expect("a long file") ^= 1;
    std::fs::write(&path, bytes).expect("written");
    let dump = Dump::read(&storage).expect("readable");
    assert!(matches!(&*dump.damage, [SowStoreError::Damaged { offset: 32, .. }]), "{dump:?}");
}
