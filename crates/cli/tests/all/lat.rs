//! `lanecast perf lat-report`: real series, as short as they go.

use crate::run::Stage;
use serde_json::Value;

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

const SHORT: &str = "-n 300 -w 5,1000 --transports thread,shm";

#[test]
fn every_transport_is_measured_beside_bare_sockets_and_the_document() {
    let stage = Stage::new();
    let options = format!("{SHORT} --wait spin,park -o lat.jsonl -o lat.html");
    let text = stage.run(&format!("perf lat-report {options}")).good();
    let parts = ["Round trips, from the intended time", "document:", "25.0 µs", "bare"];
    for part in parts.into_iter().chain(["shm + SPP, park", "shm + RPP, park"]) {
        assert!(text.contains(part), "{part}: {text}");
    }
    let lines = lines(&std::fs::read_to_string(stage.path("lat.jsonl")).unwrap());
    let of = |kind: &'static str| lines.iter().filter(move |line| line["kind"] == kind);
    // With two CPUs, threads that spin leave none to a store.
    let kept = of("ping").filter(|line| line["persistence"].is_object()).count();
    assert!([2, 4].contains(&kept), "{kept}");
    assert_eq!(of("baseline").count(), 6);
    assert_eq!([of("ping").count(), of("pong").count()], [4 + kept; 2]);
    for line in of("ping") {
        assert_eq!((&line["sent"], &line["received"]), (&300.into(), &305.into()), "{line}");
        let published = line["reference"].as_array().unwrap();
        assert_eq!((published.len(), &published[0]["p99_ns"]), (3, &34_000.into()));
        assert_eq!(line["linear"]["samples"], 300);
        assert!(line["command"].as_str().unwrap().starts_with("lanecast perf lat-report"));
    }
    for wait in ["spin", "park"] {
        let transports = of("ping").filter(|line| line["wait"] == wait);
        let transports: Vec<_> =
            transports.map(|line| line["transport"].as_str().unwrap()).collect();
        let all = ["thread", "shm", "shm", "shm"];
        assert_eq!(transports, all[..if wait == "spin" { kept } else { 4 }]);
        let modes = of("ping").filter(|line| line["wait"] == wait);
        let modes: Vec<_> = modes.map(|line| line["persistence"]["mode"].as_str()).collect();
        let all = [None, None, Some("s"), Some("r")];
        assert_eq!(modes, all[..if wait == "spin" { kept } else { 4 }]);
    }
    let page = std::fs::read_to_string(stage.path("lat.html")).unwrap();
    for part in ["document: Onload", "both axes logarithmic", "Round trips by percentile"] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn another_load_has_no_figures_of_the_document() {
    let stage = Stage::new();
    let options = "--wait park -m 100 --no-floor --no-store --repetitions 2 --json";
    let lines = lines(&stage.run(&format!("perf lat-report {SHORT} {options}")).good());
    let pings: Vec<_> = lines.iter().filter(|line| line["kind"] == "ping").collect();
    assert_eq!((lines.len(), pings.len()), (8, 4));
    for (at, line) in pings.iter().enumerate() {
        assert_eq!(line["repetition"], at / 2 + 1);
        assert_eq!((&line["repetitions"], &line["size"]), (&2.into(), &100.into()));
        assert_eq!(line["reference"].as_array().map(Vec::len), Some(0));
    }
}

#[test]
fn impossible_options_are_refused_before_anything_starts() {
    let stage = Stage::new();
    stage.refuses(
        2,
        "perf lat-report",
        &[
            ("--transports pigeon", "pigeon"),
            ("--wait never", "not a wait strategy"),
            ("-H 300", "such as 300,1000"),
            ("-w 5", "such as 5,5"),
            ("--repetitions 0", "1..=1000"),
        ],
    );
    stage.refuses(
        1,
        "perf lat-report",
        &[
            ("-r 0", "measure nothing"),
            ("-w 5,0", "has no rate"),
            ("--cpus 4000", "CPU 4000 cannot be used"),
            ("-o x.hgrm", "x.hgrm"),
        ],
    );
    let refused = stage
        .run("perf lat-report --transports shm -m 15 --wait park --no-floor --no-store --json");
    assert_eq!(refused.code, Some(3), "{}", refused.err);
    assert!(refused.err.contains("take -m 16 or more"), "{}", refused.err);
}
