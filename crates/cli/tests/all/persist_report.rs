//! `lanecast perf persist-report`: a real series, as short as it goes.

use crate::run::Stage;
use serde_json::Value;

#[test]
fn the_series_runs_beside_the_ceiling_and_leaves_no_data() {
    let stage = Stage::new();
    let options = "--only rates -n 2000 -m 64 -w 5,500 --data . -o persist.jsonl -o persist.html";
    let text = stage.run(&format!("perf persist-report {options}")).good();
    for part in ["Messages that stores keep", "3 RPP in quorum", "1.49 M/s", "80% of the"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let lines = lines(&stage);
    let cases: Vec<_> = lines.iter().map(|line| line["case"].as_str().unwrap()).collect();
    let kept = ["1 SPP", "1 RPP", "3 RPP in quorum", "3 topics, 1 RPP each"];
    let all = [&["ceiling", "streaming"][..], &kept, &["3 topics, streaming"]].concat();
    assert_eq!(cases, all);
    for line in &lines[1..] {
        assert_all_arrived(line, 2000, 5);
        let is_kept = kept.contains(&line["case"].as_str().unwrap());
        assert_eq!(line["of_ceiling"].as_f64().is_some_and(|share| share > 0.0), is_kept, "{line}");
        assert_eq!(line["persistence"]["left_in_flight"].as_u64(), is_kept.then_some(0), "{line}");
    }
    assert_eq!(lines[2]["of_spp"], 1.0);
    assert_eq!(lines[3]["persistence"]["stores"], "a");
    assert_eq!(lines[5]["persistence"]["stores"], "a,b,c", "one for each topic");
    let page = std::fs::read_to_string(stage.path("persist.html")).unwrap();
    assert!(page.contains("Share of the disk") && page.contains("<svg"));
    assert_nothing_left(&stage);
    stage.refuses(
        2,
        "perf persist-report",
        &[
            ("-n 0", "measure nothing"),
            ("--transport thread", "use shm"),
            ("-w 5,0", "has no rate"),
            ("--only rates -o x.hgrm", "rates have no times"),
            ("-o x.hgrm", "one distribution"),
            ("--data nowhere -n 1 -o x.txt", "nowhere"),
            ("-r 0 -o x.txt", "latency needs a rate"),
            ("-m 8 -o x.txt", "no room for times"),
        ],
    );
    let cpu = ("--cpus 4000 -o x.txt", "CPU 4000 cannot be used");
    stage.refuses(1, "perf persist-report", &[cpu]);
}

#[test]
fn the_live_path_is_timed_with_a_store_and_without() {
    let stage = Stage::new();
    let options = "--only latency --repetitions 2 -n 500 -r 5000 -m 64 -w 5,500 --data . \
                   -o persist.jsonl -o persist.html -o persist.hlog";
    let text = stage.run(&format!("perf persist-report {options}")).good();
    for part in ["Latency one way", "without a store", "live, 1 SPP", "p99.9", "\u{d7}1.05"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let lines = lines(&stage);
    let cases: Vec<_> = lines.iter().map(|line| line["case"].as_str().unwrap()).collect();
    assert_eq!(cases, ["live, no store", "live, 1 SPP"].repeat(2));
    for pair in lines.chunks(2) {
        let of = |at: usize, percentile: &str| {
            pair[at]["latency"]["intended"][percentile].as_f64().unwrap()
        };
        for (line, stores) in pair.iter().zip(0..) {
            assert_all_arrived(line, 500, 5);
            assert_eq!((&line["stores"], &line["rate_asked"]), (&stores.into(), &5000.into()));
            let samples = &line["latency"]["intended"]["samples"];
            assert_eq!((samples, &line["latency"]["actual"]["samples"]), (&500.into(), samples));
            assert!(line["receiver"]["cpus"]["ran_on"].is_u64(), "{line}");
        }
        for part in ["pinned", "choice"] {
            let cpus = |line: &Value| {
                [&line["cpus"], &line["receiver"]["cpus"]].map(|it| it[part].clone())
            };
            assert_eq!(cpus(&pair[0]), cpus(&pair[1]), "the same with a store and without");
        }
        for (percentile, ratio) in [("p50_ns", "p50_of_none"), ("p99_ns", "p99_of_none")] {
            // Numbers that were printed and read may differ in their last digit.
            let found = pair[1][ratio].as_f64().unwrap() * of(0, percentile) / of(1, percentile);
            assert!((found - 1.0).abs() < 1e-9, "{ratio}: {pair:?}");
            assert!(pair[0][ratio].is_null());
        }
        assert_eq!(
            (&pair[1]["persistence"]["left_in_flight"], pair[1]["asked_p99_of_none"].as_f64()),
            (&0.into(), Some(1.2))
        );
    }
    let page = std::fs::read_to_string(stage.path("persist.html")).unwrap();
    assert!(page.contains("Live path by percentile") && page.contains("<svg"));
    assert_nothing_left(&stage);
}

fn lines(stage: &Stage) -> Vec<Value> {
    let lines = std::fs::read_to_string(stage.path("persist.jsonl")).unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn assert_all_arrived(line: &Value, sent: u64, warmup: u64) {
    assert_eq!((&line["kind"], &line["sent"]), (&"persist".into(), &sent.into()), "{line}");
    let received = (sent + warmup).into();
    assert_eq!((&line["received"], &line["lost"]), (&received, &0.into()), "{line}");
}

fn assert_nothing_left(stage: &Stage) {
    let left = std::fs::read_dir(stage.path("")).unwrap().map(|it| it.unwrap().file_name());
    let left: Vec<_> = left.filter(|name| name.to_string_lossy().contains("lanecast-")).collect();
    assert!(left.is_empty(), "{left:?}");
}
