//! The measuring tools, with the letters and lines of the documents they follow.

use crate::run::{Done, Stage};
use std::fs::OpenOptions;
use std::io::pipe;
use std::process::Stdio;

/// The value of `key` in lines of `key=value, `.
fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let pairs = text.lines().flat_map(|line| line.split(", "));
    pairs.filter_map(|pair| pair.split_once('=')).find(|(name, _)| *name == key).map(|(_, v)| v)
}

fn number(text: &str, key: &str) -> f64 {
    let value = value(text, key).unwrap_or_else(|| panic!("no {key} in {text}"));
    value.parse().unwrap_or_else(|_| panic!("{key}={value}"))
}

/// A publisher with `options`, and a subscriber that is interrupted when the stream is over.
fn pair(publisher: &str, subscriber: &str) -> (Done, Done) {
    let stage = Stage::new();
    let subscriber = stage.start(&format!("perf sub {subscriber}"));
    let published = stage.run(&format!("perf pub --wait-subscribers 1 {publisher}"));
    assert_eq!(published.code, Some(0), "{}", published.err);
    subscriber.until_out("rcv event EOS");
    subscriber.signal("INT");
    (published, subscriber.finish())
}

#[test]
fn as_many_as_possible_all_arrive() {
    let (published, received) = pair("-l 2000 -f 0x0 -m 25 -r 999999999 -n 100000 -w 1000", "-s 0");
    let text = published.good();
    let lines: Vec<&str> = text.lines().collect();
    let (cpu, options) = lines[0].split_once(", ").unwrap();
    assert!(cpu.starts_with("o_affinity_cpu="), "{cpu}");
    assert_eq!(
        options,
        "o_config=, o_flags=0x00, o_jitter_loops=0, o_linger_ms=2000, o_msg_len=25, \
         o_num_msgs=100000, o_rate=999999999, o_topic='smx_perf', o_warmup_loops=1000, "
    );
    assert!(lines[1].starts_with("actual_sends=100000, duration_ns="), "{}", lines[1]);
    assert!(lines[1].ends_with(", "), "{}", lines[1]);
    let rate = 1e5 / (number(&text, "duration_ns") / 1e9);
    assert!((number(lines[1], "result_rate") / rate - 1.0).abs() < 0.01, "{}", lines[1]);
    assert_eq!(value(&text, "drained"), Some("true"));

    let text = received.good();
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("o_affinity_cpu="), "{}", lines[0]);
    assert!(
        lines[0].ends_with("o_config=, o_fast=0, o_spin_cnt=0, o_topic='smx_perf', "),
        "{}",
        lines[0]
    );
    let source = lines[1].strip_prefix("rcv event BOS, topic_name='smx_perf', source=").unwrap();
    let end = format!("rcv event EOS, 'smx_perf', {source}num_rcv_msgs=101000, ");
    assert_eq!(lines[2], end, "warm-up counts, and no timestamps, no latencies");
    assert_eq!(text.matches("EOS").count(), 1);
    assert_eq!((value(&text, "lost"), value(&text, "duplicated")), (Some("0"), Some("0")));
}

#[test]
fn topics_have_their_turns_and_are_numbered_each_by_itself() {
    let stage = Stage::new();
    for options in ["-f 1", "-g -H 5,1000"] {
        let subscriber = stage.start("perf sub -t a,b,c -E --json");
        let publisher = format!(
            "perf pub --wait-subscribers 1 -t a,b,c -m 24 -n 3001 -r 0 -w 100,0 -l 9000 {options}"
        );
        let text = stage.run(&publisher).good();
        assert!(text.contains("o_topic='a,b,c', o_warmup_loops=100, "), "{text}");
        assert_eq!(value(&text, "max_flight_size"), Some("unknown"));
        assert_eq!(number(&text, "global_max_tight_sends"), number(&text, "largest_burst"));
        if options.contains("-H") {
            let counts = text.lines().map_while(|line| {
                if line.starts_with("o_affinity_cpu") { Some(0) } else { line.parse().ok() }
            });
            let counts: Vec<u64> = counts.collect();
            assert_eq!(counts.len(), 1 + 5, "{text}");
            let all = counts.iter().sum::<u64>() as f64 + number(&text, "hist_overflows");
            assert_eq!((all, number(&text, "hist_num_samples")), (3001.0, 3001.0));
        }
        let found: serde_json::Value = serde_json::from_str(&subscriber.finish().good()).unwrap();
        assert_eq!((&found["received"], &found["lost"]), (&3101.into(), &0.into()), "{found}");
        let streams = found["streams"].as_array().unwrap().iter();
        let mut of = streams.map(|one| (one["topic"].as_str(), one["received"].as_u64()));
        for expected in [("a", 1034), ("b", 1034), ("c", 1033)] {
            assert!(of.any(|one| one == (Some(expected.0), Some(expected.1))), "{found}");
        }
    }
}

#[test]
fn the_throughput_tools_letters_are_refused_where_they_mean_nothing() {
    let stage = Stage::new();
    for (transport, part) in [
        ("shm", "nothing can be lost in memory"),
        ("thread", "nothing can be lost in memory"),
        ("tcp", "repairs its losses unseen"),
    ] {
        for tool in ["pub", "sub"] {
            let refused = stage.run(&format!("perf {tool} -L 1 --transport {transport}"));
            // A subscriber inside one process is refused before that.
            let part = if (tool, transport) == ("sub", "thread") { "one process" } else { part };
            assert!(refused.refused(2).contains(part), "{}", refused.err);
        }
    }
    let group = "<option name='transport_lbtrm_multicast_address' default-value='x'/>";
    let text = format!("<um><application name='um_perf'>\n{group}</application></um>\n");
    std::fs::write(stage.path("um.xml"), text).unwrap();
    for tool in ["pub", "sub"] {
        let refused = stage.run(&format!("perf {tool} -x um.xml"));
        let words = "um.xml:2: transport_lbtrm_multicast_address: net.group";
        assert!(refused.refused(1).contains(words), "{}", refused.err);
    }
}

#[test]
fn threads_of_one_process_are_measured_by_one_command() {
    let stage = Stage::new();
    let line = "perf pub --transport thread --subscriber-cpus 0,-1 -f 1 -m 32 -r 0 -n 50000 -w 100";
    let text = stage.run(line).good();
    let order = ["actual_sends=50000", "drained=true", "o_fast=0", "rcv event EOS, 'smx_perf', "];
    let places = order.map(|part| text.find(part).unwrap_or_else(|| panic!("{part}: {text}")));
    assert!(places.is_sorted(), "{text}");
    assert_eq!(text.matches("Rcv: num_rcv_msgs=50100, ").count(), 2, "{text}");
    assert_eq!(text.matches("thread:").count(), 3, "one source, of three ends: {text}");

    let lines = stage.run(&format!("{line} --json -o both.jsonl")).good();
    let kinds = lines.lines().map(|line| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(line["transport"], "thread");
        line["kind"].as_str().unwrap().to_owned()
    });
    assert_eq!(kinds.collect::<Vec<_>>(), ["publisher", "subscriber", "subscriber"]);
    assert_eq!(std::fs::read_to_string(stage.path("both.jsonl")).unwrap(), lines);
}

#[test]
fn timestamps_give_latencies() {
    // A window that rides out whatever else the machine does.
    let (published, received) =
        pair("-l 2000 -f 0x3 -m 100 -r 20000 -n 20000 -w 1000 --window 32MiB", "");
    assert_eq!(number(&published.good(), "actual_sends"), 2e4);
    let text = received.good();
    assert_eq!(number(&text, "num_rcv_msgs"), 21e3);
    let [min, mean, max] = ["min_latency", "average latency", "max_latency"].map(|key| {
        let line = text.lines().find(|line| line.starts_with("rcv event EOS")).unwrap();
        number(line, key)
    });
    assert!(0.0 < min && min <= mean && mean <= max, "{min} {mean} {max}");
    let [p50, p99, p99_99] =
        ["p50", "p99", "p99_99"].map(|p| number(&text, &format!("actual_{p}_ns")));
    assert!(min <= p50 && p50 <= p99 && p99 <= p99_99, "{text}");
    assert_eq!(number(&text, "actual_samples"), 2e4, "warm-up has no timestamps");
}

#[test]
fn bursts_are_measured_from_their_time_and_counted_in_buckets() {
    let (published, received) = pair(
        "-l 2000 -f 1 -m 64 -r 20000 -n 5000 -w 100 --burst 20 --raise none --window 32MiB",
        "-H 4,1000",
    );
    let text = published.good();
    assert_eq!((number(&text, "burst"), value(&text, "raise")), (20.0, Some("not-asked")));
    assert!(number(&text, "largest_burst") >= 20.0, "{text}");
    assert_eq!(number(&text, "lateness_samples"), 5e3, "{text}");
    assert!(number(&text, "recording_cost_ns") > 0.0, "{text}");
    assert_eq!(value(&text, "gap_watched"), Some("during"), "{text}");

    let text = received.good();
    let at = text.lines().position(|line| line.starts_with("o_histogram=4,1000, ")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let counted: f64 = lines[at - 4..at].iter().map(|line| line.parse::<f64>().unwrap()).sum();
    let overflows = number(lines[at], "hist_overflows");
    assert_eq!(counted + overflows, 5e3, "{text}");
    assert_eq!(lines[at + 1].split(',').next(), Some("hist_num_samples=5000"));
    assert!(lines[at + 2].starts_with("Percentiles: 90="), "{text}");
    assert_eq!(value(&text, "gap_watched"), Some("around"), "{text}");
}

#[test]
fn a_burst_needs_a_rate() {
    let stage = Stage::new();
    let done = stage.run("perf pub -r 0 --burst 3 -n 10");
    assert!(done.refused(2).contains("--burst 3 needs a rate"));
    assert!(stage.run("perf pub --burst 0 -n 10").refused(2).contains("1 is even spacing"));
}

#[test]
fn real_time_is_used_or_its_refusal_told() {
    let stage = Stage::new();
    let done = stage.run("perf jitter -j 100000 --raise real-time");
    let out = String::from_utf8_lossy(&done.out);
    match value(&out, "raise") {
        Some("real-time") => assert_eq!(done.err, ""),
        Some("not-permitted") => assert!(done.err.contains("ulimit -r"), "{}", done.err),
        other => panic!("raise={other:?}"),
    }
}

#[test]
fn a_process_that_another_one_starts_can_have_its_own_session() {
    let stage = Stage::new();
    let text = stage.run("perf jitter -j 1000 --own-session").good();
    let raise = value(&text, "raise").unwrap();
    assert_ne!(raise, "shared-session", "{text}");
}

#[test]
fn fast_and_generic_count_the_same() {
    let (published, received) = pair("-f 5 -m 64 -r 0 -n 5000 -w 0", "-f");
    assert_eq!(value(&published.good(), "o_flags"), Some("0x05"));
    let text = received.good();
    assert_eq!((value(&text, "o_fast"), value(&text, "num_rcv_msgs")), (Some("1"), Some("5000")));
    assert!(!text.contains("latency"), "{text}");
}

#[test]
fn an_interrupted_subscriber_prints_its_result() {
    let stage = Stage::new();
    let subscriber = stage.start("perf sub");
    let publisher =
        stage.start("perf pub --wait-subscribers 1 -f 1 -m 32 -r 1000 -n 1000000 -w 10");
    subscriber.until_out("rcv event BOS");
    // Messages have arrived once the publisher's count in `ls` has moved.
    crate::run::wait_for("messages", || {
        let text = stage.run("ls --json --interval 1ms").good();
        let sessions: serde_json::Value = serde_json::from_str(&text).unwrap();
        (sessions[0]["subscribers"][0]["messages"].as_u64()? > 50).then_some(())
    });
    subscriber.signal("INT");
    let text = subscriber.finish().good();
    let line = text.lines().find(|line| line.starts_with("rcv stopped")).expect("a result");
    assert!(number(line, "num_rcv_msgs") > 50.0 && number(line, "min_latency") > 0.0, "{line}");
    assert_eq!(value(&text, "lost"), Some("0"));

    publisher.signal("INT");
    let stopped = publisher.finish();
    let words = stopped.refused(1);
    assert!(words.contains("interrupted after"), "{words}");
    let sent = number(&String::from_utf8_lossy(&stopped.out), "actual_sends");
    assert!(sent > 40.0 && sent < 1e6, "{sent}");
}

#[test]
fn a_message_without_room_for_its_timestamp_is_refused() {
    let stage = Stage::new();
    let done = stage.run("perf pub -f 1 -m 20 -n 10");
    let words = done.refused(2);
    assert!(words.contains("24") && words.contains("20"), "{words}");
}

#[test]
fn a_measurement_is_in_its_file_whatever_becomes_of_the_printed_one() {
    let stage = Stage::new();
    let run = |line: &str, output: Stdio| {
        let done = stage.lanecast(line).stdout(output).output().expect("it runs");
        let written = std::fs::read_to_string(stage.path("r.jsonl")).unwrap_or_default();
        std::fs::remove_file(stage.path("r.jsonl")).expect("written");
        (done.status.code(), written.lines().count())
    };
    for line in ["perf jitter -j 1000 --json -o r.jsonl", "perf pub -j 1000 --json -o r.jsonl"] {
        let full = OpenOptions::new().write(true).open("/dev/full").expect("Linux has it");
        assert_eq!(run(line, full.into()), (Some(1), 1), "{line}");
        let (reader, writer) = pipe().expect("a pipe");
        drop(reader);
        assert_eq!(run(line, writer.into()), (Some(0), 1), "{line}");
    }
}

#[test]
fn jitter_is_measured_by_either_command() {
    let stage = Stage::new();
    for line in ["perf jitter -j 100000", "perf pub -j 100000"] {
        let text = stage.run(line).good();
        assert!(text.lines().next().unwrap().contains("o_jitter_loops=100000, "), "{text}");
        assert!(text.lines().nth(1).unwrap().starts_with("ts_min_ns="), "{text}");
        assert!(number(&text, "ts_min_ns") <= number(&text, "ts_max_ns"), "{text}");
        assert_eq!(number(&text, "gap_samples"), 1e5, "{text}");
    }
    let text = stage.run("perf jitter -j 1000 --json").good();
    let result: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert!(result["ts_max_ns"].is_u64(), "{text}");
    assert_eq!((&result["schema"], &result["kind"]), (&1.into(), &"jitter".into()), "{text}");
    assert_eq!(result["command"], "lanecast perf jitter -j 1000 --json");
}

#[test]
fn the_cpu_that_sends_most_is_found_by_sending_from_each() {
    let stage = Stage::new();
    let text = stage.run("perf jitter -i 127.0.0.1 --send-time 5ms -j 1000").good();
    let sends: Vec<(i64, u64)> = text
        .lines()
        .take_while(|line| line.starts_with("cpu="))
        .map(|line| {
            let mut values =
                line.split(", ").filter_map(|pair| pair.split_once('=')?.1.parse().ok());
            let cpu = values.next().expect("a CPU");
            (cpu, values.next().expect("a number") as u64)
        })
        .collect();
    let most = sends.iter().map(|(_, sends)| *sends).max().expect("a CPU");
    assert!(most > 0, "{text}");
    let options = text.lines().nth(sends.len()).expect("options");
    let chosen = sends.iter().any(|(cpu, sends)| {
        *sends == most && options.starts_with(&format!("o_affinity_cpu={cpu}, "))
    });
    assert!(chosen, "{text}");
    let done = stage.run("perf jitter -i 127.0.0.1 -g 10.0.0.1:9");
    let words = done.refused(2);
    assert!(words.contains("is not a group with its port"), "{words}");
}

#[test]
fn results_can_be_json() {
    let (published, received) = pair_json("-f 1 -m 64 -r 0 -n 1000 -w 0");
    assert_eq!(published["sent"], 1000, "{published}");
    assert_eq!(received["received"], 1000, "{received}");
    assert_eq!(received["lost"], 0, "{received}");
    assert_eq!([&published["kind"], &received["kind"]], ["publisher", "subscriber"]);
    assert!(published["host"]["architecture"].is_string(), "{published}");
}

fn pair_json(options: &str) -> (serde_json::Value, serde_json::Value) {
    let stage = Stage::new();
    let subscriber = stage.start("perf sub --once --json");
    let published = stage.run(&format!("perf pub --wait-subscribers 1 --json {options}"));
    let read = |done: Done| serde_json::from_str(&done.good()).unwrap();
    (read(published), read(subscriber.finish()))
}
