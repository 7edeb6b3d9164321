//! Topics that are there again: after a restart, after a crash of the machine at any moment.

use lanecast_filter::kind::{Format, Kind};
use lanecast_journal::{Directory, Level, Retention, Settings};
use lanecast_sim::dice::Dice;
use lanecast_sim::disk::SimulatedDisk;
use lanecast_sow::durable::{Archive, ArchiveError, Dump, StoreError};
use lanecast_sow::{Publication, Refusal, Topic, TopicDefinition};
use std::collections::BTreeMap;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(60);

/// What a topic holds, by key.
type State = BTreeMap<u64, (Vec<u8>, u64, Option<u64>)>;

fn settings() -> Settings {
    let retention = Retention { bytes: Some(1), age: None };
    Settings { segment_bytes: 32 << 10, retention, ..Settings::default() }
}

fn definitions() -> Vec<TopicDefinition> {
    let format = Format::new(Kind::Fix).with_separators(b';', b'=').expect("separators");
    let orders = TopicDefinition::new("orders", format).key("/11").expect("a path");
    let orders = orders.index("/38").expect("a path");
    vec![orders, TopicDefinition::new("blobs", Kind::Binary)]
}

fn state(topic: &Topic) -> State {
    let record = |record: &lanecast_sow::Record| {
        let bytes = [record.name().unwrap_or_default().as_bytes(), record.bytes()].concat();
        (record.key().0, (bytes, record.sequence(), record.expires_ns()))
    };
    topic.iter().map(record).collect()
}

fn world(topics: &[Topic]) -> (Vec<State>, Vec<u64>) {
    (topics.iter().map(state).collect(), topics.iter().map(Topic::sequence).collect())
}

type Opened = (Archive<Directory>, Vec<Topic>);

fn open(directory: &tempfile::TempDir) -> Result<Opened, ArchiveError> {
    Archive::open(Directory::new(directory.path()), settings(), definitions())
}

/// Changes one of the topics in some way, and gives the number in the journal if it changed.
fn change<S: lanecast_journal::Storage + Clone>(
    archive: &mut Archive<S>,
    topics: &mut [Topic],
    dice: &mut Dice,
    now_ns: u64,
) -> Result<Option<u64>, StoreError> {
    let id = dice.within(0..=40);
    let lifetime = dice.percent(20).then(|| Duration::from_nanos(dice.within(1..=50)));
    let filling = "x".repeat(dice.spread(1..=300) as usize);
    let message = format!("11={id};38={};58={filling};", dice.within(0..=9));
    let orders = Publication { lifetime, ..Publication::of(message.as_bytes()) };
    let name = format!("blob {id}");
    let blob = Publication { key: Some(&name), lifetime, ..Publication::of(message.as_bytes()) };
    let which = usize::from(dice.percent(40));
    let publication = if which == 0 { &orders } else { &blob };
    let topic = &mut topics[which];
    let logged = match dice.within(0..=9) {
        0..=6 => Some(archive.publish(topic, publication, now_ns)?),
        7 => archive.delete_as(topic, publication, now_ns)?,
        8 => {
            let key = topic.iter().next().map(|record| record.key());
            match key {
                Some(key) => archive.delete(topic, key, "", now_ns)?,
                None => None,
            }
        }
        _ => archive.expire(topic, now_ns)?,
    };
    Ok(logged.map(|logged| logged.journal_sequence))
}

fn checkpoint<S: lanecast_journal::Storage + Clone>(
    archive: &mut Archive<S>,
    topics: &mut [Topic],
    dice: &mut Dice,
    now_ns: u64,
) -> Result<(), ArchiveError> {
    let mut checkpoint = archive.begin_checkpoint()?;
    loop {
        let all: Vec<&Topic> = topics.iter().collect();
        if !checkpoint.advance(&all, dice.within(1..=20) as usize)? {
            break;
        }
        // Back-pressure and a broken disk are the next caller's business.
        let _ = change(archive, topics, dice, now_ns);
    }
    checkpoint.seal()?;
    archive.adopt(checkpoint, LONG)
}

#[test]
fn topics_are_the_same_after_a_restart_with_and_without_checkpoints() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut dice = Dice::new(5);
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
fn what_is_refused_is_not_kept() {
    let directory = tempfile::tempdir().expect("a directory");
    {
        let (mut archive, mut topics) = open(&directory).expect("opened");
        let refused = archive.publish(&mut topics[0], &Publication::of(b"38=1;"), 0);
        assert!(matches!(refused, Err(StoreError::Refused(Refusal::NoKeyField(_)))));
        let long = vec![b'x'; 40 << 10];
        let named = Publication { key: Some("a"), ..Publication::of(&long) };
        let refused = archive.publish(&mut topics[1], &named, 0);
        assert!(matches!(refused, Err(StoreError::Append(_))));
        assert!(topics.iter().all(|topic| topic.is_empty() && topic.sequence() == 0));
    }
    let (_, topics) = open(&directory).expect("opened");
    assert!(topics.iter().all(Topic::is_empty));
}

#[test]
fn damage_to_a_checkpoint_is_named() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut dice = Dice::new(9);
    let covered = {
        let (mut archive, mut topics) = open(&directory).expect("opened");
        for step in 0..400 {
            change(&mut archive, &mut topics, &mut dice, step).expect("taken");
        }
        checkpoint(&mut archive, &mut topics, &mut dice, 400).expect("taken");
        assert!(archive.journal().retain().is_ok());
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
        assert!(matches!(error, ArchiveError::Damaged { .. }), "cut at {at}: {error}");
    }
    std::fs::remove_file(&path).expect("removed");
    let error = open(&directory).map(drop).expect_err("records are missing");
    assert!(matches!(error, ArchiveError::Read(_)), "{error}");
}

#[test]
fn topics_are_told_apart_and_forgotten_ones_do_not_matter() {
    let directory = tempfile::tempdir().expect("a directory");
    let twice = vec![TopicDefinition::new("a", Kind::Fix), TopicDefinition::new("a", Kind::Fix)];
    let storage = Directory::new(directory.path());
    let error = Archive::open(storage.clone(), settings(), twice).map(drop).expect_err("twice");
    assert!(error.to_string().contains("rename one"), "{error}");
    let expected = {
        let (mut archive, mut topics) = open(&directory).expect("opened");
        let mut dice = Dice::new(2);
        for step in 0..50 {
            change(&mut archive, &mut topics, &mut dice, step).expect("taken");
        }
        state(&topics[1])
    };
    let blobs = definitions().split_off(1);
    let (_, topics) = Archive::open(storage, settings(), blobs).expect("opened");
    assert_eq!(state(&topics[0]), expected);
}

/// A life on the simulated disk: changes and checkpoints until the machine stops. Gives all states
/// by the journal's number, and how much was said to be persisted.
fn live(
    disk: &SimulatedDisk,
    dice: &mut Dice,
    now_ns: u64,
) -> Option<(BTreeMap<u64, Vec<State>>, u64)> {
    let (mut archive, mut topics) = Archive::open(disk.clone(), settings(), definitions()).ok()?;
    let first = archive.journal().recovered().last;
    let mut history = BTreeMap::from([(first, world(&topics).0)]);
    let mut persisted = first;
    for step in 0..80 {
        match change(&mut archive, &mut topics, dice, now_ns + step) {
            Ok(Some(sequence)) => drop(history.insert(sequence, world(&topics).0)),
            Ok(None) => {}
            Err(_) => break,
        }
        let last = *history.last_key_value()?.0;
        if dice.percent(10)
            && last > first
            && archive.journal().wait(last, Level::Persisted, LONG).is_err()
        {
            break;
        }
        persisted = persisted.max(archive.journal().reached(Level::Persisted));
        if dice.percent(5) {
            let mut taken = archive.begin_checkpoint().ok();
            while let Some(checkpoint) = &mut taken {
                let all: Vec<&Topic> = topics.iter().collect();
                match checkpoint.advance(&all, 5) {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(_) => taken = None,
                }
                if let Ok(Some(sequence)) = change(&mut archive, &mut topics, dice, now_ns + step) {
                    history.insert(sequence, world(&topics).0);
                }
            }
            if let Some(checkpoint) = taken
                && archive.adopt(checkpoint, LONG).is_err()
            {
                break;
            }
        }
    }
    persisted = persisted.max(archive.journal().reached(Level::Persisted));
    Some((history, persisted))
}

#[test]
fn a_crash_at_any_moment_leaves_what_was_persisted_and_nothing_else() {
    let seeds = if std::env::var_os("LONG_TESTS").is_some() { 10_000 } else { 150 };
    let mut lives = 0;
    for seed in 0..seeds {
        let mut dice = Dice::new(seed);
        let disk = SimulatedDisk::new(dice.any(), 4 << 20);
        for life in 0..3 {
            disk.stop_after(dice.spread(5..=400));
            let lived = live(&disk, &mut dice, life * 1_000);
            disk.crash();
            let (archive, topics) = Archive::open(disk.clone(), settings(), definitions())
                .unwrap_or_else(|error| panic!("seed {seed}, life {life}: {error}"));
            let last = archive.journal().recovered().last;
            if let Some((history, persisted)) = lived {
                lives += 1;
                assert!(last >= persisted, "seed {seed}: {last} of {persisted}");
                let expected = history.get(&last);
                assert_eq!(Some(&world(&topics).0), expected, "seed {seed}, life {life}");
            }
            drop(archive);
        }
    }
    assert!(lives > seeds, "{lives}");
}

/// What a dump has of each topic.
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
    assert!(matches!(Dump::read(&storage), Err(ArchiveError::Open(_))), "nothing is there");
    let (mut archive, mut topics) = open(&directory).expect("new");
    let mut dice = Dice::new(11);
    for round in 0..4 {
        let mut last = 0;
        for now_ns in 0..200 {
            let logged = change(&mut archive, &mut topics, &mut dice, now_ns).expect("room");
            last = logged.unwrap_or(last);
        }
        archive.journal().wait(last, Level::Persisted, LONG).expect("persisted");
        let dump = Dump::read(&storage).expect("readable");
        assert_eq!(dump.damage, []);
        assert_eq!((dumped(&dump), dump.last), (world(&topics).0, last), "round {round}");
        assert_eq!(dump.names.len(), if round == 0 { 0 } else { 2 });
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
    assert!(matches!(&*dump.damage, [ArchiveError::Damaged { offset: 32, .. }]), "{dump:?}");
}
