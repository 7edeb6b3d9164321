//! Looking at a domain from outside: `ls`, `stat`, `clean`.

use crate::run::{Run, Stage, wait_for};
use serde_json::Value;
use std::fs::File;
use std::os::unix::fs::{chown, symlink};
use std::path::PathBuf;

fn json(stage: &Stage, line: &str) -> Vec<Value> {
    let text = stage.run(line).good();
    let Ok(Value::Array(mut items)) = serde_json::from_str(&text) else { panic!("{line}: {text}") };
    // Tests beside this one kill runs.
    items.retain(|item| item["run"] != true);
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

/// Runs make their directories in /dev/shm and where temporary files are, whatever the domain.
#[test]
fn directories_of_killed_runs_are_removed_and_those_in_use_or_of_others_kept() {
    let stage = Stage::new();
    let path = |name: &str| stage.path("temporary").join(format!("lanecast-run-{name}"));
    let [killed, held, foreign, link, file] = ["lat-1", "lat-2", "lat-3", "link", "file"].map(path);
    for directory in [&killed, &held, &foreign] {
        std::fs::create_dir_all(directory.join("domain")).unwrap();
        std::fs::write(directory.join("domain/ring"), [0; 100]).unwrap();
    }
    std::fs::write(&file, "").unwrap();
    symlink(&foreign, &link).unwrap();
    // A lock that the test holds, and an owner that only root can give.
    let lock = File::open(&held).unwrap();
    lock.lock().unwrap();
    let is_root = rustix::process::geteuid().is_root();
    let lock_of_foreign = File::open(&foreign).unwrap();
    if is_root {
        chown(&foreign, Some(65534), Some(65534)).unwrap();
    } else {
        lock_of_foreign.lock().unwrap();
    }
    let in_memory = PathBuf::from(format!("/dev/shm/lanecast-run-test-{}", std::process::id()));
    let has_memory = std::fs::create_dir(&in_memory).is_ok();
    let clean = |line: &str| {
        let mut command = stage.lanecast(line);
        command.env("TMPDIR", stage.path("temporary")).env("COLUMNS", "300");
        Run::start(command).finish().good()
    };
    let of_run = |text: String, verdict: &str| {
        let items: Vec<Value> = serde_json::from_str(&text).unwrap();
        let is_here = |it: &&Value| it["path"].as_str().unwrap().contains("/temporary/");
        let here: Vec<_> = items.iter().filter(is_here).collect();
        let expected =
            serde_json::json!({"path": killed, "bytes": 100, "run": true, "verdict": verdict});
        assert_eq!(here, [&expected], "{text}");
    };
    of_run(clean("clean --dry-run --json"), "would be removed");
    assert!(killed.exists());
    let text = clean("clean --dry-run");
    let line = text.lines().find(|it| it.contains(killed.to_str().unwrap())).expect("its line");
    assert!(line.ends_with("would be removed, a killed run's directory"), "{line}");
    of_run(clean("clean --json"), "removed");
    assert!(!killed.exists());
    assert!(!has_memory || !in_memory.exists());
    for kept in [&held, &foreign, &link] {
        assert!(kept.join("domain/ring").exists(), "{}", kept.display());
    }
    assert!(file.exists());
}

#[test]
fn an_empty_domain_is_no_error() {
    let stage = Stage::new();
    assert!(json(&stage, "ls --json").is_empty());
    assert!(json(&stage, "stat --json").is_empty());
    assert!(json(&stage, "clean --json").is_empty());
    assert!(stage.run("ls").good().starts_with("no sessions in "));
    wait_for("nothing of killed runs", || {
        stage.run("clean").good().starts_with("nothing to clean in ").then_some(())
    });
}

/// Tables stack their columns in narrow terminals, and topics are cut: no line is too long, and no
/// number is broken.
#[test]
fn tables_fit_narrow_terminals() {
    let stage = Stage::new();
    let topic = "a.rather.long.topic.name.".repeat(4) + "of.orders";
    let network = format!("--set net.resolver_group=239.195.8.{}:14392", std::process::id() & 0xff);
    let over_both = stage.start(&format!("sub {topic} --transports shm+ru {network}"));
    let mut near = stage.start(&format!("pub {topic} --wait-subscribers 1"));
    let mut far =
        stage.start(&format!("pub {topic} --transports ru --wait-subscribers 1 {network}"));
    for publisher in [&mut near, &mut far] {
        publisher.feed("x\n".repeat(12_345));
    }
    let store = stage.start("store a");
    store.until_out("store a in");
    let member = stage.start("group join lunch --json");
    member.until_out("view");
    wait_for("all messages", || (over_both.out().lines().count() == 24_690).then_some(()));
    for columns in ["40", "80"] {
        for line in [
            "ls --interval 1ms",
            "group ls",
            "store ls",
            "stat",
            "stat --losses",
            "journal inspect lanecast-store/journal",
        ] {
            let mut command = stage.lanecast(line);
            command.env("COLUMNS", columns);
            let text = Run::start(command).finish().good();
            let is_long = |it: &&str| it.chars().count() > columns.parse().unwrap();
            assert_eq!(text.lines().find(is_long), None, "{line} at {columns} columns: {text}");
            if line == "ls --interval 1ms" {
                assert!(!text.contains("12345") && text.matches("12 345").count() >= 2, "{text}");
                let blank = text.lines().zip(text.lines().skip(1));
                let twice = blank.filter(|both| *both == ("", "")).count();
                assert_eq!(twice, 0, "empty lines within a table: {text}");
            }
        }
    }
}

/// Looking makes no directory: neither the domain's nor one above it.
#[test]
fn a_look_leaves_nothing_behind() {
    let stage = Stage::new();
    for (line, code) in [
        ("ls", 0),
        ("stat", 0),
        ("clean", 0),
        ("store ls", 1),
        ("store ls a", 1),
        ("store deregister --topic t --receiver 1 a", 1),
        ("group ls", 1),
        ("group ls g", 1),
    ] {
        let done = stage.run(&format!("{line} --directory state/domain"));
        assert_eq!(done.code, Some(code), "{line}: {}", done.err);
        assert!(!stage.path("state").exists(), "{line}");
        if code == 1 {
            assert!(done.err.contains("there is nothing: state/domain does not"), "{}", done.err);
        }
    }
    // On the network there may be others, which are listened for.
    let group = format!("239.195.7.{}:14391", std::process::id() & 0xff);
    let network = format!("--transports shm+ru --set net.resolver_group={group}");
    for line in ["store ls a --for 10ms", "group ls g --for 10ms"] {
        let done = stage.run(&format!("{line} --directory state/domain {network}"));
        assert_eq!(done.code, Some(1), "{line}: {}", done.err);
        assert!(!done.err.contains("there is nothing"), "{line}: {}", done.err);
        assert!(!stage.path("state").exists(), "{line}");
    }
    for (line, nothing) in
        [("group ls --json", "[]\n"), ("store ls --json", "{\"stores\":[],\"streams\":[]}\n")]
    {
        let done = stage.run(line);
        assert_eq!((done.code, &*done.out), (Some(1), nothing.as_bytes()), "{line}");
    }
    assert!(!stage.path("domain").exists());
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
