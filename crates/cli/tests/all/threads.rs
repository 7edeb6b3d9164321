//! `lanecast perf pipes` and `lanecast perf rings`: real runs, as short as they go.

use crate::run::Stage;
use serde_json::Value;

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Every repetition of every case is there, and nothing went wrong.
fn check(lines: &[Value], kind: &str, messages: u64, repetitions: u64) {
    for line in lines {
        assert_eq!((&line["kind"], &line["messages"]), (&kind.into(), &messages.into()), "{line}");
        for wrong in ["lost", "duplicated", "disordered", "damaged"] {
            assert_eq!(line[wrong], 0, "{line}");
        }
        assert_eq!(line["repetitions"], repetitions);
        assert_ne!(line["raise"], "shared-session", "each run leads a session of its own");
        assert!(line["command"].as_str().unwrap().starts_with("lanecast perf"), "{line}");
        assert!(line["host"]["kernel"].is_string() && line["threads"][0]["cpu"].is_u64());
    }
    let first = lines.iter().filter(|line| line["repetition"] == 1).count() as u64;
    assert_eq!(lines.len() as u64, first * repetitions);
}

#[test]
fn every_row_is_run_in_every_batch_and_told_as_lines_text_and_page() {
    let stage = Stage::new();
    let options = "-n 4001 --capacity 256 --batch 1,16 --repetitions 2 -o rings.html";
    let text = stage.run(&format!("perf rings {options} -o rings.jsonl")).good();
    for part in ["1P-3C diamond", "4P-4C", "592.43 M/s", "69.98 M/s", "8 on"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let lines = lines(&std::fs::read_to_string(stage.path("rings.jsonl")).unwrap());
    check(&lines, "rings", 4001, 2);
    assert_eq!(lines.len(), 11 * 2);
    let page = std::fs::read_to_string(stage.path("rings.html")).unwrap();
    assert!(page.contains("Throughput by batch size") && page.contains("AMPS slides: 2P-2C"));
}

#[test]
fn pipes_run_in_turns_with_sockets() {
    let stage = Stage::new();
    let options = "-n 500 --batch 1,64 --on one --repetitions 1";
    let lines = lines(&stage.run(&format!("perf pipes {options} --json")).good());
    check(&lines, "pipes", 500, 1);
    let of = |name: &str, value: &str| lines.iter().filter(|line| line[name] == value).count();
    assert_eq!(of("seats", "one"), lines.len());
    assert_eq!((of("transport", "socketpair"), of("transport", "pollset")), (3, 3));
    assert!(lines.iter().any(|line| line["reference"]["density_ns"] == 3079.0));
    let text = stage.run(&format!("perf pipes {options} --only ping-pong")).good();
    assert!(text.contains("pipe, semaphore") && text.contains("6352 ns"), "{text}");
}

#[test]
fn impossible_options_are_refused_before_anything_starts() {
    let stage = Stage::new();
    stage.refuses(
        2,
        "perf",
        &[
            ("rings --rows 3p-1c", "'3p-1c' is no row: choose of 1p-1c"),
            ("rings --batch 0", "between 1 and 65536"),
            ("rings --batch 1,lots", "'lots' is no number"),
            ("rings --batch 128 --capacity 64", "use a larger --capacity"),
            ("rings --rows 1p-1c-singly --batch 8", "--batch 1 only"),
            ("rings --all-batches --batch 8", "cannot be used with"),
            ("rings --capacity 100", "a power of two"),
            ("rings --capacity 16777216 --size 256", "more than 1 GiB"),
            ("rings --size 12", "choose of 8,16,32"),
            (
                "rings --placement own --rows 4p-4c --cpus 0",
                "8 threads, which is more than there are CPUs",
            ),
            ("rings --placement far", "own, split, mixed"),
            ("rings --wait long", "not a wait strategy"),
            ("rings --time 0s", "between 1ms and 10min"),
            ("rings -n 0", "between 1 and"),
            ("rings -n 5 --time 1s", "cannot be used with"),
            ("rings --repetitions 0", "1..=1000"),
            ("pipes --only latency", "ping-pong, throughput"),
            ("pipes --transports mutex", "socketpair, pollset"),
            ("pipes --on three", "two, one"),
            ("pipes --wait never", "not a wait strategy"),
            ("pipes --batch 1000000", "between 1 and 65536"),
        ],
    );
    assert!(stage.run("perf rings --cpus 4000").refused(1).contains("CPU 4000 cannot be used"));
    assert!(stage.run("perf pipes -o x.hgrm").refused(2).contains("x.hgrm"));
    let none = stage.run("perf pipes --on two --cpus 0");
    assert!(none.refused(2).contains("two --cpus"));
}
