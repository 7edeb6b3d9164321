//! Output of `query` and `sub`: raw, as JSON, as a table.

use crate::run::{BINARY, Run, Stage, wait_for};
use serde_json::Value;

/// A server that keeps `orders`, of these messages.
pub(crate) fn serve(stage: &Stage, kind: &str, key: &str, lines: &str) -> (Run, String) {
    let server = stage.start(&format!("serve --listen 127.0.0.1:0 --keep orders:{kind}:{key}"));
    server.until_out("\n");
    let line = server.out();
    let at = line.trim_end().rsplit(' ').next().expect("an address").to_owned();
    let way = format!("orders --server {at} --type {kind}");
    stage.write("lines", lines);
    stage.run(&format!("pub {way} --from-file lines")).good();
    (server, way)
}

fn json(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

#[test]
fn fix_is_printed_in_every_form() {
    let stage = Stage::new();
    let lines = "11=a|55=IBM|38=30|\n11=bbb|55=M\u{1b}[2J|38=7|448=x|448=y|\n";
    let (_server, way) = serve(&stage, "fix", "/11", lines);
    let query = |form: &str| stage.run(&format!("query {way} --order-by /38 {form}")).good();
    assert_eq!(query(""), "11=bbb|55=M\u{1b}[2J|38=7|448=x|448=y|\n11=a|55=IBM|38=30|\n");
    let expected = r#"{"11":"bbb","55":"M\u001b[2J","38":"7","448":["x","y"]}"#;
    assert_eq!(query("--format json").lines().next(), Some(expected));
    let table = "/11  /55    /38  /448\nbbb  M\u{fffd}[2J    7  x +1\na    IBM     30\n";
    assert_eq!(query("--format table"), table);
    assert_eq!(query("--columns 38,/55"), "/38  /55\n  7  M\u{fffd}[2J\n 30  IBM\n");
    let whole = json(&query("--meta"));
    assert_eq!((&whole[0]["command"], &whole[0]["message"]["38"]), (&"sow".into(), &"7".into()));
    assert!(whole[0]["sow_key"].is_string() && whole[0]["topic"] == "orders");
    assert_eq!(query("--json"), query("--format json --meta"));
    for bad in ["--format picture", "--columns //", "--json --format raw"] {
        stage.run(&format!("query {way} {bad}")).refused(2);
    }
}

#[test]
fn json_and_xml_have_columns_of_their_leaves() {
    let stage = Stage::new();
    let lines = "{\"id\":1,\"leg\":{\"qty\":[1,2]},\"n\":1.50}\n{\"id\":2,\"leg\":{\"qty\":3}}\n";
    let (_server, way) = serve(&stage, "json", "/id", lines);
    let table = stage.run(&format!("query {way} --order-by /id --format table")).good();
    assert_eq!(table, "/id  /leg/qty    /n\n  1  1 +1      1.50\n  2  3\n");
    let raw = stage.run(&format!("query {way} --order-by /id --format json")).good();
    assert_eq!(raw, lines);
    let line = "<o id='1'><qty>5</qty></o>\n";
    let (_server, way) = serve(&stage, "xml", "/o/@id", line);
    let object = stage.run(&format!("query {way} --format json")).good();
    assert_eq!(object, "{\"o\":{\"@id\":\"1\",\"qty\":\"5\"}}\n");
    let table = stage.run(&format!("query {way} --format table")).good();
    assert_eq!(table, "/o/@id  /o/qty\n     1       5\n");
    assert_eq!(stage.run(&format!("query {way} --format table -f /o/@id=2")).good(), "");
}

#[test]
fn messages_are_printed_on_arrival() {
    let stage = Stage::new();
    let (_server, way) = serve(&stage, "json", "/id", "{\"id\":1}\n");
    for (form, line) in [
        ("", "{\"id\": 2}\n"),
        ("--format json", "{\"id\":2}\n"),
        ("--json", "{\"command\":\"p\",\"topic\":\"orders\",\""),
        ("--format table", "/id\n  2\n"),
    ] {
        let reader = stage.start(&format!("sub {way} {form}"));
        wait_for("the message", || {
            let mut command = stage.lanecast(&format!("pub {way}"));
            command.arg("{\"id\": 2}");
            Run::start(command).finish().good();
            reader.out().contains(line).then_some(())
        });
        reader.signal("INT");
        reader.finish().good();
    }
}

#[test]
fn a_closed_pipe_ends_a_query_quietly() {
    let stage = Stage::new();
    let lines: String = (0..20_000).map(|id| format!("{{\"id\":{id}}}\n")).collect();
    let (_server, way) = serve(&stage, "json", "/id", &lines);
    let mut command = stage.command("bash");
    let line = format!("set -o pipefail; {BINARY} query {way} --format table | head -1");
    command.args(["-c", &line]);
    let done = Run::start(command).finish();
    assert_eq!((done.good(), &*done.err), ("/id\n".to_owned(), ""));
}
