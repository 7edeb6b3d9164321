//! `lanecast pub --persistent` and `lanecast sub --durable`: messages that stores keep, in a shell.

use crate::run::{Run, Stage, wait_for};
use serde_json::Value;

const STORES: &str = "--stores a,b,c";

fn stores(stage: &Stage, names: &[&str]) -> Vec<Run> {
    let start = |name: &&str| stage.start(&format!("store {name} --data {name}.data"));
    let stores: Vec<Run> = names.iter().map(start).collect();
    stores.iter().for_each(|store| store.until_out("store "));
    stores
}

fn orders(numbers: std::ops::Range<u64>) -> String {
    numbers.map(|number| format!("{{\"id\":{number}}}\n")).collect()
}

/// The whole lines of JSON so far: the last one may be on its way, or cut off.
fn lines(text: &str) -> Vec<Value> {
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

/// Numbers and contents of messages of the publisher 7, which are the same.
fn numbers(lines: &[Value]) -> Vec<u64> {
    let number = |line: &Value| {
        assert_eq!(line["source"], "persistent:7", "{line}");
        assert_eq!(line["message"]["id"], line["number"], "{line}");
        line["number"].as_u64().unwrap()
    };
    lines.iter().map(number).collect()
}

fn all_recovered(lines: &[Value]) -> bool {
    lines.iter().all(|line| line["recovered"] == true)
}

/// Waits until the stores know that the subscriber has printed everything before `position`.
fn until_acknowledged(stage: &Stage, position: u64) {
    wait_for("the acknowledgement", || {
        let look: Value = serde_json::from_str(&stage.run("store ls --json").good()).unwrap();
        let receiver = &look["streams"][0]["receivers"][0];
        let has_come = receiver["position"] == position && receiver["lag"] == 0;
        (receiver["receiver"] == 99 && has_come).then_some(())
    });
}

#[test]
fn a_killed_subscriber_gets_what_it_missed_and_nothing_twice() {
    let stage = Stage::new();
    let _stores = stores(&stage, &["a", "b", "c"]);
    let sub = format!("sub orders --durable 99 {STORES} --json");
    let first = stage.start(&sub);
    first.until_err("stores have accepted the subscriber");
    let publisher = format!("pub orders --persistent 7 {STORES} --wait-subscribers 1");
    let mut publisher = stage.start(&publisher);
    publisher.until_err("stores have accepted the publisher, at message 0");
    publisher.feed(orders(0..300));
    let printed = wait_for("the messages", || {
        let lines = lines(&first.out());
        (lines.len() >= 300).then_some(lines)
    });
    assert_eq!(numbers(&printed), (0..300).collect::<Vec<_>>());
    until_acknowledged(&stage, 300);
    first.signal("KILL");
    drop(first);
    publisher.feed(orders(300..500));
    let published = publisher.finish();
    published.good();
    assert!(published.err.contains("published 500 messages"), "{}", published.err);

    // No publisher is there any more.
    let second = stage.run(&format!("{sub} --count 120"));
    let recovered = lines(&second.good());
    assert_eq!(numbers(&recovered), (300..420).collect::<Vec<_>>());
    assert!(all_recovered(&recovered), "{recovered:?}");
    let text = "orders from persistent:7 goes on at message 300";
    assert!(second.err.contains(text), "{}", second.err);
    let third = stage.run(&format!("{sub} --until now"));
    assert_eq!(numbers(&lines(&third.good())), (420..500).collect::<Vec<_>>());
    assert_eq!(stage.run(&format!("{sub} --until now")).good(), "");

    // The next run goes on with the numbers.
    let fourth = stage.start(&format!("{sub} --count 10"));
    fourth.until_err("goes on at message 500");
    let again = "pub orders --persistent 7 --stores a,b,c";
    let mut publisher = stage.start(again);
    publisher.until_err("stores have accepted the publisher, at message 500");
    publisher.feed(orders(500..510));
    publisher.finish().good();
    assert_eq!(numbers(&lines(&fourth.finish().good())), (500..510).collect::<Vec<_>>());
}

#[test]
fn a_subscriber_that_is_killed_in_the_middle_repeats_no_more_than_it_had_not_acknowledged() {
    const COUNT: u64 = 6_000;
    let stage = Stage::new();
    let _stores = stores(&stage, &["a"]);
    let sub = "sub orders --durable 99 --stores a --json";
    stage.write("orders", orders(0..COUNT));
    let mut life = stage.start(sub);
    life.until_err("stores have accepted the subscriber");
    let publisher = stage.start(
        "pub orders --persistent 7 --stores a --from-file orders --rate 8000 --wait-subscribers 1",
    );
    let mut next = 0;
    for kill in 1..=3 {
        // At any moment: between the print of a message and the answer of the store, too.
        let until = COUNT * kill / 5;
        wait_for("messages", || {
            let last = lines(&life.out()).last().map_or(0, |it| it["number"].as_u64().unwrap());
            (last >= until).then_some(())
        });
        life.signal("KILL");
        let done = life.finish();
        next = check_life(&String::from_utf8_lossy(&done.out), next);
        life = stage.start(sub);
    }
    publisher.finish().good();
    // The last kill may have come when all was printed, and not acknowledged.
    until_acknowledged(&stage, COUNT);
    life.until_err("stores have accepted the subscriber");
    life.signal("INT");
    assert_eq!(check_life(&life.finish().good(), next), COUNT);
}

/// Looks whether a life of a subscriber went on at `next`, or before it with messages from a store;
/// returns the number after its last one.
fn check_life(text: &str, next: u64) -> u64 {
    let lines = lines(text);
    let numbers = numbers(&lines);
    let Some(first) = numbers.first() else { return next };
    assert!(*first <= next, "{next} to {first} are missing");
    let repeated = usize::try_from(next - first).unwrap().min(lines.len());
    assert!(all_recovered(&lines[..repeated]), "{:?}", &lines[..repeated]);
    let end = first + numbers.len() as u64;
    assert_eq!(numbers, (*first..end).collect::<Vec<_>>());
    end.max(next)
}

#[test]
fn ranges_of_a_stream_are_replayed() {
    let stage = Stage::new();
    let _stores = stores(&stage, &["store"]);
    stage.write("orders", orders(0..100));
    stage.run("pub orders --persistent 0x7 --from-file orders").good();
    let range = |line: &str| {
        let text = stage.run(&format!("sub orders --durable 99 --json {line}")).good();
        numbers(&lines(&text))
    };
    assert_eq!(range("--from 90 --until now"), (90..100).collect::<Vec<_>>());
    assert!(range("--from oldest --until now").is_empty(), "it goes on where it had come to");
    assert_eq!(range("--replay --until 5"), (0..5).collect::<Vec<_>>());
    assert_eq!(range("--replay --from 10 --until 20"), (10..20).collect::<Vec<_>>());
    assert_eq!(range("--replay --from 10 --count 2"), [10, 11]);
    assert_eq!(range("--replay --from 1970-01-01 --until now").len(), 100);
    assert!(range("--replay --from end --until now").is_empty());
    // What a replay has printed is acknowledged, and never less than before.
    let other = |line: &str| {
        let text = stage.run(&format!("sub orders --durable 97 --json {line}")).good();
        numbers(&lines(&text))
    };
    assert_eq!(other("--replay --until 20"), (0..20).collect::<Vec<_>>());
    assert_eq!(other("--until 30"), (20..30).collect::<Vec<_>>());
    assert_eq!(other("--replay --from 5 --count 3"), [5, 6, 7]);
    assert_eq!(other("--until now"), (30..100).collect::<Vec<_>>());
    let raw = stage.run("sub orders --durable 98 --until 2 --quiet");
    assert_eq!((raw.good().as_str(), raw.err.as_str()), ("{\"id\":0}\n{\"id\":1}\n", ""));
}

#[test]
fn messages_that_are_not_stable_and_stores_that_are_missing_are_told() {
    let stage = Stage::new();
    let waiting = stage.start("pub orders --persistent 7 --stores a");
    waiting.until_err("waiting for stores, no answer from a: start them by lanecast store NAME");
    let subscriber = stage.start("sub orders --durable 99 --stores a");
    subscriber.until_err("waiting for stores, no answer from a: start them by lanecast store");
    let stopped = stage.start("pub orders --persistent 8 --stores z");
    stopped.until_err("no answer from z");
    stopped.signal("INT");
    assert!(stopped.finish().refused(1).contains("stopped before enough stores"), "words");

    let mut stores = stores(&stage, &["a"]);
    waiting.until_err("stores have accepted the publisher");
    waiting.finish().good();
    let mut publisher = stage.start("pub orders --persistent 7 --stores a --linger 200ms");
    publisher.until_err("stores have accepted the publisher");
    publisher.feed("one\n");
    subscriber.until_out("one\n");
    until_acknowledged(&stage, 1);
    stores.remove(0).signal("KILL");
    publisher.until_err("store a does not answer");
    publisher.feed("two\n");
    let done = publisher.finish();
    let text = "1 message from 1 on may be kept or not: no answer from a";
    assert!(done.refused(3).contains(text), "{}", done.err);
    subscriber.until_out("one\ntwo\n");
}

#[test]
fn a_loss_is_told_once() {
    let stage = Stage::new();
    let store = "store a --data a.data --keep-topic orders=1ms --keep-unconsumed 0";
    let store = stage.start(store);
    store.until_out("store a");
    let sub = "sub orders --durable 99 --stores a";
    let first = stage.start(&format!("{sub} --count 1"));
    first.until_err("stores have accepted the subscriber");
    let publisher = "pub orders --persistent 7 --stores a";
    stage.run(&format!("{publisher} one --wait-subscribers 1")).good();
    assert_eq!(first.finish().good(), "one\n");
    // So long that the store looks at the age of each.
    let line = "x".repeat(70_000);
    stage.write("orders", format!("{line}\n{line}\n{line}\n"));
    stage.run(&format!("{publisher} --from-file orders")).good();
    wait_for("the store to give up messages", || {
        let look: Value = serde_json::from_str(&stage.run("store ls --json").good()).unwrap();
        (look["streams"][0]["reports"][0]["first"] == 3).then_some(())
    });
    let second = stage.run(&format!("{sub} --until 3"));
    let text = "lost 2 messages of orders from persistent:7, 1 to 2: no store keeps them any more";
    assert!(second.refused(3).contains(text), "{}", second.err);
    let third = stage.run(&format!("{sub} --until 3"));
    assert_eq!(third.good(), "");
    assert!(!third.err.contains("lost"), "{}", third.err);
}

#[test]
fn a_store_that_ends_before_it_knows_what_was_printed_is_told() {
    let stage = Stage::new();
    let stores = stores(&stage, &["a"]);
    let mut sub = stage.lanecast("sub orders --durable 99 --stores a --count 2");
    sub.env("LANECAST_PERSISTENCE__RETRY", "20ms");
    let sub = Run::start(sub);
    sub.until_err("stores have accepted the subscriber");
    let pub_line = "pub orders --persistent 7 --stores a --wait-subscribers 1";
    let mut publisher = stage.start(pub_line);
    publisher.feed("one\n");
    until_acknowledged(&stage, 1);
    stores[0].signal("STOP");
    publisher.feed("two\n");
    sub.until_out("one\ntwo\n");
    sub.until_err("store a does not answer");
    stores[0].signal("CONT");
    sub.finish().good();
    publisher.finish().good();
}

#[test]
fn a_later_publisher_ends_the_one_with_its_id() {
    let stage = Stage::new();
    let _stores = stores(&stage, &["a"]);
    let first = stage.start("pub orders --persistent 7 --stores a");
    first.until_err("stores have accepted the publisher");
    stage.run("pub orders hello --persistent 7 --stores a").good();
    // Although it has nothing to send.
    first.until_err("another publisher has registered under the same id");
    first.finish().refused(1);
    // Although it waits for subscribers.
    let first = stage.start("pub orders --persistent 7 --stores a --wait-subscribers 1");
    first.until_err("stores have accepted the publisher");
    stage.run("pub orders hello --persistent 7 --stores a").good();
    first.until_err("another publisher has registered under the same id");
    first.finish().refused(1);
}

#[test]
fn options_that_do_not_fit_are_refused_in_words() {
    let stage = Stage::new();
    stage.refuses(
        2,
        "sub orders",
        &[
            ("--durable 9 --once", "end with --until now"),
            ("more --durable 9", "--durable is for one topic"),
            ("--durable 9 -f /id=1", "--durable does not fit --filter"),
            ("--durable 9 --failover", "--durable does not fit --failover"),
            ("--durable 9 --order arrival", "--order does not fit --durable"),
            ("--durable 9 --server", "--durable is of the transports"),
            ("--stores a", "--durable <ID>"),
            ("--from end", "--durable <ID>"),
            ("--durable 9 --from newest", "write oldest, end, a sequence such as 1000"),
        ],
    );
    stage.refuses(
        2,
        "pub orders",
        &[
            ("--persistent 7 --filterable", "--persistent does not fit --filterable"),
            ("--persistent 7 --server", "--persistent is of the transports"),
            ("--stores a", "--persistent <ID>"),
            ("--persistent seven", "seven"),
        ],
    );
}

#[test]
fn a_subscriber_says_that_it_does_not_hold_publishers_back() {
    let stage = Stage::new();
    let _stores = stores(&stage, &["a"]);
    let sub = stage.start("sub orders --durable 99 --non-blocking --stores a --json");
    sub.until_err("stores have accepted the subscriber");
    let publisher = "pub orders --persistent 7 --stores a --wait-subscribers 1";
    let mut publisher = stage.start(publisher);
    publisher.until_err("stores have accepted the publisher, at message 0");
    publisher.feed(orders(0..3));
    until_acknowledged(&stage, 3);
    let look: Value = serde_json::from_str(&stage.run("store ls --json").good()).unwrap();
    assert_eq!(look["streams"][0]["receivers"][0]["is_non_blocking"], true, "{look}");
    let refused = stage.run("sub orders --non-blocking");
    assert!(refused.refused(2).contains("--durable"), "{refused:?}");
}
