//! `lanecast perf floor`: real runs, as short as they go.

use crate::run::Stage;
use serde_json::Value;

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

const SHORT: &str = "-A -1 -a -1 -n 40 -r 2000 -w 5 --time 2ms";

#[test]
fn every_transport_is_measured_both_ways_and_told_as_lines_text_and_page() {
    let stage = Stage::new();
    let text = stage.run(&format!("perf floor {SHORT} -o floor.jsonl -o floor.html")).good();
    for part in ["Round trips, from the intended time", "Bare sockets, one way", "bare tcp"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let lines = lines(&std::fs::read_to_string(stage.path("floor.jsonl")).unwrap());
    for line in &lines {
        assert_eq!((&line["kind"], &line["lost"]), (&"baseline".into(), &0.into()), "{line}");
        assert_eq!(line["sent"], line["received"], "{line}");
        assert!(line["clock"].is_string() && line["receiver"]["cpus"]["ran_on"].is_u64());
        assert_eq!(line["cpus"]["choice"], "none");
    }
    let of = |name: &str, value: &str| lines.iter().filter(|line| line[name] == value).count();
    assert_eq!((of("experiment", "round-trip"), of("transport", "tcp")), (6, 3));
    assert!(of("way", "several") == 2 && of("way", "gathered") == 1);
    let page = std::fs::read_to_string(stage.path("floor.html")).unwrap();
    assert!(page.contains("Round trips by percentile") && page.contains("Bare sockets, one way"));
}

#[test]
fn only_the_chosen_sockets_are_measured() {
    let stage = Stage::new();
    let run = stage.run(&format!("perf floor {SHORT} -m 100 --only tcp --round-trips --json"));
    let lines = lines(&run.good());
    assert_eq!(lines.len(), 2);
    for line in lines {
        assert_eq!((&line["transport"], &line["size"]), (&"tcp".into(), &100.into()));
        assert_eq!(line["latency"]["actual"]["samples"], 40);
        assert_eq!(line["latency"]["intended"]["samples"], 40);
    }
}

#[test]
fn impossible_options_are_refused_in_words() {
    let stage = Stage::new();
    stage.refuses(
        2,
        "perf floor",
        &[
            ("--only udp,sctp", "choose of udp, multicast, tcp"),
            ("--time 0s", "between 1us and 10min"),
            ("-n some", "invalid value 'some'"),
            ("-m 15", "take 16 to 65507 bytes"),
            ("-m 65508", "take 16 to 65507 bytes"),
            ("-r 0", "1 or more"),
            ("-o x.hgrm", "x.hgrm"),
        ],
    );
    stage.refuses(1, "perf floor", &[("-A 4000", "no CPU 4000")]);
}
