//! `lanecast perf fanout`: real runs, as short as they go.

use crate::run::Stage;
use serde_json::Value;

#[test]
fn everything_arrives_through_the_server_and_without() {
    let stage = Stage::new();
    let short = "--burst 2000 --bursts 2 --repetitions 1 --subscribers 5 --publishers 1,2";
    let text = stage.run(&format!("perf fanout {short} --json")).good();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 8);
    for line in &lines {
        assert_eq!((&line["kind"], &line["lost"]), (&"fanout".into(), &0.into()), "{line}");
        assert_eq!(line["excess"], 0, "{line}");
        assert!(line["delivered_per_second"].as_f64().unwrap() > 0.0, "{line}");
        assert!(line["latency"]["samples"].as_u64().unwrap() > 0, "{line}");
        let is_served = line["through"] == "lanecast";
        assert_eq!(line["server"]["delivered"] == line["expected"], is_served, "{line}");
        assert!(
            !is_served || line["server"]["command_latency"]["samples"].as_u64().unwrap() > 0,
            "{line}"
        );
    }
    let expected = |wanted: &str| -> Vec<u64> {
        let lines = lines.iter().filter(|line| line["wanted"] == wanted);
        lines.map(|line| line["expected"].as_u64().unwrap()).collect()
    };
    assert_eq!(expected("all"), [20_000; 4]);
    assert!(
        expected("quarter").iter().all(|expected| (600..1_400).contains(expected)),
        "{lines:?}"
    );
}

#[test]
fn a_table_says_where_threads_were_placed() {
    let stage = Stage::new();
    let short = "--burst 500 --bursts 1 --repetitions 1 --subscribers 3 --publishers 1";
    let text = stage.run(&format!("perf fanout {short} --wanted all --numa off")).good();
    for part in ["publishers", "embedded", "lanecast", "p99", "Placement: nodes are not"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let refused = stage.run("perf fanout --numa 4711");
    assert!(refused.refused(2).contains("no node 4711"), "{}", refused.err);
}
