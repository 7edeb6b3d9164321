//! `lanecast record` and `lanecast replay`: what is published again is what was recorded.

use crate::run::{BINARY, Done, Run, Stage, wait_for};
use lanecast::prelude::*;
use lanecast_journal::{Directory, Entry, Journal, JournalConfig};
use std::time::{Duration, Instant};

const WAIT: Duration = Duration::from_secs(60);

fn context(stage: &Stage) -> Context {
    let builder = Context::builder().set("shm.directory", stage.path("domain").display());
    builder.unwrap().build().unwrap()
}

/// A recorder of topic `t` that hears `count` messages; and the publisher, which still knows how
/// many of them were read.
fn record_some(stage: &Stage, count: usize) -> (Run, Publisher) {
    let recorder = stage.start("record t --to r");
    recorder.until_err("recording into");
    let mut publisher = context(stage).publisher("t").unwrap();
    assert!(publisher.wait_for_subscribers(1, WAIT));
    (0..count).for_each(|_| publisher.send(b"body").unwrap());
    (recorder, publisher)
}

/// Bodies of all kinds: empty, binary, of several lengths.
fn bodies() -> Vec<Vec<u8>> {
    (0..500_usize).map(|number| vec![number as u8; number * 7 % 900]).collect()
}

/// Records what `publish` sends on `topics`, to its end.
fn record(stage: &Stage, line: &str, publish: impl FnOnce(&Context)) -> Done {
    let recorder = stage.start(&format!("record {line}"));
    recorder.until_err("recording into");
    publish(&context(stage));
    recorder.finish()
}

fn publish(context: &Context, topics: [&str; 2], bodies: &[Vec<u8>]) {
    let mut publisher = context.publisher(topics[0]).unwrap();
    let second = publisher.add_topic(topics[1]).unwrap();
    assert!(publisher.wait_for_subscribers(1, WAIT));
    for (number, body) in bodies.iter().enumerate() {
        let topic = if number.is_multiple_of(3) { second } else { TopicId::FIRST };
        publisher.send_on(topic, body).unwrap();
    }
    assert!(publisher.close(WAIT).is_complete());
}

/// Receives from a replay with the arguments `line` until its publisher leaves.
fn replayed(stage: &Stage, line: &str, topics: &[&str]) -> (Vec<(String, Vec<u8>)>, Done) {
    let context = context(stage);
    let mut feed = context.subscriber_to(topics).unwrap();
    let replay = stage.start(&format!("replay {line} --wait-subscribers 1"));
    let (mut received, mut left) = (Vec::new(), 0);
    wait_for("the end of the replay", || {
        let work = feed.poll(256, |event| match event {
            Event::Message(message) => {
                received.push((message.stream().topic.clone(), message.bytes().to_vec()));
            }
            Event::Left(..) => left += 1,
            Event::Lost(gap) => panic!("{gap:?}"),
            _ => {}
        });
        (left == topics.len() && work == 0).then_some(())
    });
    (received, replay.finish())
}

#[test]
fn a_replay_is_byte_for_byte_what_was_recorded() {
    let stage = Stage::new();
    let bodies = bodies();
    let done = record(&stage, "prices orders --once --to r", |context| {
        publish(context, ["prices", "orders"], &bodies);
    });
    done.good();
    assert!(done.err.contains("recorded 500 messages") && done.err.contains("0 lost"), "{done:?}");
    let topic = |number: usize| if number.is_multiple_of(3) { "orders" } else { "prices" };
    let expected = bodies.iter().enumerate();
    let expected: Vec<_> =
        expected.map(|(number, body)| (topic(number).to_owned(), body.clone())).collect();

    let (received, done) = replayed(&stage, "r --full", &["prices", "orders"]);
    assert!(received == expected, "order, topics and bytes");
    done.good();
    assert!(done.err.contains("replayed 500 messages"), "{done:?}");
    assert!(done.err.contains(" s, 1 subscriber\n"), "{done:?}");
    // One topic, onto another name.
    let (received, _) = replayed(&stage, "r --full --topic prices --onto again", &["again"]);
    let prices = expected.iter().filter(|(topic, _)| topic == "prices");
    let prices: Vec<_> = prices.map(|(_, body)| ("again".to_owned(), body.clone())).collect();
    assert!(received == prices, "{} of {}", received.len(), prices.len());
    // The directory is a journal.
    assert!(stage.run("journal verify r").good().contains("500 records"));

    // A later recording goes on.
    record(&stage, "prices trades --count 4 --to r", |context| {
        publish(context, ["prices", "trades"], &bodies[..4]);
    })
    .good();
    let (received, _) = replayed(&stage, "r --rate 100000", &["prices", "orders", "trades"]);
    assert_eq!(received.len(), 504);
    assert_eq!(received[500].0, "trades");
}

/// Publisher, recorder, replay and subscriber are processes that meet on loopback, by another way
/// for the replay than for the recording.
#[test]
fn every_way_is_recorded_from_and_replayed_onto() {
    let ways = ["shm", "ru", "rm", "tcp", "shm+ru"];
    let input: String = (0..900).map(|number| format!("line {number}\n")).collect();
    for (index, way) in ways.into_iter().enumerate() {
        let stage = Stage::new();
        let start = |line: &str, way: &str| {
            let line = format!("{line} --transports {way}");
            crate::hosts::start(&stage, 40 + index as u16, &line)
        };
        let recorder = start("record prices --once --to r", way);
        recorder.until_err("recording into");
        let mut publisher = start("pub prices --wait-subscribers 1", way);
        publisher.feed(&input);
        publisher.finish().good();
        let done = recorder.finish();
        done.good();
        assert!(done.err.contains("recorded 900 messages"), "{way}: {done:?}");
        let onto = ways[(index + 1) % ways.len()];
        let subscriber = start("sub prices --once", onto);
        let replay = start("replay r --full --wait-subscribers 1", onto);
        let (replayed, received) = (replay.finish(), subscriber.finish());
        replayed.good();
        assert!(replayed.err.contains("replayed 900 messages"), "{onto}: {replayed:?}");
        assert!(received.good() == input, "{way} to {onto}: what came is not what was sent");
    }
}

/// A recording of `count` messages, 100 ms from each other, with three that were lost.
fn make(stage: &Stage, count: u64) {
    std::fs::create_dir(stage.path("r")).unwrap();
    stage.write("r/recording", r#"{"version":1,"topics":["t"]}"#);
    let journal = Journal::open(Directory::new(stage.path("r")), JournalConfig::default()).unwrap();
    for number in 0..count {
        let unix_ns = 1_000_000_000_000_000_000 + number * 100_000_000;
        let body = number.to_string();
        let lost = 3_u64.to_le_bytes();
        let message = Entry { unix_ns, body: body.as_bytes(), ..Entry::default() };
        journal.append(&[message]).unwrap();
        if number == 5 {
            journal.append(&[Entry { flags: 1, body: &lost, ..message }]).unwrap();
        }
    }
    journal.close().unwrap();
}

fn numbers(received: &[(String, Vec<u8>)]) -> Vec<u64> {
    let number = |(_, body): &(String, Vec<u8>)| String::from_utf8_lossy(body).parse().unwrap();
    received.iter().map(number).collect()
}

#[test]
fn a_range_is_replayed_at_a_pace_and_losses_are_told() {
    let stage = Stage::new();
    make(&stage, 20);
    let ranges = [
        ("r --full --since +1s", 10..20),
        ("r --full --since +0s --until +250ms", 0..3),
        ("r --full --since 1000000001900000000", 19..20),
        ("r --full --until 2001-09-09T01:46:40.200", 0..2),
        ("r --full --count 2", 0..2),
    ];
    for (line, range) in ranges {
        let (received, done) = replayed(&stage, line, &["t"]);
        assert_eq!(numbers(&received), Vec::from_iter(range), "{line}");
        done.good();
    }
    // 0.5 s of the recording at half the speed: not sooner, however busy the machine is.
    let start = Instant::now();
    let (received, done) = replayed(&stage, "r --speed 0.5 --since +1s --until +1600ms", &["t"]);
    assert_eq!(numbers(&received), Vec::from_iter(10..16));
    assert!(start.elapsed() >= Duration::from_secs(1), "{:?}", start.elapsed());
    done.good();
    let (received, done) = replayed(&stage, "r --speed 100", &["t"]);
    assert_eq!(received.len(), 20);
    assert_eq!(done.code, Some(3), "{done:?}");
    assert!(done.err.contains("lacks 3 messages"), "{done:?}");
}

#[test]
fn a_replay_pauses_and_goes_on_by_a_signal_and_ends_by_another() {
    let stage = Stage::new();
    make(&stage, 4);
    let context = context(&stage);
    let mut feed = context.subscriber("t").unwrap();
    let replay = stage.start("replay r --full --paused --follow --wait-subscribers 1");
    replay.until_err("paused");
    let mut received = 0;
    let mut poll = |wanted: usize| {
        wait_for("messages", || {
            feed.poll(64, |event| received += usize::from(matches!(event, Event::Message(_))));
            (received >= wanted).then_some(received)
        })
    };
    assert_eq!(poll(0), 0);
    replay.signal("USR1");
    assert_eq!(poll(4), 4);
    replay.signal("USR1");
    wait_for("paused again", || (replay.err().matches("paused").count() == 2).then_some(()));
    replay.signal("INT");
    drop(feed);
    let done = replay.finish();
    assert!(done.err.contains("goes on") && done.err.contains("replayed 4 messages"), "{done:?}");
    done.good();
}

#[test]
fn a_recorder_ends_in_order_and_says_how_much_there_is() {
    let stage = Stage::new();
    let (recorder, mut publisher) = record_some(&stage, 100);
    assert!(publisher.drain(WAIT).is_complete());
    recorder.signal("INT");
    let done = recorder.finish();
    done.good();
    assert!(done.err.contains("recorded 100 messages, 400 B"), "{done:?}");
    // Everything is on disk, and nothing is torn.
    assert!(stage.run("journal verify r").good().contains("it is whole"));
}

#[test]
fn a_replay_onto_a_topic_that_is_being_recorded_ends_with_what_was_there_before() {
    let stage = Stage::new();
    let (recorder, publisher) = record_some(&stage, 100);
    assert!(publisher.close(WAIT).is_complete());
    wait_for("the recording", || {
        let done = stage.run("replay r --full --onto elsewhere");
        done.err.contains("replayed 100 messages").then_some(())
    });
    // Slower than the recorder, which records each of them again.
    let done = stage.run("replay r --rate 400 --wait-subscribers 1");
    assert!(done.err.contains("replayed 100 messages"), "{done:?}");
    recorder.signal("INT");
    let done = recorder.finish();
    assert!(done.err.contains("recorded 200 messages"), "{done:?}");
}

#[test]
fn other_directories_and_damage_are_refused_in_words() {
    let stage = Stage::new();
    std::fs::create_dir(stage.path("other")).unwrap();
    stage.write("other/file", "mine");
    stage.write("file", "");
    let cases = [
        ("t --to other", "choose a new or an empty directory"),
        ("t --to file", "cannot record into file: it is not a directory"),
    ];
    stage.refuses(1, "record", &cases);
    let cases =
        [("other", "is no recording"), ("missing", "is no recording"), ("file", "is no recording")];
    stage.refuses(1, "replay", &cases);
    make(&stage, 4);
    stage.refuses(1, "replay", &[("r --topic x", "it has t")]);
    stage.refuses(2, "replay", &[("r --speed 0", "above 0"), ("r --since x", "+10s")]);
    for (text, part) in [
        ("{", "is damaged"),
        ("\u{ff}", "is damaged"),
        (r#"{"version":2,"topics":[]}"#, "version 2"),
        (r#"{"version":1,"topics":[7]}"#, "is damaged"),
        (r#"{"version":1,"topics":[]}"#, "has no messages"),
    ] {
        stage.write("r/recording", text);
        stage.refuses(1, "replay", &[("r --full", part)]);
    }
    // A record of a topic without a name, and one that claims to be a loss and is none.
    stage.write("r/recording", r#"{"version":1,"topics":["t"]}"#);
    let journal = Journal::open(Directory::new(stage.path("r")), JournalConfig::default()).unwrap();
    journal.append(&[Entry { topic: 9, ..Entry::default() }]).unwrap();
    journal.close().unwrap();
    stage.refuses(1, "replay", &[("r --full", "topic number 9")]);
    let path = std::fs::read_dir(stage.path("r")).unwrap().map(|it| it.unwrap().path());
    let segments = path.filter(|it| it.extension().is_some_and(|it| it == "segment"));
    let first = segments.min().unwrap();
    let mut bytes = std::fs::read(&first).unwrap();
    // Behind the headers, one of which may be damaged.
    let records = &mut bytes[8192..];
    let at = records.iter().position(|&byte| byte == b'3').unwrap();
    records[at] ^= 1;
    std::fs::write(&first, bytes).unwrap();
    let done = stage.run("replay r --full");
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.err.contains("corrupt") && done.err.contains("repair"), "{done:?}");
}

/// A disk of 72 MiB: one segment fits, and no more.
#[test]
fn a_full_disk_ends_a_recording_with_an_error_and_keeps_what_is_on_it() {
    let stage = Stage::new();
    std::fs::create_dir(stage.path("disk")).unwrap();
    if !lanecast_system_tests::possible() {
        return;
    }
    let mount = "mount -t tmpfs -o size=72m none disk";
    // Verified in the same mount namespace: the disk is gone with it.
    let script = format!(
        "{mount} && {BINARY} record t --to disk/r; echo ended with $?; {BINARY} journal verify \
         disk/r"
    );
    let mut command = stage.command("unshare");
    command.args(["-m", "sh", "-c", &script]);
    let recorder = Run::start(command);
    recorder.until_err("recording into");
    let context = context(&stage);
    let mut publisher = context.publisher("t").unwrap();
    assert!(publisher.wait_for_subscribers(1, WAIT));
    let body = [7; 60_000];
    wait_for("the end of the recorder", || {
        // No more than its disk holds at once, and never waiting for it.
        let _ = publisher.try_send(&body);
        recorder.out().contains("ended with").then_some(())
    });
    let done = recorder.finish();
    let out = String::from_utf8_lossy(&done.out).into_owned();
    assert!(out.contains("ended with 1") && out.contains("it is whole"), "{out}\n{}", done.err);
    assert!(done.err.contains("disk") && done.err.contains("recorded "), "{}", done.err);
}
