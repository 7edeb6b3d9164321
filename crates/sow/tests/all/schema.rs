//! Configurations that do not match the stored definitions.

use lanecast_filter::message_type::MessageType;
use lanecast_journal::{Directory, Durability, JournalConfig};
use lanecast_sow::durable::{Dump, MismatchKind, Schema, SowStore, SowStoreError};
use lanecast_sow::{Publication, Topic, TopicDefinition, ViewDefinition};
use std::path::Path;
use std::time::Duration;

type Opened = (SowStore<Directory>, Vec<Topic>);

const LONG: Duration = Duration::from_secs(60);

fn topic(name: &str, key: &str) -> TopicDefinition {
    TopicDefinition::new(name, MessageType::Json).key(key).expect("a path")
}

fn view(projection: &str) -> ViewDefinition {
    ViewDefinition::new("total", MessageType::Json, "orders").project(projection)
}

fn schema(topics: &[TopicDefinition], views: &[ViewDefinition], forget: &[&str]) -> Schema {
    let forget = forget.iter().map(|name| (*name).into()).collect();
    Schema { topics: topics.to_vec(), views: views.to_vec(), forget }
}

fn open(directory: &Path, schema: Schema) -> Result<Opened, SowStoreError> {
    SowStore::open(Directory::new(directory), JournalConfig::default(), schema)
}

/// Stores twenty records of each topic, in a checkpoint or in the journal alone.
fn fill(directory: &Path, schema: Schema, has_checkpoint: bool) {
    let (mut archive, mut topics) = open(directory, schema).expect("opened");
    for id in 0..20 {
        let body = format!(r#"{{"id":{id},"sub":{},"qty":1}}"#, id % 3);
        for topic in &mut topics {
            let published = archive.publish(topic, &Publication::of(body.as_bytes()), 0);
            published.expect("taken");
        }
    }
    if has_checkpoint {
        write_checkpoint(&mut archive, &topics);
    }
    archive.journal().wait(archive.last(), Durability::Persisted, LONG).expect("persisted");
}

fn write_checkpoint(archive: &mut SowStore<Directory>, topics: &[Topic]) {
    let mut checkpoint = archive.begin_checkpoint().expect("begun");
    let all: Vec<&Topic> = topics.iter().collect();
    while checkpoint.advance(&all, 7).expect("written") {}
    archive.install_checkpoint(checkpoint, LONG).expect("adopted");
}

fn misfits(opened: Result<Opened, SowStoreError>) -> Vec<(Box<str>, MismatchKind)> {
    match opened.map(drop).expect_err("it does not fit") {
        SowStoreError::SchemaMismatch(all) => {
            all.into_iter().map(|one| (one.name, one.why)).collect()
        }
        other => panic!("{other}"),
    }
}

fn lengths(opened: Result<Opened, SowStoreError>) -> Vec<usize> {
    opened.expect("opened").1.iter().map(Topic::len).collect()
}

#[test]
fn a_topic_that_the_settings_lack_stays_until_it_is_forgotten_by_name() {
    for has_checkpoint in [false, true] {
        let directory = tempfile::tempdir().expect("a directory");
        let both = [topic("orders", "/id"), topic("fills", "/id")];
        fill(directory.path(), schema(&both, &[], &[]), has_checkpoint);
        let one = &both[1..];
        let error = open(directory.path(), schema(one, &[], &["fills", "ordres"]));
        let error = error.map(drop).expect_err("it lacks one").to_string();
        assert!(error.contains("the topic orders") && error.contains("--forget"), "{error}");
        assert!(error.contains(r#"storage.forget = ["orders"]"#), "{error}");
        let none = misfits(open(directory.path(), schema(&[], &[], &[])));
        let names: Vec<&str> = none.iter().map(|(name, _)| &**name).collect();
        assert!(names.contains(&"orders") && names.contains(&"fills"), "{names:?}");
        // The refusals changed nothing, and matching topics are kept.
        let forget = ["orders", "fills"];
        assert_eq!(lengths(open(directory.path(), schema(&both, &[], &forget))), [20, 20]);
        let (mut archive, topics) =
            open(directory.path(), schema(one, &[], &["orders"])).expect("opened");
        assert_eq!(archive.dropped(), ["orders".into()]);
        assert_eq!(topics[0].len(), 20);
        if has_checkpoint {
            write_checkpoint(&mut archive, &topics);
        }
        drop(archive);
        assert_eq!(lengths(open(directory.path(), schema(one, &[], &[]))), [20]);
        assert_eq!(lengths(open(directory.path(), schema(&both, &[], &[]))), [0, 20]);
        fill(directory.path(), schema(&both, &[], &[]), false);
        assert_eq!(lengths(open(directory.path(), schema(&both, &[], &[]))), [20, 20]);
        let dump = Dump::read(&Directory::new(directory.path())).expect("readable");
        assert_eq!((dump.records.len(), dump.names.len()), (40, 2));
    }
}

#[test]
fn a_changed_key_or_type_is_refused_until_the_topic_is_forgotten() {
    for has_checkpoint in [false, true] {
        let directory = tempfile::tempdir().expect("a directory");
        let before = [topic("orders", "/id"), topic("fills", "/id")];
        fill(directory.path(), schema(&before, &[], &[]), has_checkpoint);
        let rekeyed = [topic("orders", "/sub"), topic("fills", "/id")];
        let retyped = TopicDefinition::new("orders", MessageType::Fix).key("/11").expect("a path");
        let retyped = [retyped, topic("fills", "/id")];
        for (after, words) in [(&rekeyed, "(json, /sub)"), (&retyped, "(fix, /11)")] {
            let error = open(directory.path(), schema(after, &[], &[]));
            let error = error.map(drop).expect_err("changed").to_string();
            assert!(error.contains("(json, /id)") && error.contains(words), "{error}");
        }
        let indexed = topic("orders", "/id").index("/qty").expect("a path").lifetime(LONG);
        let indexed = [indexed, topic("fills", "/id")];
        assert_eq!(lengths(open(directory.path(), schema(&indexed, &[], &[]))), [20, 20]);
        let forget = ["orders", "fills"];
        assert_eq!(lengths(open(directory.path(), schema(&rekeyed, &[], &forget))), [0, 20]);
        fill(directory.path(), schema(&rekeyed, &[], &forget), false);
        assert_eq!(lengths(open(directory.path(), schema(&rekeyed, &[], &[]))), [3, 20]);
        let back = misfits(open(directory.path(), schema(&before, &[], &[])));
        assert!(matches!(&*back, [(name, MismatchKind::Changed { .. })] if &**name == "orders"));
    }
}

#[test]
fn a_changed_view_is_refused_until_it_is_forgotten() {
    let directory = tempfile::tempdir().expect("a directory");
    let topics = [topic("orders", "/id")];
    let (sum, count) = (view("SUM(/qty) AS /qty"), view("COUNT(/qty) AS /qty"));
    fill(directory.path(), schema(&topics, std::slice::from_ref(&sum), &[]), true);
    let spaced = [view("SUM(/qty)  AS\n /qty")];
    assert_eq!(lengths(open(directory.path(), schema(&topics, &spaced, &[]))), [20]);
    let changed =
        misfits(open(directory.path(), schema(&topics, std::slice::from_ref(&count), &[])));
    assert!(matches!(&*changed, [(name, MismatchKind::Changed { .. })] if &**name == "total"));
    let missing = misfits(open(directory.path(), schema(&topics, &[], &[])));
    assert!(matches!(&*missing, [(name, MismatchKind::Missing)] if &**name == "total"));
    let count = [count];
    assert_eq!(lengths(open(directory.path(), schema(&topics, &count, &["total"]))), [20]);
    assert_eq!(lengths(open(directory.path(), schema(&topics, &count, &[]))), [20]);
    assert_eq!(lengths(open(directory.path(), schema(&topics, &[], &["total"]))), [20]);
    assert_eq!(lengths(open(directory.path(), schema(&topics, &[], &[]))), [20]);
}

/// Journals of version 1 store no definitions: mismatches show in the messages.
#[test]
fn a_changed_key_is_noticed_where_no_definition_is_on_disk() {
    let directory = tempfile::tempdir().expect("a directory");
    let written = [topic("orders", "/id")];
    {
        let journal = lanecast_journal::Journal::open(
            Directory::new(directory.path()),
            JournalConfig::default(),
        );
        let journal = journal.expect("opened");
        // An entry of version 1, copied from another store.
        let elsewhere = tempfile::tempdir().expect("a directory");
        fill(elsewhere.path(), schema(&written, &[], &[]), false);
        let reader = lanecast_journal::Reader::open(Directory::new(elsewhere.path()));
        let reader = reader.expect("readable");
        let mut cursor = reader.cursor(lanecast_journal::Start::Sequence(2)).expect("records");
        let mut last = 0;
        while let Some(record) = cursor.read().expect("readable") {
            let entry = lanecast_journal::Entry { body: record.body, ..Default::default() };
            last = *journal.append(&[entry]).expect("room").end();
        }
        journal.wait(last, Durability::Persisted, LONG).expect("persisted");
    }
    let rekeyed = [topic("orders", "/sub")];
    let found = misfits(open(directory.path(), schema(&rekeyed, &[], &[])));
    assert!(matches!(&*found, [(_, MismatchKind::Refused(_))]), "{found:?}");
    let none = misfits(open(directory.path(), schema(&[], &[], &[])));
    assert!(matches!(&*none, [(name, MismatchKind::Missing)] if name.starts_with('#')), "{none:?}");
    assert_eq!(lengths(open(directory.path(), schema(&written, &[], &["orders"]))), [20]);
    // The definition was added at opening.
    let found = misfits(open(directory.path(), schema(&rekeyed, &[], &[])));
    assert!(matches!(&*found, [(_, MismatchKind::Changed { .. })]), "{found:?}");
    assert_eq!(lengths(open(directory.path(), schema(&rekeyed, &[], &["orders"]))), [0]);
    assert_eq!(lengths(open(directory.path(), schema(&rekeyed, &[], &[]))), [0]);
}
