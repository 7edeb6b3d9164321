//! Looking at a domain from outside: `ls`, `stat`, `clean`.

use crate::run::{Stage, wait_for};
use serde_json::Value;

fn json(stage: &Stage, line: &str) -> Vec<Value> {
    let text = stage.run(line).good();
    let Ok(Value::Array(items)) = serde_json::from_str(&text) else { panic!("{line}: {text}") };
    items
}

#[test]
fn a_running_pair_is_seen_and_left_alone() {
    let stage = Stage::new();
    let subscriber = stage.start("sub prices --once");
    let mut publisher = stage.start("pub prices --wait-subscribers 1");
    publisher.feed("a\nb\n");
    subscriber.until_out("b\n");
    let session = wait_for("the subscriber to have read everything", || {
        let mut sessions = json(&stage, "ls --json --interval 1ms");
        assert_eq!(sessions.len(), 1);
        let session = sessions.remove(0);
        (session["subscribers"][0]["lag_bytes"] == 0).then_some(session)
    });
    assert_eq!(session["pid"], publisher.pid());
    assert_eq!(session["state"], "alive");
    assert_eq!(session["topics"], serde_json::json!(["prices"]));
    assert_eq!(session["messages"], 2);
    let reader = &session["subscribers"][0];
    assert_eq!((&reader["pid"], &reader["messages"]), (&subscriber.pid().into(), &2.into()));
    let table = stage.run("ls --interval 1ms").good();
    assert!(table.contains("publisher") && table.contains("subscriber"), "{table}");

    let processes = json(&stage, "stat --json");
    for pid in [publisher.pid(), subscriber.pid()] {
        let process = processes.iter().find(|process| process["pid"] == pid).expect("counters");
        assert_eq!(process["is_alive"], true, "{process}");
        assert!(process["counters"].as_array().is_some_and(|c| !c.is_empty()), "{process}");
    }

    assert!(json(&stage, "clean --dry-run --json").is_empty());
    assert!(json(&stage, "clean --json").is_empty());
    publisher.feed("c\n");
    publisher.finish().good();
    assert_eq!(subscriber.finish().good(), "a\nb\nc\n");
}

#[test]
fn the_remains_of_a_killed_publisher_are_shown_then_removed() {
    let stage = Stage::new();
    let publisher = stage.start("pub prices --wait-subscribers 1");
    wait_for("the session", || {
        json(&stage, "ls --json --interval 1ms").iter().any(|s| s["state"] == "alive").then_some(())
    });
    publisher.signal("KILL");
    assert_eq!(publisher.finish().code, None);
    assert_eq!(json(&stage, "ls --json --interval 1ms")[0]["state"], "dead");

    let shown = json(&stage, "clean --dry-run --json");
    assert!(shown.iter().all(|file| file["verdict"] == "would be removed"), "{shown:?}");
    let removed = json(&stage, "clean --json");
    assert!(removed.iter().all(|file| file["verdict"] == "removed"), "{removed:?}");
    assert_eq!(shown.len(), removed.len());
    assert!(!removed.is_empty());
    assert!(json(&stage, "clean --dry-run --json").is_empty());
    assert!(json(&stage, "ls --json").is_empty());
}

#[test]
fn an_empty_domain_is_no_error() {
    let stage = Stage::new();
    assert!(json(&stage, "ls --json").is_empty());
    assert!(json(&stage, "stat --json").is_empty());
    assert!(json(&stage, "clean --json").is_empty());
    assert!(stage.run("ls").good().starts_with("no sessions in "));
    assert!(stage.run("clean").good().starts_with("nothing to clean in "));
}

#[test]
fn domains_do_not_meet() {
    let stage = Stage::new();
    let subscriber = stage.start("sub topic --once --directory here");
    stage.run("pub topic --directory there").good();
    assert_eq!(json(&stage, "ls --json --directory there").len(), 0);
    stage.run("pub topic --directory here --wait-subscribers 1").good();
    let received = subscriber.finish();
    received.good();
    assert_eq!(received.err.matches("joined").count(), 1, "{}", received.err);
}
