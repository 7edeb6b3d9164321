//! `lanecast perf ping` and `lanecast perf pong`: real processes, and threads of one.

use crate::run::{Run, Stage, wait_for};
use serde_json::Value;

const COUNTS: &str = "num_rcv_msgs=2005, num_rx_msgs=0, num_unrec_loss=0, ";

/// A ping that sends 5 + 2000 messages of 24 bytes.
const PING: &str = "perf ping -m 24 -n 2000 -r 20000 -w 5,500 -H 5,1000 --linger-ms 20000";

/// The last lines of a ping's output are those of the document: buckets, and five lines.
fn check_end(text: &str) {
    let lines: Vec<&str> = text.lines().collect();
    let at = lines.len() - 10;
    let counted: u64 = lines[at..at + 5].iter().map(|line| line.parse::<u64>().unwrap()).sum();
    let end = &lines[at + 5..];
    let overflows = end[0].strip_prefix("o_histogram=5,1000, hist_overflows=").unwrap();
    let overflows: u64 = overflows.split(',').next().unwrap().parse().unwrap();
    assert_eq!(counted + overflows, 2000, "{text}");
    assert!(end[1].starts_with("hist_num_samples=2000, average_sample="), "{text}");
    assert!(end[2].starts_with("Percentiles: 90="), "{text}");
    assert!(end[3].starts_with("actual_sends=2000, duration_ns="), "{text}");
    assert_eq!(end[4], format!("Rcv: {COUNTS}"));
}

#[test]
fn processes_send_messages_back_and_forth() {
    let stage = Stage::new();
    for (there, back) in [("", ""), ("--one-thread -s f -g", "-s f -g"), ("-R x", "-R x")] {
        let pong = stage.start(&format!("perf pong -E {back}"));
        let text = stage.run(&format!("{PING} {there}")).good();
        check_end(&text);
        let options = text.lines().next().unwrap();
        assert!(options.starts_with("o_affinity_src=-1, o_affinity_rcv=-1, o_config="), "{text}");
        assert!(text.contains("rcv event BOS, topic_name='topic2', source=shm:"), "{text}");
        assert!(text.contains("\nintended_min_ns="), "{text}");

        let text = pong.finish().good();
        assert!(text.starts_with("o_affinity_rcv=-1, o_config=, o_exit_on_eos=1, "), "{text}");
        assert!(text.contains("rcv event BOS, topic_name='topic1', source=shm:"), "{text}");
        let end = text.lines().find(|line| line.starts_with("rcv event EOS, 'topic1'")).unwrap();
        assert!(end.contains(COUNTS) && end.ends_with("ended='closed', "), "{text}");
        assert!(text.contains(&format!("\nanswered=2005, {COUNTS}")), "{text}");
    }
}

#[test]
fn threads_of_one_process_need_no_other() {
    let stage = Stage::new();
    let line = format!("{PING} --transport thread --one-thread");
    check_end(&stage.run(&line).good());
    let lines = stage.run(&format!("{line} --json -o both.jsonl")).good();
    assert_eq!(std::fs::read_to_string(stage.path("both.jsonl")).unwrap(), lines);
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [ping, pong] = lines.as_slice() else { panic!("{lines:?}") };
    assert_eq!((&ping["kind"], &pong["kind"]), (&"ping".into(), &"pong".into()));
    assert_eq!((&ping["transport"], &ping["threads"]), (&"thread".into(), &"one".into()));
    assert_eq!((&ping["received"], &pong["answered"]), (&2005.into(), &2005.into()));
    assert_eq!(ping["latency"]["intended"]["samples"], 2000);
}

/// No card is behind the loopback.
#[test]
fn datagrams_that_cannot_pass_the_stack_by_are_told() {
    let stage = Stage::new();
    let words = "--transport ru --io xdp --topics xdp.there,xdp.back";
    let pong = stage.start(&format!("perf pong -E {words}"));
    let done = stage.run(&format!("{PING} {words} --json"));
    let ping: Value = serde_json::from_str(&done.good()).unwrap();
    assert_eq!((&ping["io"], &ping["received"]), (&"sockets".into(), &2005.into()));
    let reason = ping["io_fallback"].as_str().unwrap();
    assert!(reason.contains("lo is a loopback"), "{reason}");
    let warning = format!("lanecast: net.io = xdp: datagrams go by sockets, because {reason}");
    assert!(done.err.contains(&warning), "{}", done.err);
    let answered = pong.finish();
    assert!(answered.err.contains(&warning), "{}", answered.err);
    let text = answered.good();
    assert!(text.contains(&format!("\nio_fallback='{reason}', ")), "{text}");
    assert!(text.contains("\ntransport=ru, io='sockets', "), "{text}");
}

#[test]
fn a_pong_serves_one_ping_after_the_other_until_it_is_interrupted() {
    let stage = Stage::new();
    let pong = stage.start("perf pong --topics there,back");
    for times in 1..=2 {
        check_end(&stage.run(&format!("{PING} --topics there,back")).good());
        wait_for("the ping's end", || {
            (pong.out().matches("rcv event EOS, 'there'").count() == times).then_some(())
        });
    }
    pong.signal("INT");
    assert!(pong.finish().good().contains("answered=4010, "));
}

#[test]
fn loss_is_a_status_of_its_own_on_both_sides() {
    let stage = Stage::new();
    let evicting = |line: &str| {
        let mut command = stage.lanecast(line);
        command.env("LANECAST_SHM__SLOW_CONSUMER", "50ms").env("LANECAST_SHM__WINDOW", "64KiB");
        Run::start(command)
    };
    let pong = evicting("perf pong -E");
    // More than the window holds, so the pong's pause is noticed.
    let ping = evicting("perf ping --one-thread -m 1000 -n 20000 -r 10000 -H 2,1000 -l 100");
    pong.until_out("rcv event BOS");
    pong.signal("STOP");
    let ping = ping.finish();
    assert!(ping.refused(3).contains("of 20000 messages"), "{}", ping.err);
    pong.signal("CONT");
    let pong = pong.finish();
    assert!(pong.refused(3).contains("were lost"), "{}", pong.err);
}

#[test]
fn a_ping_without_its_pong_says_so() {
    let stage = Stage::new();
    let alone = stage.start(PING);
    alone.until_out("o_affinity_src=");
    alone.signal("INT");
    let alone = alone.finish();
    assert!(alone.refused(1).contains("start one with 'lanecast perf pong'"), "{}", alone.err);

    let pong = stage.start("perf pong");
    let ping = stage.start("perf ping --one-thread -m 24 -n 1000000 -r 1000 -H 2,1000");
    pong.until_out("rcv event BOS");
    ping.until_out("rcv event BOS");
    pong.signal("INT");
    pong.finish();
    let ping = ping.finish();
    let words = ping.refused(1);
    assert!(words.contains("interrupted after") && words.contains("the pong has left"), "{words}");
}

#[test]
fn a_run_that_would_take_for_ever_is_told_in_words_when_it_is_interrupted() {
    let stage = Stage::new();
    for more in ["", "-w 18446744073709551615,1"] {
        let line = "perf ping --transport thread --one-thread -n 18446744073709551615 -r 1";
        let ping = stage.start(&format!("{line} {more}"));
        ping.until_out("rcv event BOS");
        ping.signal("INT");
        assert!(ping.finish().refused(1).contains("interrupted after"));
    }
}

#[test]
fn both_sides_are_set_up_by_the_xml_file() {
    let stage = Stage::new();
    let option = |kibibytes: u64| {
        let bytes = kibibytes << 10;
        format!(
            "<option name='transport_lbtsmx_transmission_window_size' default-value='{bytes}'/>"
        )
    };
    for (name, kibibytes) in [("first.xml", 256), ("um.xml", 128)] {
        let text =
            format!("<um><application name='um_perf'>{}</application></um>", option(kibibytes));
        stage.write(name, text);
    }
    // What -x says goes before what -c says.
    let ping = "perf ping --transport thread --one-thread -n 100 -c first.xml -x um.xml --json";
    for line in stage.run(ping).good().lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        assert_eq!(line["window"], "128KiB", "{line}");
    }
    let publisher = "perf pub --transport thread -r 0 -n 100 -w 0 -c first.xml -x um.xml --json";
    for line in stage.run(publisher).good().lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        assert_eq!(line["window"], "128KiB", "{line}");
    }
    let pong = stage.start("perf pong -E -c first.xml -x um.xml --json");
    stage.run("perf ping --one-thread -n 100 -r 1000").good();
    let line: Value = serde_json::from_str(&pong.finish().good()).unwrap();
    assert_eq!(line["window"], "128KiB", "{line}");
}

#[test]
fn conflicting_options_are_refused() {
    let stage = Stage::new();
    let ping = "perf ping -m 24 -n 1 -r 1 -H 2,1000";
    for (line, part) in [
        (format!("{ping} --one-thread -R x"), "leave out one of them"),
        (format!("{ping} --one-thread -a 0"), "that of -A"),
        (format!("{ping} --pong-cpu 0"), "perf pong -a"),
        (format!("{ping} -s f --wait park"), "leave out one of them"),
        (format!("{ping} --transport thread -m 15"), "cannot be used multiple times"),
        ("perf ping --transport thread -m 15 -n 1 -r 1 -H 2,1000".into(), "take -m 16 or more"),
        ("perf pong --transport thread".into(), "perf ping runs both sides"),
        ("perf pong -o times.hgrm".into(), "its ping does"),
    ] {
        let done = stage.run(&line);
        assert!(matches!(done.code, Some(1 | 2)), "{line}: {done:?}");
        assert!(done.err.contains(part), "{line}: {}", done.err);
    }
}
