//! `lanecast doctor` on whatever machine the tests run on.

use crate::run::Stage;
use serde_json::Value;

#[test]
fn a_quick_look_gives_a_whole_line() {
    let stage = Stage::new();
    let done = stage.run("doctor --quick --json");
    assert!(matches!(done.code, Some(0 | 3)), "{done:?}");
    assert!(done.err.is_empty(), "no progress without a terminal: {}", done.err);
    let line: Value = serde_json::from_slice(&done.out).unwrap();
    assert_eq!((&line["schema"], &line["kind"]), (&1.into(), &"doctor".into()));
    let findings = line["findings"].as_array().unwrap();
    let disturbs = findings.iter().any(|finding| finding["state"] == "disturbs");
    assert_eq!(done.code, Some(if disturbs { 3 } else { 0 }));
    for id in ["cpus", "governor", "domain-memory", "clock-source", "cpu-quota", "limits"] {
        assert!(findings.iter().any(|finding| finding["id"] == id), "{id}: {findings:?}");
    }
    assert!(line["noise_p99_9_ns"].is_null() && line["gaps"] == Value::Array(vec![]));
}

#[test]
fn measuring_ends_with_the_noise_to_expect() {
    let stage = Stage::new();
    let done = stage.run("doctor --seconds 1");
    assert!(matches!(done.code, Some(0 | 3)), "{done:?}");
    let text = String::from_utf8(done.out).unwrap();
    assert!(text.contains("interruptions") && text.contains("background load"), "{text}");
    assert!(!text.contains('\x1b'), "colours are for terminals: {text}");
    assert!(text.lines().last().unwrap().contains("p99.9"), "{text}");
}

#[test]
fn mistakes_are_named() {
    let stage = Stage::new();
    for line in ["doctor --seconds 0", "doctor --quick --seconds 2", "doctor --fast"] {
        stage.run(line).refused(2);
    }
    assert!(stage.run("doctor -c missing.toml").refused(1).contains("missing.toml"));
    let file = stage.run("doctor --quick --directory /dev/null");
    assert!(file.refused(1).contains("/dev/null is not a directory"), "{}", file.err);
}
