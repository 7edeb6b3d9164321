//! `lanecast filter`: what people read about a filter, and what it lets through.

use crate::run::{BINARY, Done, Run, Stage};
use serde_json::Value;

fn filter(stage: &Stage, arguments: &[&str]) -> Done {
    let mut command = stage.command(BINARY);
    command.arg("filter").args(arguments);
    Run::start(command).finish()
}

fn json(done: &Done) -> Vec<Value> {
    let text = String::from_utf8(done.out.clone()).expect("text");
    text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

const ORDERS: &str =
    "35=D|55=IBM|38=7000|\n\n35=8|55=IBM|38=9000|\n35=D|55=MSFT|\r\n35=C|55=IBM|\n";

#[test]
fn a_filter_is_explained() {
    let stage = Stage::new();
    let text = "/58 like 'a|b' and /38 >= 5000 and /55 = 'IBM'";
    let told = filter(&stage, &["explain", text, "--type", "fix"]).good();
    for part in [
        "filter   /58 LIKE 'a|b' AND /38 >= 5000 AND /55 = 'IBM'\ntree     AND\n",
        "1. /55 = 'IBM' (cost 1)\n         2. /38 >= 5000 (cost 2)\n",
        "index    by value: /55 = 'IBM'\nresidual /38 >= 5000 (cost 2)\nresidual /58 LIKE",
        "cost     give messages",
    ] {
        assert!(told.contains(part), "{part}\n{told}");
    }
    let told = filter(&stage, &["explain", "upper(/a) = 'X'"]).good();
    assert!(told.contains("evaluated for every message"), "{told}");
}

#[test]
fn a_long_filter_is_explained_in_lines_that_can_be_read() {
    let stage = Stage::new();
    let symbols: Vec<String> = (0..150).map(|symbol| format!("'SYM{symbol:03}'")).collect();
    let symbols = symbols.join(",");
    let wide = format!("/symbol in ({symbols}) and /qty >= 5000");
    let each: Vec<String> = (0..70).map(|field| format!("/f{field} <> 'x{field}'")).collect();
    let long = each.join(" and ");
    for (text, lines, parts) in [
        (
            &*wide,
            60,
            ["             ... 141 more\n", " more characters (cost", "1. /qty >= 5000 (cost"],
        ),
        (
            &long,
            80,
            ["           ... 60 more\n", "         ... 60 more (cost 180", "10. /f9 <> 'x9' ("],
        ),
    ] {
        let told = filter(&stage, &["explain", text]).good();
        let widest = told.lines().map(str::len).max();
        assert!(widest <= Some(120) && told.lines().count() < lines, "{told}");
        for part in parts {
            assert!(told.contains(part), "{part}\n{told}");
        }
        // The whole filter is there once, and may be copied.
        let first: Vec<&str> = told.split("\ntree ").next().unwrap().lines().collect();
        let first = first.iter().map(|line| &line[9..]).collect::<Vec<_>>().join(" ");
        let done = filter(&stage, &["explain", text, "--json"]);
        done.good();
        assert_eq!(json(&done)[0]["filter"], *first);
    }
    stage.write("orders", "{\"symbol\":\"IBM\",\"qty\":7000}\n");
    let told = filter(&stage, &["test", &wide, "orders", "--verbose"]);
    let told = String::from_utf8_lossy(&told.out);
    assert!(told.contains(" more characters is false: /symbol = 'IBM', /qty = 7000"), "{told}");
    let done = filter(&stage, &["explain", &format!("{wide} and /x = = 3")]);
    let told = done.refused(2);
    assert!(told.lines().all(|line| line.len() < 150), "{told}");
}

#[test]
fn a_filter_is_measured_with_messages() {
    let stage = Stage::new();
    stage.write("orders", ORDERS);
    let told = filter(&stage, &["explain", "/38 > 1", "--type", "fix", "--file", "orders"]).good();
    assert!(told.contains("for a message to be read and judged\n"), "{told}");
    assert!(told.contains("messages 4, of which 2 match and 0 are malformed\n"), "{told}");
    let done = filter(&stage, &["explain", "/a > 1", "--json", "-m", r#"{"a":2}"#, "-m", "{"]);
    done.good();
    let told = &json(&done)[0];
    assert_eq!((&told["filter"], &told["is_indexed"]), (&"/a > 1".into(), &true.into()));
    assert_eq!(told["tree"], serde_json::json!({ ">": ["/a", "1"] }));
    assert_eq!(told["index"][0]["by"], "range");
    let (trial, cost) = (&told["trial"], &told["trial"]["cost"]);
    assert_eq!((&trial["matched"], &trial["malformed"]), (&1.into(), &1.into()));
    assert!(cost["p50_ns"].as_f64() > Some(0.0) && cost["samples"].as_u64() > Some(0), "{cost}");
    assert!(cost["p99_ns"].as_f64() >= cost["p50_ns"].as_f64(), "{cost}");
}

#[test]
fn a_bad_filter_is_pointed_at() {
    let stage = Stage::new();
    for verb in ["explain", "test"] {
        let done = filter(&stage, &[verb, "/55 = IBM and /38 > 5"]);
        let words = done.refused(2);
        let lines: Vec<&str> = words.lines().collect();
        assert_eq!(lines[..2], ["lanecast: bad filter", "/55 = IBM and /38 > 5"], "{words}");
        assert!(lines[2].starts_with("      ^ ") && lines.len() > 3, "{words}");
    }
    let done = filter(&stage, &["explain", "/a = '\u{1b}[2J\u{202e}"]);
    assert!(!done.refused(2).contains(['\u{1b}', '\u{202e}']), "{}", done.err);
    for odd in ["", "(((((", "/a like '(a'", &"(".repeat(70_000)] {
        assert!(filter(&stage, &["test", odd]).refused(2).contains('^'), "{odd:.9}");
    }
}

#[test]
fn lines_are_let_through_as_grep_does() {
    let stage = Stage::new();
    stage.write("orders", ORDERS);
    let fix = |text| filter(&stage, &["test", text, "--type", "fix", "orders"]);
    let text = "/55 = 'IBM' and /35 in ('D','C')";
    assert_eq!(fix(text).good(), "35=D|55=IBM|38=7000|\n35=C|55=IBM|\n");
    assert_eq!(fix("/55 = 'none'").refused(1), "");
    let missing = filter(&stage, &["test", "/a = 1", "missing"]);
    assert!(missing.refused(2).contains("cannot read missing"), "{}", missing.err);
    let mut command = stage.command(BINARY);
    command.args(["filter", "test", "/a = 1", "-"]).stdin(std::process::Stdio::piped());
    let mut run = Run::start(command);
    run.feed("{\"a\":1}\n");
    run.until_out("{\"a\":1}\n");
    run.feed("{\"a\":\n{\"a\":2}\n");
    let done = run.finish();
    assert!(done.refused(2).contains("line 2: malformed message: unexpected end"), "{done:?}");
}

#[test]
fn each_verdict_has_its_reasons() {
    let stage = Stage::new();
    stage.write("orders", format!("{ORDERS}35=\u{1b}[2J|55=IBM|38=x|\nnonsense\n"));
    let line = ["test", "/38 >= 8000 and /55 = 'IBM'", "--type", "fix", "-v", "orders"];
    let done = filter(&stage, &line);
    let text = String::from_utf8(done.out.clone()).expect("text");
    for part in [
        "false      35=D|55=IBM|38=7000|\n           /38 >= 8000 is false: /38 = '7000', /55",
        "true       35=8|55=IBM|38=9000|\n           /38 = '9000', /55 = 'IBM'\n",
        "unknown    35=C|55=IBM|\n           /38 >= 8000 is unknown: /38 absent, /55 = 'IBM'\n",
        "malformed  nonsense\n           malformed message: ",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert!(!text.contains('\u{1b}') && done.code == Some(2), "{text:?}");
    let verdicts = json(&filter(&stage, &[&line[..], &["--json"]].concat()));
    assert_eq!(verdicts.len(), 6);
    assert_eq!((&verdicts[0]["line"], &verdicts[0]["truth"]), (&1.into(), &"false".into()));
    assert_eq!(verdicts[0]["because"], "/38 >= 8000 is false");
    assert_eq!(verdicts[1]["fields"]["/38"][0], "'9000'");
}

#[test]
fn a_closed_pipe_ends_filter_test_quietly() {
    let stage = Stage::new();
    stage.write("many", "{\"a\":1}\n".repeat(100_000));
    let mut command = stage.command("bash");
    command.args(["-c", &format!("set -o pipefail; {BINARY} filter test '/a=1' many | head -1")]);
    let done = Run::start(command).finish();
    assert_eq!((done.good(), &*done.err), ("{\"a\":1}\n".to_owned(), ""));
}
