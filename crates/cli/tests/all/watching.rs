//! Looking again and again: `--watch`, `--count`, filters, and names fit for a terminal.

use crate::run::{BINARY, Done, Run, Stage, wait_for};
use serde_json::Value;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// Another user than the superuser.
const NOBODY: u32 = 65_534;

/// The lines of JSON that `lanecast` with the words of `line` prints.
fn looks(stage: &Stage, line: &str) -> Vec<Vec<Value>> {
    let parsed = |text: &str| serde_json::from_str(text).expect("a line of JSON");
    stage.run(line).good().lines().map(parsed).collect()
}

/// A publisher whose subscriber has read the only message.
fn pair(stage: &Stage, topic: &str) -> (Run, Run) {
    let subscriber = stage.start(&format!("sub {topic} --once"));
    let mut publisher = stage.start(&format!("pub {topic} --wait-subscribers 1"));
    publisher.feed("seen\n");
    subscriber.until_out("seen\n");
    (publisher, subscriber)
}

#[test]
fn each_look_is_a_line_of_json_with_its_time() {
    let stage = Stage::new();
    let (publisher, _subscriber) = pair(&stage, "prices");
    let own = |look: &Vec<Value>| {
        let found = look.iter().find(|process| process["pid"] == publisher.pid());
        found.cloned().expect("the publisher")
    };
    let stats = looks(&stage, "stat --watch 10ms --count 3 --json");
    let stats: Vec<Value> = stats.iter().map(own).collect();
    assert_eq!(stats.len(), 3);
    assert!(stats[0]["counters"][0]["per_second"].is_null(), "one look tells no rate");
    assert_eq!(stats[2]["counters"][0]["per_second"], 0.0, "nothing happened");
    let sessions = looks(&stage, "ls --interval 1ms --watch 10ms --count 3 --json");
    let sessions: Vec<Value> = sessions.iter().map(own).collect();
    for looks in [&stats, &sessions] {
        let times = looks.iter().map(|look| look["looked_unix_ns"].as_u64());
        let times: Vec<_> = times.map(|time| time.expect("a time")).collect();
        assert_eq!(times.len(), 3);
        assert!(times[0] < times[1] && times[1] < times[2], "{times:?}");
    }
    let reader = &sessions[0]["subscribers"][0];
    assert_eq!(reader["holds_publisher_up"], false, "{reader}");
    let once = stage.run("stat --json").good() + &stage.run("ls --interval 1ms --json").good();
    assert!(!once.contains("looked_unix_ns") && !once.contains("\"per_second\""), "{once}");
}

#[test]
fn blocks_follow_each_other_where_no_terminal_is() {
    let stage = Stage::new();
    let _pair = pair(&stage, "prices");
    for line in ["stat --watch 10ms --count 3", "ls --interval 1ms --watch 10ms --count 3"] {
        let text = stage.run(line).good();
        let blocks: Vec<&str> = text.split("\n\n").collect();
        assert_eq!(blocks.len(), 3, "{text}");
        assert!(blocks.iter().all(|block| block.contains("rate")), "{text}");
        assert!(!text.contains('\u{1b}'), "{text:?}");
    }
}

#[test]
fn processes_come_and_go_between_looks() {
    let stage = Stage::new();
    let watch = stage.start("ls --watch 10ms --interval 1ms");
    watch.until_out("no sessions in ");
    let publisher = stage.start("pub first --wait-subscribers 1");
    watch.until_out("first");
    publisher.signal("KILL");
    publisher.finish();
    watch.until_out("dead");
    let _publisher = stage.start("pub second --wait-subscribers 1");
    watch.until_out("second");
    watch.signal("INT");
    watch.finish().good();
}

#[test]
fn rates_are_those_since_the_look_before() {
    let stage = Stage::new();
    let _subscriber = stage.start("sub prices --once --quiet");
    let mut publisher = stage.start("pub prices --wait-subscribers 1");
    let watch = stage.start("ls --json --watch 10ms --interval 1ms");
    wait_for("a rate", || {
        publisher.feed("1.2345\n");
        let lines = watch.out();
        let mut looks = lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let shows_rates = looks.any(|look| {
            let rate = |name: &str| look[0][name].as_f64().unwrap_or(0.0);
            rate("messages_per_second") > 0.0
                && rate("bytes_per_second") > rate("messages_per_second")
        });
        shows_rates.then_some(())
    });
}

#[test]
fn an_unreadable_file_is_reported_once() {
    let stage = Stage::new();
    let _pair = pair(&stage, "prices");
    stage.write("domain/0\u{1b}[2J.stats", "nonsense");
    stage.write("domain/0000000000000001.ring", "nonsense");
    // The sessions of the network are in files of counters.
    let (counters, ring) = ("0\u{fffd}[2J.stats: ", "0000000000000001.ring: ");
    for (line, parts) in [
        ("stat --watch 10ms --count 3", &[counters][..]),
        ("ls --interval 1ms --watch 10ms --count 3", &[counters, ring]),
    ] {
        let done = stage.run(line);
        done.good();
        for part in parts {
            assert_eq!(done.err.matches(part).count(), 1, "{line}: {}", done.err);
        }
        assert_eq!(done.err.lines().count(), parts.len(), "{line}: {}", done.err);
    }
}

#[test]
fn filters_choose_what_is_shown() {
    let stage = Stage::new();
    let (publisher, _subscriber) = pair(&stage, "prices");
    let _other = stage.start("pub orders --wait-subscribers 1");
    wait_for("both topics", || (stage.run("ls -1").good() == "orders\nprices\n").then_some(()));
    assert_eq!(stage.run("ls -1 --topic rice").good(), "prices\n");
    let shown = &looks(&stage, "ls --json --interval 1ms --topic rice")[0];
    assert_eq!((shown.len(), &shown[0]["topics"][0]), (1, &"prices".into()));
    assert!(stage.run("ls --topic nonsense --interval 1ms").good().starts_with("no such topic"));
    let joined = stage.run("stat --filter joined").good();
    assert!(joined.contains("sessions joined") && !joined.contains("stale"), "{joined}");
    let own = &looks(&stage, &format!("stat --json --filter {}", publisher.pid()))[0];
    assert_eq!((own.len(), &own[0]["pid"]), (1, &publisher.pid().into()));
    let domain = stage.path("domain");
    let none = format!("no process has such counters in {}\n", domain.display());
    assert_eq!(stage.run("stat --filter nonsense").good(), none);
}

#[test]
fn hostile_names_do_not_reach_the_terminal() {
    let stage = Stage::new();
    let hostile = format!("a\u{1b}]0;owned\u{7}\u{202e}{}", "株".repeat(70));
    let _publisher = stage.start(&format!("pub {hostile} --wait-subscribers 1"));
    wait_for("the session", || (!stage.run("ls -1").good().is_empty()).then_some(()));
    for line in ["ls --interval 1ms", "ls -1"] {
        let text = stage.run(line).good();
        assert!(text.contains("a\u{fffd}]0;owned\u{fffd}\u{fffd}株"), "{text:?}");
        assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
    }
    let exact = &looks(&stage, "ls --json --interval 1ms")[0];
    assert_eq!(exact[0]["topics"][0], hostile.as_str(), "scripts get the name as it is");
    let subscriber = stage.start(&format!("sub {hostile}"));
    subscriber.until_err("joined a\u{fffd}]0;owned");
    let told = subscriber.err();
    assert!(told.chars().all(|c| c == '\n' || !c.is_control()), "{told:?}");
}

#[test]
fn intervals_and_counts_are_checked() {
    let stage = Stage::new();
    stage.refuses(
        2,
        "",
        &[
            ("stat --watch 1ms", "choose at least 10ms"),
            ("stat --watch soon", "soon"),
            ("ls --count 3", "--watch"),
            ("ls --watch --count 0", "0 is not in 1.."),
            ("ls -1 --json", "cannot be used with"),
        ],
    );
}

/// Runs `line` as a user who may read what is in the domain, and write nothing.
fn run_as_viewer(stage: &Stage, program: &Path, line: &str) -> Done {
    let mut command = stage.command(program.to_str().expect("a path"));
    command.args(line.split_whitespace());
    if is_superuser(stage) {
        command.uid(NOBODY).gid(NOBODY);
    }
    Run::start(command).finish()
}

fn is_superuser(stage: &Stage) -> bool {
    std::fs::metadata(stage.path("")).expect("the stage").uid() == 0
}

fn allow(path: impl AsRef<Path>, mode: u32) {
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("a mode");
}

#[test]
fn a_reader_without_write_permission_can_look() {
    let stage = Stage::new();
    let (mut publisher, subscriber) = pair(&stage, "prices");
    // The program may lie where others must not look, and memory may not hold programs.
    let programs = tempfile::tempdir().expect("a directory");
    let program = programs.path().join("lanecast");
    // Copied by another process: children that other tests fork meanwhile would keep it open for
    // writing, and a file that is open for writing cannot be run.
    let copied = Command::new("cp").arg(BINARY).arg(&program).status();
    assert!(copied.expect("cp runs").success(), "a copy of the program");
    for path in [programs.path(), &program, &stage.path("")] {
        allow(path, 0o755);
    }
    for entry in std::fs::read_dir(stage.path("domain")).expect("the domain") {
        allow(entry.expect("an entry").path(), 0o444);
    }
    allow(stage.path("domain"), 0o555);

    let denied = run_as_viewer(&stage, &program, "pub prices");
    assert_eq!(denied.code, Some(1), "without the right to write it cannot publish: {denied:?}");
    let text = run_as_viewer(&stage, &program, "ls --json --interval 1ms").good();
    let sessions: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!((&sessions[0]["state"], &sessions[0]["messages"]), (&"alive".into(), &1.into()));
    assert_eq!(sessions[0]["subscribers"][0]["state"], "alive", "{text}");
    let text = run_as_viewer(&stage, &program, "stat --watch 10ms --count 2").good();
    assert!(text.contains("sessions joined"), "{text}");

    allow(stage.path("domain"), 0o700);
    publisher.feed("unharmed\n");
    publisher.finish().good();
    assert_eq!(subscriber.finish().good(), "seen\nunharmed\n");
}
