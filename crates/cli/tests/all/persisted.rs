//! `lanecast perf` with `-p`: real publishers, subscribers and stores, with a store killed in the
//! middle.

use crate::run::{Run, Stage, wait_for};
use lanecast::persistence::SourceEvent;
use lanecast::{Context, PersistentPublisher};
use serde_json::Value;
use std::process::Command;

/// Stores ready to serve.
fn stores(stage: &Stage, names: &[&str]) -> Vec<Run> {
    let start = |name: &&str| stage.start(&format!("store {name} --data {name}.data"));
    let stores: Vec<Run> = names.iter().map(start).collect();
    stores.iter().for_each(|store| store.until_out("store "));
    stores
}

/// Longer than a store that lives is without a CPU on a busy machine; the tests wait for its end.
const PATIENCE: &str = "--store-patience-ms 12000";

/// A command that finds silent stores soon and has room for few messages in flight.
fn impatient(stage: &Stage, line: &str) -> Command {
    let mut command = stage.lanecast(line);
    command.env("LANECAST_PERSISTENCE__RETRY", "20ms");
    command.env("LANECAST_PERSISTENCE__FLIGHT_MESSAGES", "500");
    command
}

#[test]
fn publishers_and_subscribers_meet_with_one_store_and_with_three() {
    let stage = Stage::new();
    let _stores = stores(&stage, &["a", "b", "c"]);
    let cases = [
        ("-p s --stores a -t topic1", "persist_mode='s', session_id=0x6, stores='a', ", 1),
        ("-p r --stores a -t topic1", "persist_mode='r', session_id=0x6, stores='a', ", 1),
        ("-p s --stores a,b,c -t trades", "stores='a,b,c', ", 1),
        ("-p r --stores a,b,c -t trades", "stores='a,b,c', ", 1),
        ("-p s --stores a,b,c -t x,y,z", "stores='a,b,c', ", 3),
    ];
    for (options, persistence, topics) in cases {
        let sub = stage.start(&format!("perf sub -E -a -1 {options}"));
        sub.until_err("subscriber registered with its stores");
        let rest = "-m 64 -n 3000 -r 30000 -w 15,500 -f 1 -a -1 --wait-subscribers 1";
        let publisher = stage.run(&format!("perf pub {options} {rest}"));
        let text = publisher.good();
        assert!(text.contains(persistence), "{options}: {text}");
        assert!(
            text.contains("left_in_flight=0, drained_ns=") && text.contains("stores_lost=0, "),
            "{options}: {text}"
        );
        assert!(!text.contains("max_flight_size=unknown"), "{options}: {text}");
        let registered = publisher.err.matches("publisher registered with its stores").count();
        assert_eq!(registered, topics, "{options}: {}", publisher.err);
        let received = sub.finish();
        let text = received.good();
        assert!(text.contains("Rcv: num_rcv_msgs=3015, "), "{options}: {text} {}", received.err);
        assert!(text.contains("source=persistent:6, "), "{options}: {text}");
    }
}

#[test]
fn pings_come_back_in_both_modes() {
    let stage = Stage::new();
    let _stores = stores(&stage, &["store"]);
    for mode in ["s", "r"] {
        let pong = stage.start(&format!("perf pong -E -p {mode}"));
        let ping = "perf ping -m 24 -n 2000 -r 10000 -w 5,500 -H 5,1000 -l 20000 --one-thread";
        let ping = stage.run(&format!("{ping} -p {mode} -o ping-{mode}.jsonl"));
        let text = ping.good();
        let application = format!("app_name='um_perf_{}pp', ", if mode == "s" { "s" } else { "r" });
        assert!(text.contains(&application), "{text}");
        assert!(text.contains("Rcv: num_rcv_msgs=2005, num_rx_msgs="), "{text}");
        let line = std::fs::read_to_string(stage.path(&format!("ping-{mode}.jsonl"))).unwrap();
        let line: Value = serde_json::from_str(&line).unwrap();
        assert_eq!((&line["received"], &line["reported_lost"]), (&2005.into(), &0.into()));
        let persistence = &line["persistence"];
        assert_eq!((&persistence["mode"], &persistence["id"]), (&mode.into(), &6.into()));
        assert_eq!(persistence["left_in_flight"], 0, "{line}");
        let text = pong.finish().good();
        assert!(text.contains("rcv event EOS, 'topic1', persistent:6, "), "{text}");
        assert!(text.contains("\nanswered=2005, "), "{text}");
    }
}

#[test]
fn a_store_that_is_missing_is_asked_for_in_words() {
    let stage = Stage::new();
    let done = stage.run("perf pub -p s -n 1 --store-patience-ms 2500 -a -1");
    let error = done.refused(1);
    assert!(error.contains("Waiting for 1 store registrations."), "{error}");
    assert!(error.contains("no answer from store") && error.contains("lanecast store"), "{error}");
    let done = stage.run("perf sub -p r --stores x,y,z --store-patience-ms 1500 -a -1");
    assert!(done.refused(1).contains("Waiting for 3 store registrations."), "{}", done.err);
    let _store = stores(&stage, &["y"]);
    let sub = stage.start("perf sub -p r --stores x,y,z --store-patience-ms 600000 -a -1");
    sub.until_err("Waiting for 2 store registrations.");
    drop(sub);
    stage.refuses(
        2,
        "perf",
        &[
            ("pub --stores a", "--stores is for -p"),
            ("sub --non-blocking", "--non-blocking is for -p r"),
            ("sub -p s --non-blocking", "--non-blocking is for -p r"),
            ("ping -p s --transport thread", "no store is in this process"),
        ],
    );
    stage.refuses(2, "perf", &[("pub -p q", "write '' for streaming, s source-paced")]);
}

#[test]
fn an_xml_file_selects_the_application_of_the_mode() {
    let stage = Stage::new();
    let application = |name: &str, store: &str| {
        let option = format!(r#"<option name="ume_store_name" default-value="{store}"/>"#);
        format!(r#"<application name="{name}"><options>{option}</options></application>"#)
    };
    let both = application("um_perf_spp", "of-spp") + &application("um_perf_rpp", "of-rpp");
    stage.write("um.xml", format!("<um-configuration>{both}</um-configuration>"));
    for (mode, store) in [("s", "of-spp"), ("r", "of-rpp")] {
        for command in ["pub -n 1", "sub", "ping -n 1", "pong"] {
            let line = format!("perf {command} -p {mode} -x um.xml --store-patience-ms 1");
            let done = stage.run(&line);
            assert!(done.refused(1).contains(&format!("no answer from {store}")), "{}", done.err);
        }
    }
}

#[test]
fn a_publisher_goes_on_with_two_stores_of_three_and_ends_without_the_only_one() {
    let stage = Stage::new();
    let mut servers = stores(&stage, &["a", "b", "c"]);
    let rest = "-m 64 -r 5000 -w 15,500 --resolution-ms 1 -a -1";
    let of_three = format!("perf pub -p s --stores a,b,c -n 20000 {rest} -t many");
    let of_three = Run::start(impatient(&stage, &of_three));
    of_three.until_err("publisher registered with its stores");
    servers[1].signal("KILL");
    of_three.until_err("store b does not answer");
    let done = of_three.finish();
    assert!(done.good().contains("left_in_flight=0, "), "{done:?}");
    assert!(!done.err.contains("store b answers again"), "{done:?}");

    let alone = format!("perf pub -p s --stores a -n 100000 {rest} -t one {PATIENCE}");
    let alone = Run::start(impatient(&stage, &alone));
    alone.until_err("publisher registered with its stores");
    servers[0].signal("KILL");
    alone.until_err("store a does not answer");
    let done = alone.finish();
    let error = done.refused(1);
    assert!(error.contains("messages do not become stable: no answer from a"), "{error}");
    assert!(error.contains("of 100000 messages, then: the publisher is closed"), "{error}");

    // Back on the same disk, it is found by a publisher that goes on.
    drop(servers.remove(0));
    let _again = stores(&stage, &["a"]);
    let done = stage.run("perf pub -p s --stores a -t one -n 100 -r 1000 -a -1 --resolution-ms 1");
    assert!(done.good().contains("left_in_flight=0, "), "{done:?}");
}

/// Sends messages of a measuring publisher, and waits until they are consumed. The one with the
/// sequence `first` has number 0.
fn send_from(first: u64, publisher: &mut PersistentPublisher, count: u64, is_read: bool) {
    let until = publisher.next() + count;
    wait_for("consumed messages", || {
        publisher.poll(|_| {});
        while publisher.next() < until {
            let mut body = [7; 64];
            body[..8].copy_from_slice(&(publisher.next() - first).to_le_bytes());
            if publisher.try_send(&body).is_err() {
                return None;
            }
        }
        let done = if is_read { publisher.consumed() } else { publisher.stable() };
        (done == until).then_some(())
    });
}

/// The same from the stream's beginning.
fn send(publisher: &mut PersistentPublisher, count: u64, is_read: bool) {
    send_from(0, publisher, count, is_read);
}

#[test]
fn messages_of_a_publisher_that_starts_again_are_counted_anew() {
    let stage = Stage::new();
    let _stores = stores(&stage, &["a"]);
    let sub = stage.start("perf sub -p r --stores a -t trades -a -1 --json");
    sub.until_err("subscriber registered with its stores");
    let context = Context::builder().set("shm.directory", stage.path("domain").display());
    let context = context.unwrap().build().unwrap();
    for count in [300, 200, 100] {
        let topic = context.topic("trades").persistent(6).stores(["a"]);
        let mut publisher = topic.receiver_paced(1_000).publisher().unwrap();
        wait_for("the registration", || {
            publisher.poll(|_| {});
            publisher.is_registered().then_some(())
        });
        send_from(publisher.next(), &mut publisher, count, true);
    }
    sub.signal("INT");
    let text = sub.finish().good();
    let line: Value = serde_json::from_str(&text).expect("a line of JSON");
    let counts = ["first_number", "received", "lost", "reported_lost", "duplicated", "unchecked"];
    let counts = counts.map(|it| line[it].clone());
    assert_eq!(counts, [0, 600, 0, 0, 0, 0].map(Value::from), "{line}");
    let runs = line["streams"].as_array().expect("a result for each run");
    let received: Vec<_> = runs.iter().map(|run| run["received"].clone()).collect();
    assert_eq!(received, [300, 200, 100].map(Value::from), "{line}");
}

#[test]
fn a_killed_subscriber_goes_on_where_it_had_come_to() {
    let stage = Stage::new();
    let _stores = stores(&stage, &["a"]);
    let sub = "perf sub -p r --stores a -E -t trades -a -1";
    let first = stage.start(sub);
    first.until_err("subscriber registered with its stores");
    let context = Context::builder().set("shm.directory", stage.path("domain").display());
    let context = context.unwrap().build().unwrap();
    let topic = context.topic("trades").persistent(6).stores(["a"]);
    let mut publisher = topic.receiver_paced(1_000).publisher().unwrap();
    // The stream is new to the topic, so it begins with its first message.
    send(&mut publisher, 300, false);
    until_consumed(&stage, &mut publisher);
    first.signal("KILL");
    drop(first);
    send(&mut publisher, 200, false);
    assert_eq!((publisher.consumed(), publisher.in_flight()), (300, 200), "it is waited for");
    let second = stage.start(&format!("{sub} --json"));
    second.until_err("trades: subscriber goes on at message 300");
    send(&mut publisher, 100, true);
    drop(publisher);
    let text = second.finish().good();
    let line: Value = serde_json::from_str(&text).expect("a line of JSON");
    let counts = ["first_number", "received", "lost", "reported_lost", "duplicated", "unchecked"];
    assert_eq!(
        counts.map(|it| line[it].clone()),
        [300, 300, 0, 0, 0, 0].map(Value::from),
        "{line}"
    );
    assert!(line["recovered"].as_u64().is_some_and(|it| (200..=300).contains(&it)), "{line}");
}

#[test]
fn a_killed_subscriber_that_does_not_block_holds_no_publisher_back() {
    let stage = Stage::new();
    let _stores = stores(&stage, &["a"]);
    let sub = stage.start("perf sub -p r --non-blocking --stores a -E -t trades -a -1");
    sub.until_err("subscriber registered with its stores");
    let context = Context::builder().set("shm.directory", stage.path("domain").display());
    let context = context.unwrap().build().unwrap();
    let topic = context.topic("trades").persistent(6).stores(["a"]);
    let mut publisher = topic.receiver_paced(50).publisher().unwrap();
    send(&mut publisher, 300, false);
    until_consumed(&stage, &mut publisher);
    sub.signal("KILL");
    drop(sub);
    // Four times as many as it may have in flight for a receiver that it waits for.
    send(&mut publisher, 200, true);
    assert_eq!(publisher.in_flight(), 0);
    let look: Value = serde_json::from_str(&stage.run("store ls a --json").good()).unwrap();
    let receiver = &look["streams"][0]["receivers"][0];
    assert_eq!((&receiver["position"], &receiver["is_non_blocking"]), (&300.into(), &true.into()));
}

/// Waits until store a knows that subscriber 7 has consumed the first 300 messages.
fn until_consumed(stage: &Stage, publisher: &mut PersistentPublisher) {
    wait_for("the store knows that the subscriber has consumed them", || {
        publisher.poll(|_| {});
        let look: Value = serde_json::from_str(&stage.run("store ls a --json").good()).unwrap();
        let receivers = &look["streams"][0]["receivers"];
        let has_come = receivers[0]["position"] == 300 && receivers[0]["lag"] == 0;
        (receivers[0]["receiver"] == 7 && has_come).then_some(())
    });
}

/// The store gives up what the subscriber has not consumed while that is away.
#[test]
fn a_subscriber_that_has_lost_messages_ends_with_status_3() {
    let stage = Stage::new();
    let store = stage.start("store a --data a.data --keep 8MiB --keep-unconsumed 0");
    store.until_out("store ");
    let sub = "perf sub -p s --stores a -E -t trades -a -1";
    let first = stage.start(sub);
    first.until_err("subscriber registered with its stores");
    let context = Context::builder().set("shm.directory", stage.path("domain").display());
    let context = context.unwrap().build().unwrap();
    let mut publisher = context.topic("trades").persistent(6).stores(["a"]).publisher().unwrap();
    send(&mut publisher, 300, true);
    until_consumed(&stage, &mut publisher);
    first.signal("KILL");
    drop(first);
    let mut is_given_up = false;
    wait_for("messages that are given up", || {
        for _ in 0..100 {
            let mut body = [7; 4_000];
            body[..8].copy_from_slice(&publisher.next().to_le_bytes());
            if publisher.try_send(&body).is_err() {
                break;
            }
        }
        publisher.poll(|event| {
            let SourceEvent::Reclaimed { first, is_forced: true } = event else { return };
            is_given_up |= first > 300;
        });
        is_given_up.then_some(())
    });
    let second = stage.start(&format!("{sub} --json"));
    second.until_err("trades: subscriber goes on at message 300");
    send(&mut publisher, 100, true);
    let missed = publisher.next() - 300;
    drop(publisher);
    let done = second.finish();
    let text = String::from_utf8_lossy(&done.out).into_owned();
    assert_eq!(done.code, Some(3), "{text} {}", done.err);
    let line: Value = serde_json::from_str(&text).expect("a line of JSON");
    let [received, lost] = ["received", "reported_lost"].map(|it| line[it].as_u64().unwrap());
    assert!(lost > 0 && received + lost == missed, "{missed}: {line}");
}

#[test]
fn a_publisher_ends_if_a_subscriber_does_not_read() {
    let stage = Stage::new();
    let _stores = stores(&stage, &["a"]);
    let subscriber = stage.start("perf sub -p s --stores a -E -t slow -a -1");
    subscriber.until_err("subscriber registered with its stores");
    let rest = "-m 64 -r 5000 -w 15,500 --resolution-ms 1 -a -1 --window 64KiB";
    let publisher = stage.start(&format!(
        "perf pub -p s --stores a -t slow -n 1000000 {rest} {PATIENCE} --wait-subscribers 1"
    ));
    subscriber.until_out("BOS");
    subscriber.signal("STOP");
    let done = publisher.finish();
    let error = done.refused(1);
    assert!(error.contains("the transport has no room: a subscriber does not read"), "{error}");
    assert!(error.contains("of 1000000 messages, then: the publisher is closed"), "{error}");
}
