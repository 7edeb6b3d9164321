//! `lanecast sow dump`: what lies in a directory, whole and damaged.

use crate::run::{Run, Stage};
use lanecast_filter::message_type::MessageType;
use lanecast_journal::{Directory, Durability, JournalConfig};
use lanecast_sow::durable::SowStore;
use lanecast_sow::{Publication, Topic, TopicDefinition};
use serde_json::Value;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(60);

fn open(stage: &Stage) -> (SowStore<Directory>, Vec<Topic>) {
    let orders = TopicDefinition::new("orders", MessageType::Fix).key("/11").unwrap();
    let blobs = TopicDefinition::new("blobs", MessageType::Binary);
    let settings = JournalConfig { segment_bytes: 64 << 10, ..JournalConfig::default() };
    SowStore::open(Directory::new(stage.path("kept")), settings, vec![orders, blobs]).unwrap()
}

/// Two orders and a blob, of which a checkpoint has the first order, if there is one.
fn fill(stage: &Stage, has_checkpoint: bool) -> (SowStore<Directory>, Vec<Topic>) {
    let (mut archive, mut topics) = open(stage);
    let [orders, blobs] = &mut *topics else { unreachable!("two topics") };
    let of = Publication::of;
    archive.publish(orders, &of(b"11=a\x0155=IBM\x01"), 0).unwrap();
    if has_checkpoint {
        let mut checkpoint = archive.begin_checkpoint().unwrap();
        while checkpoint.advance(&[orders, blobs], 10).unwrap() {}
        checkpoint.seal().unwrap();
        archive.install_checkpoint(checkpoint, LONG).unwrap();
    }
    archive.publish(orders, &of(b"11=b\x0155=\x1b[2J\x01"), 1).unwrap();
    archive.publish(orders, &of(b"11=c\x01"), 2).unwrap();
    archive.delete_as(orders, &of(b"11=c\x01"), 3).unwrap();
    let blob = Publication { key: Some("one"), lifetime: Some(LONG), ..of(b"\xff\x00") };
    let last = archive.publish(blobs, &blob, 4).unwrap().journal_sequence;
    archive.journal().wait(last, Durability::Persisted, LONG).unwrap();
    (archive, topics)
}

fn json(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

#[test]
fn kept_records_are_printed_beside_their_owner() {
    let stage = Stage::new();
    let owner = fill(&stage, true);
    let done = stage.run("sow dump kept");
    let text = done.good();
    assert_eq!(text.lines().count(), 3, "{text}");
    for part in ["orders  ", "  -  -  11=a|55=IBM|\n", "1970-01-01 00:01:00.000  one  "] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains('\u{1b}'), "{text:?}");
    assert!(done.err.starts_with("3 records; the journal was read up to its record 6"), "{done:?}");
    let orders = json(&stage.run("sow dump kept orders --json --type fix").good());
    assert_eq!(orders.len(), 2);
    assert_eq!((&orders[0]["topic"], &orders[0]["sequence"]), (&"orders".into(), &1.into()));
    assert_eq!(
        (&orders[0]["command"], &orders[0]["expires_unix_ns"]),
        (&"sow".into(), &Value::Null)
    );
    assert_eq!(orders[1]["message"], serde_json::json!({"11": "b", "55": "\u{1b}[2J"}));
    let matching = json(&stage.run("sow dump --json --type fix -f /55='IBM' kept").good());
    assert_eq!(matching, orders[..1], "the blob cannot be read, and matches no filter");
    let blobs = json(&stage.run("sow dump kept blobs --json").good());
    assert_eq!((&blobs[0]["body_hex"], &blobs[0]["supplied_key"]), (&"ff00".into(), &"one".into()));
    let none = stage.run("sow dump kept none");
    assert_eq!(none.good(), "");
    let told = "nothing is known of a topic none; there are ";
    let names = none.err.strip_prefix(told).and_then(|rest| rest.lines().next());
    // A checkpoint has named both, in the order of their numbers.
    assert!(["orders, blobs", "blobs, orders"].contains(&names.expect(&none.err)), "{names:?}");
    drop(owner);
    let (_, topics) = open(&stage);
    assert_eq!(topics.iter().map(Topic::len).collect::<Vec<_>>(), [2, 1], "nothing was changed");
}

#[test]
fn records_have_the_forms_and_the_order_of_a_query() {
    let stage = Stage::new();
    let _owner = fill(&stage, true);
    let dump = |rest: &str| stage.run(&format!("sow dump kept orders --type fix {rest}")).good();
    let table = dump("--columns /11,/55 -f /55='IBM'");
    assert_eq!(table, "/11  /55\na    IBM\n");
    assert_eq!(dump("--format raw -f /55='IBM'"), "11=a|55=IBM|\n");
    assert_eq!(dump("--format json -f /55='IBM'"), "{\"11\":\"a\",\"55\":\"IBM\"}\n");
    let order = |by: &str| {
        let mut command = stage.lanecast("sow dump kept orders --type fix --json --order-by");
        let records = json(
            &Run::start({
                command.arg(by);
                command
            })
            .finish()
            .good(),
        );
        records
            .iter()
            .map(|it| it["message"]["11"].as_str().unwrap().to_owned())
            .collect::<String>()
    };
    assert_eq!([order("/11"), order("/11 DESC"), order("/55 DESC, /11")], ["ab", "ba", "ba"]);
    let old = stage.run("sow dump kept -t orders --json --type fix");
    assert!(old.err.contains("-t goes with the next version"), "{}", old.err);
    assert_eq!(old.good(), dump("--json"));
    stage.refuses(2, "sow dump kept", &[("orders -t orders", "cannot be used with")]);
}

#[test]
fn a_topic_has_its_name_also_before_a_checkpoint() {
    let stage = Stage::new();
    drop(fill(&stage, false));
    let records = json(&stage.run("sow dump --json kept").good());
    let named = records
        .iter()
        .all(|record| ["orders", "blobs"].map(Value::from).contains(&record["topic"]));
    assert!(records.len() == 3 && named, "{records:?}");
    let none = stage.run("sow dump kept none");
    assert_eq!(none.good(), "");
    assert!(none.err.contains("orders") && none.err.contains("blobs"), "{}", none.err);
    let orders = json(&stage.run("sow dump --json kept orders").good());
    assert!(orders.len() == 2 && orders[0]["topic"] == "orders", "{orders:?}");
}

#[test]
fn damage_is_told_beside_what_can_be_read() {
    let stage = Stage::new();
    drop(fill(&stage, true));
    let files = std::fs::read_dir(stage.path("kept")).unwrap().map(|file| file.unwrap().path());
    let checkpoint = files.into_iter().find(|path| path.extension().unwrap() == "checkpoint");
    let checkpoint = checkpoint.unwrap();
    let mut bytes = std::fs::read(&checkpoint).unwrap();
    bytes[60] ^= 1;
    std::fs::write(&checkpoint, bytes).unwrap();
    let done = stage.run("sow dump kept");
    assert_eq!((done.code, done.out.iter().filter(|byte| **byte == b'\n').count()), (Some(1), 2));
    let words = done.refused(1);
    assert!(words.contains("checkpoint is damaged at byte 32"), "{words}");

    std::fs::remove_file(&checkpoint).unwrap();
    let segment = stage.path("kept").join(format!("{:016x}.segment", 1));
    let mut bytes = std::fs::read(&segment).unwrap();
    bytes[8192 + 70] ^= 1;
    std::fs::write(&segment, bytes).unwrap();
    let done = stage.run("sow dump kept");
    assert!(done.refused(1).contains("segment is corrupt"), "{}", done.err);

    let topic = "[[topic]]\nname = \"orders\"\ntype = \"fix\"\nkey = [\"/11\"]\ndurable = true\n";
    let listen = "[listen]\ntcp = \"127.0.0.1:0\"\n";
    stage.write("serve.toml", format!("{listen}[storage]\ndirectory = \"kept\"\n{topic}"));
    let words = stage.run("serve --config serve.toml").refused(1).to_owned();
    assert_eq!(words.matches("segment is corrupt").count(), 1, "{words}");

    for line in ["sow dump missing", "sow dump ."] {
        let done = stage.run(line);
        let words = done.refused(1);
        assert!(
            words.contains("the file does not exist") || words.contains("no journal in"),
            "{words}"
        );
    }
}
