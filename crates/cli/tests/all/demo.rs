//! `demo`, which is what a newcomer sees first.

use crate::run::{Stage, children, wait_for};
use std::os::unix::process::CommandExt;

/// A signal to the demonstration alone, as `kill` sends it, and one to all its processes, as Ctrl-C
/// and a terminal that hangs up send it.
#[test]
fn an_interrupted_demonstration_leaves_no_directories_behind() {
    for (signal, to_all) in [("TERM", false), ("HUP", true), ("INT", true)] {
        let stage = Stage::new();
        let line = "demo --seconds 60 --rate 1000 --lines 1000 --orders 0";
        let mut command = stage.lanecast_at_terminal(line);
        command.process_group(0);
        let demo = crate::run::Run::start(command);
        let child = || children(demo.pid());
        // The publisher is the last one of the first part.
        let children = wait_for("its processes", || Some(child()).filter(|it| it.len() == 4));
        let directory = wait_for("the domain", || directory_of(children[0]));
        if to_all {
            let group = format!("-{}", demo.pid());
            let mut kill = std::process::Command::new("kill");
            assert!(kill.args(["-s", signal, "--", &group]).status().expect("kill").success());
        } else {
            demo.signal(signal);
        }
        let done = demo.finish();
        assert!(done.refused(1).contains("lanecast: interrupted"), "{signal}: {}", done.err);
        assert!(!directory.exists(), "{signal}: {} is left", directory.display());
        for child in children {
            wait_for("the end of its processes", || directory_of(child).is_none().then_some(()));
        }
    }
}

/// The demonstration's directory, which an argument of its process names.
fn directory_of(pid: u32) -> Option<std::path::PathBuf> {
    let arguments = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).ok()?;
    let domain = arguments.split('\0').find(|it| it.contains("lanecast-run-demo-"))?;
    Some(std::path::Path::new(domain).parent()?.to_owned())
}

#[test]
fn a_killed_demonstration_ends_its_processes() {
    let stage = Stage::new();
    let demo = stage.start("demo --seconds 60 --rate 1000 --lines 1000 --orders 0");
    let children = wait_for("its processes", || {
        Some(children(demo.pid())).filter(|children| children.len() == 4)
    });
    demo.signal("KILL");
    for child in children {
        wait_for("the end of its processes", || directory_of(child).is_none().then_some(()));
    }
}

#[test]
fn no_survivor_loses_anything() {
    let stage = Stage::new();
    let text = stage.run("demo --seconds 1 --rate 20000 --lines 1000 --orders 20000 --json").good();
    let outcome: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(outcome["lost"], 0, "{outcome}");
    let total = outcome["flat_out"]["total"].as_u64().unwrap();
    assert!(total > 20_000, "{outcome}");
    let survivors = outcome["survivors"].as_array().unwrap();
    assert_eq!(survivors.len(), 2);
    for survivor in survivors {
        assert_eq!(survivor["received"], total, "{survivor}");
        assert_eq!(survivor["out_of_order"], 0, "{survivor}");
        assert_eq!(survivor["fate"], "closed", "{survivor}");
    }
    let group = &outcome["group"];
    assert_eq!((&group["agreed"], &group["out_of_order"]), (&true.into(), &0.into()), "{group}");
    assert!(group["delivered"].as_u64().unwrap() > 0, "{group}");
    let store = &outcome["store"];
    let (published, second) = (&store["published"], &store["second_life"]);
    assert_eq!((&second["next"], &second["wrong"]), (published, &0.into()), "{store}");
    assert!(second["recovered"].as_u64() >= store["missed"].as_u64(), "{store}");
    let content = &outcome["content"];
    assert_eq!((&content["published"], &content["lost"]), (&20_000.into(), &0.into()), "{content}");
    assert_eq!(content["wrong_subscribers"], 0, "{content}");
    assert!(content["delivered"].as_u64().unwrap() > 1_000, "{content}");
    assert!(content["view"]["records"].as_u64().unwrap() > 100, "{content}");
    assert_eq!(content["view"]["wrong"], 0, "{content}");
    let questions = content["questions"].as_array().unwrap();
    assert!(questions.iter().all(|it| it["is_right"] == true && it["records"] != 0), "{content}");
}
