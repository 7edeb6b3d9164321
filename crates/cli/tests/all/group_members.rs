//! `lanecast group join`: members that talk, leave, and die.

use crate::run::{Run, Stage, wait_for};
use lanecast::group::GROUP_VERSION;
use lanecast::{Context, Publish};
use std::collections::HashSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

/// Members of the group `lunch`, each with its options, once they are together.
fn members<const N: usize>(stage: &Stage, names: [(&str, &str); N]) -> [Run; N] {
    let start = |(name, options)| {
        stage.start(&format!("group join lunch --leave-timeout 30s --name {name} {options}"))
    };
    let mut runs = names.map(start);
    for run in &mut runs {
        // Asked again when something was said: before it is in a view there is no answer.
        let mut seen = None;
        wait_for("all in one view", || {
            let out = run.out();
            if seen.replace(out.len()) != Some(out.len()) {
                run.feed("/members\n");
            }
            let is_in = |(name, _): &(&str, &str)| {
                out.contains(&format!(" {name} (")) || out.contains(&format!("\"name\":\"{name}\""))
            };
            names.iter().all(is_in).then_some(())
        });
    }
    runs
}

#[test]
fn members_talk_to_all_and_to_one() {
    let stage = Stage::new();
    let [mut ann, mut ben, cas] =
        members(&stage, [("ann", ""), ("ben", "--order total"), ("cas", "--json")]);
    ann.feed("hello all\n/to ben psst\n/to dot psst\n/joni\n");
    for run in [&ann, &ben] {
        run.until_out("\nann: hello all\n");
    }
    cas.until_out("\"name\":\"ann\",\"order\":\"sender\",\"sequence\":0,\"text\":\"hello all\"");
    ben.until_out("\nann (to you): psst\n");
    ann.until_err("no member is called dot");
    ann.until_err("there is no command /joni");
    ben.feed("//slash\n/stats\n");
    cas.until_out("\"order\":\"total\",\"sequence\":0,\"text\":\"/slash\"");
    ann.until_out("\nben: /slash\n");
    ben.until_out("\ndelivered  ");
    ben.feed("/leave\n");
    let ben = ben.finish();
    assert!(ben.good().ends_with("left\n"), "{ben:?}");
    ann.until_out("; ben left");
    ann.signal("INT");
    assert!(ann.finish().good().ends_with("left\n"));
    cas.until_out("\"why\":\"left\"");
    // The end of the input leaves too.
    assert!(cas.finish().good().ends_with("{\"event\":\"left\"}\n"));
}

/// Members whose keys differ do not meet: each says so, once for each reason.
#[test]
fn members_with_different_keys_say_so() {
    let stage = Stage::new();
    for (name, byte) in [("a.key", "6c"), ("b.key", "6d")] {
        stage.write(name, byte.repeat(32));
        fs::set_permissions(stage.path(name), Permissions::from_mode(0o600)).expect("set");
    }
    let join = |options: &str| stage.start(&format!("group join lunch --quiet {options}"));
    let ann = join("--name ann --set group.key_file=a.key");
    let ben = join("--name ben --set group.key_file=b.key");
    let cas = join("--name cas");
    for (run, reason) in [
        (&ann, "group.key_file"),
        (&ben, "group.key_file"),
        (&cas, "is sealed, and this member has no key: set group.key_file"),
    ] {
        run.until_err("frames of this host could not be opened: the key differs? One is ");
        run.until_err(reason);
    }
    wait_for("the counter of it", || {
        let stat = stage.run("stat").good();
        stat.contains("frames that could not be opened").then_some(())
    });
    // Members that have told stay silent for as long as another one takes to.
    let dan = join("--name dan");
    dan.until_err("the key differs?");
    for run in [ann, ben, cas, dan] {
        run.signal("INT");
        let done = run.finish();
        let told: Vec<_> =
            done.err.lines().filter(|line| line.contains("the key differs?")).collect();
        let once: HashSet<_> = told.iter().collect();
        assert!(!told.is_empty() && once.len() == told.len(), "{}", done.err);
    }
}

#[test]
fn members_without_a_name_live_side_by_side_and_one_that_is_replaced_ends() {
    let stage = Stage::new();
    let [ann] = members(&stage, [("ann", "")]);
    let nameless = stage.start("group join lunch");
    ann.until_out(&format!("-{}-", nameless.pid()));
    let later = stage.start("group join lunch --name ann");
    // Before its input ends, on which it would leave.
    ann.until_err("another member has taken this name");
    let ann = ann.finish();
    ann.refused(3);
    assert!(ann.out.ends_with(b"left\n"), "{ann:?}");
    for run in [nameless, later] {
        run.signal("INT");
        run.finish();
    }
}

/// The output of a list of groups; `None` if no member was heard, which may be on a busy machine.
fn heard(stage: &Stage, line: &str) -> Option<String> {
    let done = stage.run(line);
    (done.code != Some(1)).then(|| done.good())
}

#[test]
fn groups_are_listed_with_members_and_views() {
    let stage = Stage::new();
    let nothing = stage.run("group ls --for 1ms");
    assert!(nothing.refused(1).contains("no program of this host takes part"), "{nothing:?}");
    let [ann, ben] = members(&stage, [("ann", ""), ("ben", "")]);
    // A heartbeat may be late on a busy machine.
    let listed = wait_for("both in the list", || {
        let listed = heard(&stage, "group ls")?;
        (listed.contains(" ann ") && listed.contains(" ben ")).then_some(listed)
    });
    assert_eq!(listed.matches("coordinator").count(), 1, "{listed}");
    assert_eq!(listed.matches("lunch").count(), 2, "{listed}");
    wait_for("both in one view", || {
        let json = heard(&stage, "group ls lunch --json")?;
        let groups: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        let members = groups[0]["members"].as_array().expect("members").clone();
        let [one, other] = members.as_slice() else { return None };
        let coordinator = &one["coordinator"];
        (coordinator.is_string() && coordinator == &other["coordinator"]).then_some(())
    });
    let other = stage.run("group ls dinner --for 1ms");
    assert!(other.refused(1).contains("no member of dinner was heard"), "{other:?}");
    let sessions = stage.run("ls --interval 1ms");
    assert!(sessions.good().contains("groups: lunch (members and views"), "{sessions:?}");
    for run in [ann, ben] {
        run.finish().good();
    }
}

#[test]
fn counters_of_members_can_be_watched_while_they_live() {
    let stage = Stage::new();
    let [mut ann, ben] = members(&stage, [("ann", ""), ("ben", "")]);
    ann.feed("hello\n");
    ben.until_out("\nann: hello\n");
    // Members write their counters every 50 ms.
    let member = wait_for("the counters of ann", || {
        let json = stage.run("stat --json").good().to_owned();
        let reports: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        let is_ann = |it: &&serde_json::Value| it["role"] == "member" && it["address"] == "ann";
        let ann = reports.as_array().expect("reports").iter().find(is_ann).cloned()?;
        let has = |label: &str, value: u64| {
            let mut counters = ann["counters"].as_array().expect("counters").iter();
            counters.any(|it| it["label"] == label && it["value"] == value)
        };
        (has("messages", 1) && has("members of the view", 2)).then_some(ann)
    });
    assert_eq!((&member["group"], &member["transport"]), (&"lunch".into(), &"group".into()));
    let text = stage.run("stat --filter lunch");
    assert_eq!(text.good().matches(" of group lunch ").count(), 2, "{text:?}");
    let sessions = stage.run("ls --json --interval 1ms");
    assert!(!sessions.good().contains("\"member\""), "members are no sessions: {sessions:?}");
    for run in [ann, ben] {
        run.finish().good();
    }
    assert!(!stage.run("stat --json").good().contains("\"member\""), "files end with members");
}

#[test]
fn a_killed_member_is_told_of() {
    let stage = Stage::new();
    let [ann, ben] = members(&stage, [("ann", ""), ("ben", "")]);
    ben.signal("KILL");
    ann.until_out("; ben crashed\n");
    ann.finish().good();
}

#[test]
fn names_that_cannot_be_are_refused() {
    let stage = Stage::new();
    stage.refuses(
        2,
        "group join",
        &[
            ("a?b", "cannot contain '?'"),
            (&format!("g --name {}", "x".repeat(65)), "member's name has 1 to 64 bytes"),
        ],
    );
    let setting = ("join g --set group.hang_timeout=1ms", "at most a fifth of group.hang_timeout");
    stage.refuses(2, "group", &[("join", "<GROUP>"), ("join g --order any", "'any'"), setting]);
}

#[test]
fn a_member_of_another_version_is_told_of_in_words() {
    let stage = Stage::new();
    let ann = stage.start("group join lunch --name ann");
    let context = Context::builder().set("shm.directory", stage.path("domain").display());
    let context = context.unwrap().build().unwrap();
    let mut other = context.publisher("_group.lunch").unwrap();
    let mut frame = [0; 24];
    frame[0] = GROUP_VERSION + 1;
    let words = format!(
        "a member speaks version {} of the groups' protocol, this program version \
         {GROUP_VERSION}: give both the same version of lanecast",
        GROUP_VERSION + 1
    );
    wait_for("the words", || {
        let _ = other.try_send(&frame);
        ann.out().contains(&words).then_some(())
    });
    wait_for("the words of an observer", || {
        let command = stage.start("group ls lunch --for 300ms");
        let listed = std::thread::spawn(move || command.finish());
        while !listed.is_finished() {
            let _ = other.try_send(&frame);
            // The pace of a member, not a wait for the command.
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        listed.join().unwrap().err.contains(&words).then_some(())
    });
    assert!(ann.finish().good().ends_with("left\n"));
}
