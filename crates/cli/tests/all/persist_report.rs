//! `lanecast perf persist-report`: a real series, as short as it goes.

use crate::run::Stage;
use serde_json::Value;

#[test]
fn the_series_runs_beside_the_ceiling_and_leaves_no_data() {
    let stage = Stage::new();
    let options = "-n 2000 -m 64 -w 5,500 --data . -o persist.jsonl -o persist.html";
    let text = stage.run(&format!("perf persist-report {options}")).good();
    for part in ["Messages that stores keep", "3 RPP in quorum", "1.49 M/s", "80% of the"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let lines = std::fs::read_to_string(stage.path("persist.jsonl")).unwrap();
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let cases: Vec<_> = lines.iter().map(|line| line["case"].as_str().unwrap()).collect();
    let kept = ["1 SPP", "1 RPP", "3 RPP in quorum", "3 topics, 1 RPP each"];
    let all = [&["ceiling", "streaming"][..], &kept, &["3 topics, streaming"]].concat();
    assert_eq!(cases, all);
    for line in &lines[1..] {
        assert_eq!((&line["kind"], &line["sent"]), (&"persist".into(), &2000.into()), "{line}");
        assert_eq!((&line["received"], &line["lost"]), (&2005.into(), &0.into()), "{line}");
        let is_kept = kept.contains(&line["case"].as_str().unwrap());
        assert_eq!(line["of_ceiling"].as_f64().is_some_and(|share| share > 0.0), is_kept, "{line}");
        assert_eq!(line["persistence"]["left_in_flight"].as_u64(), is_kept.then_some(0), "{line}");
    }
    assert_eq!(lines[2]["of_spp"], 1.0);
    assert_eq!(lines[3]["persistence"]["stores"], "a");
    assert_eq!(lines[5]["persistence"]["stores"], "a,b,c", "one for each topic");
    let page = std::fs::read_to_string(stage.path("persist.html")).unwrap();
    assert!(page.contains("Share of the disk") && page.contains("<svg"));
    let left = std::fs::read_dir(stage.path("")).unwrap().map(|it| it.unwrap().file_name());
    let left: Vec<_> = left.filter(|name| name.to_string_lossy().contains("lanecast-")).collect();
    assert!(left.is_empty(), "{left:?}");
    stage.refuses(
        1,
        "perf persist-report",
        &[
            ("-n 0", "measure nothing"),
            ("--transport thread", "use shm"),
            ("-w 5,0", "has no rate"),
            ("-o x.hgrm", "rates have no times"),
            ("--data nowhere -n 1 -o x.txt", "nowhere"),
        ],
    );
}
