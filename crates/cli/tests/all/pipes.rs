//! `pub` and `sub` as parts of pipelines.

use crate::run::{BINARY, Run, Stage, wait_for};

#[test]
fn ten_thousand_lines_keep_their_order_and_number() {
    let stage = Stage::new();
    let input: String = (0..10_000).map(|number| format!("line {number}\n")).collect();
    let subscriber = stage.start("sub lines --once");
    let mut publisher = stage.start("pub lines --wait-subscribers 1");
    publisher.feed(&input);
    let (published, received) = (publisher.finish(), subscriber.finish());
    assert!(received.good() == input, "what came is not what was sent");
    assert!(received.err.contains("received 10 000 messages"), "{}", received.err);
    published.good();
    assert!(published.err.contains("published 10 000 messages"), "{}", published.err);
}

#[test]
fn any_bytes_pass_as_length_prefixed_frames() {
    let stage = Stage::new();
    let all: Vec<u8> = (0..=255).collect();
    let messages = [&b""[..], b"\n", b"\r\n\n", &[0; 3], &all, &[0xff; 5000]];
    let mut frames = Vec::new();
    for message in messages {
        frames.extend_from_slice(&(message.len() as u32).to_le_bytes());
        frames.extend_from_slice(message);
    }
    let subscriber = stage.start("sub frames --binary --once --quiet");
    let mut publisher = stage.start("pub frames --binary --wait-subscribers 1 --quiet");
    publisher.feed(&frames);
    let published = publisher.finish();
    assert_eq!((published.good().as_str(), published.err.as_str()), ("", ""));
    let received = subscriber.finish();
    assert_eq!((received.code, received.err.as_str()), (Some(0), ""));
    assert_eq!(received.out, frames);
}

#[test]
fn a_message_that_cannot_be_sent_is_named_by_its_number() {
    let stage = Stage::new();
    stage.write("long", format!("a\n{}\n", "x".repeat(20_000)));
    stage.write("cut", [1, 0, 0, 0, b'a', 9, 0, 0, 0, b'b']);
    let long = "x".repeat(20_000);
    for (line, words) in [
        ("pub topic --from-file long", "message 2: it is longer than 8192 bytes"),
        ("pub topic --from-file cut --binary", "message 2: the input ends in it"),
        (&*format!("pub topic a b {long}"), "message 3: the message is longer than 8192 bytes"),
    ] {
        let done = stage.run(&format!("{line} --set shm.window=64KiB"));
        assert!(done.refused(1).contains(words), "{}", done.err);
    }
}

#[test]
fn counts_end_both_sides() {
    let stage = Stage::new();
    stage.write("input", "a\nb\nc\nd\ne\n");
    let (few, more) = (stage.start("sub topic --count 2"), stage.start("sub topic --once"));
    stage.run("pub topic --from-file input --wait-subscribers 2 --count 4").good();
    assert_eq!(few.finish().good(), "a\nb\n");
    assert_eq!(more.finish().good(), "a\nb\nc\nd\n");
}

#[test]
fn a_last_line_needs_no_end_and_an_empty_input_is_none() {
    let stage = Stage::new();
    let subscriber = stage.start("sub topic --once");
    let mut publisher = stage.start("pub topic --wait-subscribers 1");
    publisher.feed("a\n\nb");
    publisher.finish().good();
    assert_eq!(subscriber.finish().good(), "a\n\nb\n");

    let subscriber = stage.start("sub nothing --once");
    stage.run("pub nothing --wait-subscribers 1").good();
    assert_eq!(subscriber.finish().good(), "");
}

#[test]
fn lines_can_begin_with_time_and_topic() {
    let stage = Stage::new();
    let subscriber = stage.start("sub north south --timestamps --topic-names --count 2");
    let north = stage.start("pub north --wait-subscribers 1");
    let south = stage.start("pub south --wait-subscribers 1");
    for (mut publisher, text) in [(north, "cold\n"), (south, "warm\n")] {
        publisher.feed(text);
        publisher.finish().good();
    }
    let text = subscriber.finish().good();
    let mut ends = Vec::new();
    for line in text.lines() {
        let (time, end) = line.split_once(' ').unwrap();
        let seconds: f64 = time.parse().unwrap();
        assert!(seconds > 1.5e9, "{line}");
        ends.push(end);
    }
    ends.sort_unstable();
    assert_eq!(ends, ["north cold", "south warm"]);
}

#[test]
fn a_rate_is_kept() {
    let stage = Stage::new();
    stage.write("input", "x\n".repeat(101));
    let start = std::time::Instant::now();
    stage.run("pub topic --from-file input --rate 500").good();
    assert!(start.elapsed().as_millis() >= 190, "101 messages in {:?}", start.elapsed());
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let stage = Stage::new();
    stage.write("input", "some line or other\n".repeat(100_000));
    let mut pipeline = stage.command("bash");
    let script = "set -o pipefail; \"$0\" sub topic --quiet | head -n 1";
    pipeline.args(["-c", script, BINARY]);
    let pipeline = Run::start(pipeline);
    stage.run("pub topic --from-file input --wait-subscribers 1").good();
    let done = pipeline.finish();
    assert_eq!((done.good().as_str(), done.err.as_str()), ("some line or other\n", ""));
}

#[test]
fn a_reader_that_went_away_is_no_error_for_any_command() {
    let stage = Stage::new();
    for line in [
        "ls",
        "ls --json",
        "ls -1",
        "ls --watch 10ms",
        "stat --watch 10ms --json",
        "clean",
        "clean --json",
        "stat",
        "stat --json",
        "config",
        "config --list",
        "completions bash",
        "perf jitter -j 1000",
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = stage.lanecast(line);
        command.stdout(writer);
        let output = command.output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), err.as_ref()), (Some(0), ""), "{line}");
    }
}

#[test]
fn a_reader_that_goes_away_ends_commands_that_have_nothing_to_print() {
    let stage = Stage::new();
    let recorder = stage.start("record topic --to recording --count 1");
    stage.run("pub topic --wait-subscribers 1 x").good();
    recorder.finish().good();
    for line in [
        "sub topic",
        "sub topic --filter /a=1",
        "sub topic --failover",
        "ls --watch 1000s",
        "journal dump --follow recording",
        "group join lunch --listen",
    ] {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let mut command = stage.lanecast(line);
        command.stdout(writer).stdin(std::process::Stdio::piped());
        let mut child = command.stderr(std::process::Stdio::null()).spawn().unwrap();
        drop(command);
        // Those that print something at once are past it.
        if !line.starts_with("sub") {
            let mut first = [0];
            std::io::Read::read_exact(&mut reader, &mut first).unwrap();
        }
        drop(reader);
        let status = wait_for(line, || child.try_wait().unwrap());
        assert_eq!(status.code(), Some(0), "{line}");
    }
}

#[test]
fn an_unwritable_standard_output_is_named() {
    let stage = Stage::new();
    for line in ["config", "completions bash", "filter test /a=1 input", "perf jitter -j 1000"] {
        stage.write("input", "{\"a\":1}\n");
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut command = stage.lanecast(line);
        let output = command.stdout(full).output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(err.contains("cannot write to standard output: No space left"), "{line}: {err}");
    }
}

#[test]
fn a_directory_is_no_file_of_messages() {
    let stage = Stage::new();
    let done = stage.run("pub topic --from-file .");
    assert!(done.refused(1).contains("cannot read .: it is a directory"), "{}", done.err);
}

#[test]
fn an_unwritable_standard_error_changes_no_exit_status() {
    let stage = Stage::new();
    // The first line says that there is no subscriber, the second how much was published, the last
    // names the error.
    for (line, code) in
        [("perf pub -n 10 -w 0 -l 0 --resolution-ms 0", 0), ("pub topic", 0), ("sub", 2)]
    {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut command = stage.lanecast(line);
        command.stderr(full);
        assert_eq!(command.output().unwrap().status.code(), Some(code), "{line}");
    }
}

#[test]
fn messages_that_were_not_received_set_the_exit_status() {
    let run = std::process::id() as u16;
    let group = format!("239.195.{}.{}:14390", run >> 8, run & 0xff);
    let network = format!(
        "--transports tcp --set net.resolver_group={group} --set net.liveness=6s \
         --set net.recovery=1s"
    );
    for way in ["", network.as_str()] {
        let stage = Stage::new();
        let subscriber = stage.start(&format!("sub topic --once {way}"));
        let mut publisher = stage.start(&format!("pub topic --wait-subscribers 1 {way}"));
        publisher.feed("a\n");
        subscriber.until_out("a");
        publisher.signal("KILL");
        let done = subscriber.finish();
        assert_eq!((done.code, done.out.as_slice()), (Some(3), &b"a\n"[..]), "{way}: {}", done.err);
        publisher.finish();

        let subscriber = stage.start(&format!("sub topic {way}"));
        let mut publisher = stage.start(&format!("pub topic --wait-subscribers 1 {way}"));
        publisher.feed("a\n");
        subscriber.until_out("a");
        subscriber.signal("KILL");
        subscriber.finish();
        publisher.feed("b\n");
        let done = publisher.finish();
        assert_eq!(done.code, Some(3), "{way}: {}", done.err);
        assert!(done.err.contains("not all was read by "), "{way}: {}", done.err);
    }
}

/// A publisher that serves no filters: the subscriber evaluates; the options are those of a
/// server's topics.
#[test]
fn a_filter_works_without_a_server() {
    let stage = Stage::new();
    let count = "sub orders --once -f /qty>=5 --format table --columns qty,symbol";
    let table = stage.start(count);
    let raw = stage.start("sub orders --filter /symbol='IBM' --count 2 --json");
    let mut publisher = stage.start("pub orders --wait-subscribers 2");
    publisher.feed("{\"symbol\":\"IBM\",\"qty\":5}\n{\"symbol\":\"MSFT\",\"qty\":7}\nnonsense\n");
    publisher.feed("{\"symbol\":\"IBM\",\"qty\":1}\n");
    publisher.finish().good();
    let objects = raw.finish().good();
    let second = objects.lines().nth(1).expect("two messages");
    let expected = r#""number":3,"message":{"symbol":"IBM","qty":1}}"#;
    assert!(second.starts_with(r#"{"command":"p","topic":"orders","source":"#), "{objects}");
    assert!(second.ends_with(expected), "{objects}");
    let done = table.finish();
    assert_eq!(done.good(), "/qty  /symbol\n   5  IBM\n   7  MSFT\n");
    assert!(done.err.contains("1 message could not be read as json"), "{}", done.err);
    assert!(done.err.contains("received 2 messages"), "{}", done.err);
    let bad = stage.run("sub orders -f /a=");
    assert!(bad.refused(2).contains("bad filter"), "{}", bad.err);
}

/// One topic has a publisher that serves filters, and the other one that does not.
#[test]
fn a_publisher_evaluates_the_filters_of_its_subscribers() {
    let stage = Stage::new();
    let filtered = stage.start("sub orders quotes -f /qty>=5 --once");
    let everything = stage.start("sub orders --once");
    let mut orders = stage.start("pub orders --filterable --wait-subscribers 2");
    let mut quotes = stage.start("pub quotes --wait-subscribers 1");
    filtered.until_err("filtered orders from");
    filtered.until_err("filtered quotes from");
    quotes.feed("{\"qty\":4}\n{\"qty\":9}\n");
    filtered.until_out("{\"qty\":9}");
    orders.feed("{\"qty\":1}\n{\"qty\":5}\nnonsense\n{\"qty\":6}\n");
    let published = orders.finish();
    published.good();
    let told = "1 message could not be read as json: subscribers with a filter did not get them";
    assert!(published.err.contains(told), "{}", published.err);
    assert!(published.err.contains("published 4 messages"), "{}", published.err);
    assert!(published.err.contains("2 subscribers"), "{}", published.err);
    let all = "{\"qty\":1}\n{\"qty\":5}\nnonsense\n{\"qty\":6}\n";
    assert_eq!(everything.finish().good(), all);
    quotes.finish().good();
    let received = filtered.finish();
    assert_eq!(received.good(), "{\"qty\":9}\n{\"qty\":5}\n{\"qty\":6}\n");
    assert!(!received.err.contains("could not be read"), "{}", received.err);
    let misfit = stage.run("pub orders x --filterable --server");
    assert!(misfit.refused(2).contains("--filterable is of the transports"), "{}", misfit.err);
}

/// A publisher with as many filters as it takes refuses the next one, and its subscriber says so.
#[test]
fn a_refused_filter_is_told_and_is_in_the_status() {
    let stage = Stage::new();
    let mut publisher = stage.start("pub orders --filterable --set filter.filters_max=1");
    let first = stage.start("sub orders -f /qty>=5");
    first.until_err("filtered orders from");
    let second = stage.start("sub orders -f /qty>=6 --once");
    second.until_err("refused the filter: there are 1 filters already, which is the most");
    publisher.end_input();
    assert!(publisher.finish().good().is_empty());
    assert_eq!(second.finish().code, Some(3));
    first.signal("INT");
    first.finish().good();
}

#[test]
fn messages_of_the_command_line_are_published_with_their_separators() {
    let stage = Stage::new();
    let subscriber = stage.start("sub orders --once --type fix -f /55='IBM'");
    stage.run("pub orders --type fix --wait-subscribers 1 35=D|55=IBM| 35=D|55=MSFT|").good();
    assert_eq!(subscriber.finish().good(), "35=D|55=IBM|\n");
}

/// Topics with a star are patterns, unless names are asked for.
#[test]
fn a_pattern_brings_the_topics_that_match() {
    let stage = Stage::new();
    let all = stage.start("sub prices.* --topic-names --count 2 --quiet");
    let exact = stage.start("sub prices.* --exact --topic-names --count 1 --quiet");
    let mut publishers = ["prices.eu", "prices.us", "prices.*", "orders.eu"]
        .map(|topic| (topic, stage.start(&format!("pub {topic}"))));
    let topics = |pattern: &str| stage.run(&format!("ls -1 {pattern}")).good();
    wait_for("four publishers", || (topics("").lines().count() == 4).then_some(()));
    assert_eq!(topics("prices.e*"), "prices.eu\n");
    assert_eq!(topics("*.eu"), "orders.eu\nprices.eu\n");
    assert_eq!(topics("prices.** --topic us"), "prices.us\n");
    wait_for("subscribers", || {
        let sessions = stage.run("ls --json --interval 1ms prices.*").good();
        let sessions: Vec<serde_json::Value> = serde_json::from_str(&sessions).unwrap();
        let there = sessions.iter().map(|it| it["subscribers"].as_array().unwrap().len());
        (there.sum::<usize>() == 4).then_some(())
    });
    publishers[2].1.feed("star\n");
    assert_eq!(exact.finish().good(), "prices.* star\n");
    publishers[0].1.feed("1.25\n");
    let both = all.finish().good();
    let mut lines: Vec<&str> = both.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["prices.* star", "prices.eu 1.25"]);
    stage.refuses(2, "sub", &[("_group.a prices.*", "--exact")]);
}

#[test]
fn messages_have_their_numbers_and_their_publisher_and_subscribers_are_told_of() {
    let stage = Stage::new();
    stage.write("lines", "{\"id\":1}\n{\"id\":2}\n");
    let subscriber = stage.start("sub orders --json --count 5");
    let rest = "--from-file lines --wait-subscribers 1";
    stage.run(&format!("pub orders {rest}")).good();
    let mut publisher = stage.start("pub orders");
    publisher.until_err(" joined\n");
    publisher.feed("{\"id\":3}\n{\"id\":4}\n");
    subscriber.until_out("{\"id\":4}");
    let killed = stage.start("sub orders");
    killed.until_err("joined orders from ");
    wait_for("the second one", || {
        (publisher.err().matches(" joined\n").count() == 2).then_some(())
    });
    killed.signal("KILL");
    drop(killed);
    publisher.until_err(" is gone: died\n");
    publisher.feed("{\"id\":5}\n");
    let received = subscriber.finish();
    publisher.until_err(" is gone: left\n");
    // One of them died.
    publisher.finish().refused(3);

    let text = received.good();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    let numbers: Vec<_> = lines.iter().map(|line| line["number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [0, 1, 0, 1, 2]);
    let source = |line: &serde_json::Value| line["source"].as_str().unwrap().to_owned();
    let sources: Vec<_> = lines.iter().map(source).collect();
    assert_eq!([&sources[1], &sources[3], &sources[4]], [&sources[0], &sources[2], &sources[2]]);
    assert_ne!(sources[0], sources[2]);
    for source in sources {
        assert!(received.err.contains(&format!("joined orders from {source} ")), "{received:?}");
    }
    assert!(lines.iter().all(|line| line.get("recovered").is_none()), "{text}");
}
