//! `lanecast watch`: changes as lines, and as a table on a terminal.

use crate::forms::serve;
#[cfg(feature = "top")]
use crate::live::Screen;
use crate::run::{Run, Stage, wait_for};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpListener;

fn publish(stage: &Stage, way: &str, message: &str) {
    let mut command = stage.lanecast(&format!("pub {way}"));
    command.arg(message);
    Run::start(command).finish().good();
}

#[test]
fn changes_are_lines_where_no_terminal_is() {
    let stage = Stage::new();
    let lines = "{\"id\":1,\"qty\":10}\n{\"id\":2,\"qty\":1}\n";
    let (_server, way) = serve(&stage, "json", "/id", lines);
    let watch = stage.start(&format!("watch {way} -f /qty>5 --count 5"));
    let table = stage.start(&format!("watch {way} -f /qty>5 --columns qty,/id --count 2"));
    let objects = stage.start(&format!("watch {way} --json --count 7"));
    watch.until_out("+ {\"id\":1,\"qty\":10}\n");
    table.until_out("+ 10\t1\n");
    wait_for("two records", || (objects.out().lines().count() == 2).then_some(()));
    publish(&stage, &way, r#"{"id":2,"qty":20}"#);
    watch.until_out("+ {\"id\":2");
    publish(&stage, &way, r#"{"id":2,"qty":21}"#);
    publish(&stage, &way, "{\"id\":1,\"qty\":2,\"note\":\"\u{9b}2J\"}");
    watch.until_out("- {\"id\":1");
    stage.run(&format!("delete {way} -f /id=2")).good();
    let text = watch.finish().good();
    let signs: Vec<&str> = text.lines().map(|line| &line[..10]).collect();
    let expected = ["+ {\"id\":1,", "+ {\"id\":2,", "~ {\"id\":2,", "- {\"id\":1,", "- {\"id\":2,"];
    assert_eq!(signs, expected, "{text}");
    assert!(!text.contains('\u{9b}'), "{text:?}");
    assert_eq!(table.finish().good(), "+ 10\t1\n+ 20\t2\n");
    publish(&stage, &way, r#"{"id":3}"#);
    let text = objects.finish().good();
    let objects: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let last = &objects[5];
    assert_eq!((&last["change"], &last["reason"]), (&"-".into(), &"deleted".into()));
    assert_eq!((&last["command"], &last["topic"]), (&"oof".into(), &"orders".into()));
    assert_eq!((&objects[0]["command"], &objects[6]["command"]), (&"sow".into(), &"p".into()));
    let plain = stage.run(&format!("watch {way} --format json --count 1")).good();
    let plain: Value = serde_json::from_str(&plain).unwrap();
    assert!(plain.get("command").is_none() && plain["change"] == "+", "{plain}");
    assert_eq!((&objects[6]["change"], &objects[6]["message"]["id"]), (&"+".into(), &3.into()));
}

#[test]
fn a_watch_that_cannot_begin_is_explained() {
    let stage = Stage::new();
    let (_server, way) = serve(&stage, "json", "/id", "{\"id\":1}\n");
    for (line, code, part) in [
        (format!("watch {way} -f /a="), 2, "bad filter"),
        (format!("watch {}", way.replace("orders", "other")), 1, "keeps no records"),
        ("watch t --server 127.0.0.1:1".to_owned(), 1, "cannot connect"),
        (format!("watch {way} --order-by /a,/b,down,,"), 2, "order-by"),
        (format!("watch {way} --interval 1ms"), 2, "10ms"),
    ] {
        let done = stage.run(&line);
        assert!(done.refused(code).contains(part), "{line}: {}", done.err);
    }
}

#[test]
fn a_server_that_hangs_up_ends_the_watch() {
    let stage = Stage::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let hang_up = std::thread::spawn(move || {
        for greeting in [&b""[..], b"\x00\x00\x00\x02{}", b"\xff\xff\xff\xffnonsense", b"GET /"] {
            let (mut stream, _) = listener.accept().unwrap();
            let mut part = [0; 16];
            let _ = stream.read(&mut part);
            let _ = stream.write_all(greeting);
        }
    });
    for command in ["watch", "sub", "query", "watch --json"] {
        let done = stage.run(&format!("{command} orders --server {at}"));
        assert!(done.refused(1).starts_with("lanecast: "), "{command}: {}", done.err);
    }
    hang_up.join().unwrap();
}

#[cfg(feature = "top")]
#[test]
fn a_terminal_shows_a_table_that_lives() {
    let stage = Stage::new();
    let lines = "{\"id\":1,\"name\":\"b\u{9b}2J\"}\n{\"id\":2,\"name\":\"a\"}\n";
    let (server, way) = serve(&stage, "json", "/id", lines);
    let line = format!("watch {way} --interval 20ms --order-by /id");
    let watch = Screen::open(&stage, &line, 12, 80);
    watch.until("both records", |lines| {
        lines[0].starts_with("orders: 2 records  +0 ~0 -0")
            && lines[1].trim_end() == "/id↑  /name"
            && lines[2].trim().starts_with("1  b")
            && lines[2].trim().ends_with("2J")
            && lines[3].trim() == "2  a"
    });
    watch.press("sG");
    watch
        .until("the other order", |lines| lines[1].contains("/name↑") && lines[2].contains("2  a"));
    watch.until_shown("{\"id\":1,");
    publish(&stage, &way, r#"{"id":3,"name":"0"}"#);
    watch.until("three records", |lines| {
        lines[0].contains("3 records  +1") && lines[2].contains('3')
    });
    stage.run(&format!("delete {way} -f /id=2")).good();
    watch.until("one gone", |lines| lines[0].contains("2 records  +1 ~0 -1"));
    watch.resize(2, 10);
    watch.until("a small picture", |lines| lines[0] == "orders: 2…");
    watch.press("q");
    watch.finish(0);
    let watch = Screen::open(&stage, &line, 12, 80);
    watch.until_shown("2 records");
    server.signal("TERM");
    watch.until_shown("lanecast: ");
    watch.finish(1);
    server.finish();
}

#[cfg(feature = "top")]
#[test]
fn every_way_out_of_a_watch_gives_the_terminal_back() {
    use rustix::process::Signal;
    let stage = Stage::new();
    let (_server, way) = serve(&stage, "json", "/id", "{\"id\":1}\n");
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let watch = Screen::open(&stage, &format!("watch {way}"), 12, 80);
        watch.until_shown("1 records");
        watch.signal(signal);
        watch.finish(0);
    }
    for key in ["\u{3}", "\u{1b}"] {
        let watch = Screen::open(&stage, &format!("watch {way}"), 12, 80);
        watch.until_shown("1 records");
        watch.press(key);
        watch.finish(0);
    }
}
