//! `lanecast perf smx-report`: real series, as short as they go.

use crate::run::{Stage, wait_for};
use serde_json::Value;

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_series_gives_a_line_for_every_run_and_every_message_is_accounted_for() {
    let stage = Stage::new();
    let options = "--quick --only jitter,slow,receivers,numa --time 5ms --repetitions 2 --json";
    let run = stage.run(&format!("perf smx-report {options}"));
    let lines = lines(&run.good());
    let of = |kind: &str, experiment: &str| {
        let is_it = |line: &&Value| line["kind"] == kind && line["experiment"] == experiment;
        lines.iter().filter(is_it).count()
    };
    assert_eq!(lines.iter().filter(|line| line["kind"] == "jitter").count(), 2);
    assert_eq!((of("run", "slow"), of("run", "receivers")), (2, 8));
    assert_eq!(of("skipped", "numa") + of("run", "numa").min(1), 1);
    for line in lines.iter().filter(|line| line["kind"] == "run") {
        let subscribers = line["subscribers"].as_array().unwrap();
        assert_eq!(line["case"]["receivers"], subscribers.len());
        let publisher = &line["publisher"];
        assert_eq!(publisher["drained"], true);
        for subscriber in subscribers {
            let expected = [&publisher["sent"], &publisher["warmup"]].map(|n| n.as_u64().unwrap());
            assert_eq!(subscriber["received"], expected[0] + expected[1]);
            assert_eq!(subscriber["lost"], 0);
        }
        // Absent where other programs had the CPU for the whole of its time.
        let loop_ns = &line["baseline"]["loop_ns"];
        assert!(loop_ns.is_null() || loop_ns.as_f64().is_some_and(|ns| ns > 0.0), "{line}");
        assert!(line["baseline"].get("loop_ns").is_some(), "{line}");
        assert!(line["host"]["kernel"].is_string() && publisher["host"].is_null());
        let command = publisher["command"].as_str().unwrap();
        assert!(command.starts_with("lanecast perf pub"), "{command}");
    }
}

#[test]
fn impossible_options_are_refused_before_anything_starts() {
    let stage = Stage::new();
    let refused = |arguments: &str, code: i32| {
        stage.run(&format!("perf smx-report {arguments}")).refused(code).to_owned()
    };
    assert!(refused("--only sizes", 2).contains("workload"));
    assert!(refused("--time 5", 2).contains("such as 200us"));
    assert!(refused("--repetitions 0", 2).contains("1..=1000"));
    assert!(refused("--publisher-cpu 4000", 1).contains("CPU 4000 cannot be used here"));
    assert!(refused("--publisher-cpu 0 --receiver-cpus 0", 2).contains("both"));
    assert!(refused("--transport thread", 2).contains("--transport shm"));
}

#[test]
fn an_interrupted_series_ends_its_processes_and_keeps_its_figures() {
    let stage = Stage::new();
    let series = stage.start("perf smx-report --only jitter,size --time 60s --json");
    let children = format!("/proc/{0}/task/{0}/children", series.pid());
    let child = wait_for("a measured process", || {
        let found = std::fs::read_to_string(&children).ok()?;
        found.split_whitespace().next().map(str::to_owned)
    });
    series.signal("INT");
    let done = series.finish();
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.err.contains("interrupted"), "{}", done.err);
    wait_for("the end of the measured process", || {
        (!std::path::Path::new("/proc").join(&child).exists()).then_some(())
    });
}
