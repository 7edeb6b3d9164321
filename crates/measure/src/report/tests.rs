//! The lines, letter by letter: scripts read them.

mod round_trip;

use super::*;
use crate::latency::Latency;
use crate::pinning::{PinChoice, Pinning};
use crate::publisher::Arrival;
use crate::{DatagramIo, Flags, PriorityChange, Setup, Touch};
use lanecast_base::clock::Clock;
use lanecast_base::{Size, WaitStrategy};
use std::time::Duration;

fn setup() -> Setup {
    Setup {
        wait: WaitStrategy::SpinPark,
        window: Size(1 << 20),
        io: None,
        raise: PriorityChange::SharedSession,
        clock: Clock::host(),
    }
}

fn found_conditions() -> Conditions {
    Conditions {
        transport: "shm",
        wait: WaitStrategy::BusySpin,
        window: Size(1 << 20),
        io: None,
        touch: Touch::Header,
        clock: "tsc",
        clock_cost_ns: 16.04,
        recording_cost_ns: 21.46,
        cpus: Cpus { pinned: Some(1), choice: PinChoice::Given, ran_on: 1, online: 2 },
        raise: PriorityChange::Raised,
        interference: interfered(),
    }
}

fn interfered() -> Interference {
    Interference {
        elapsed_ns: 1000,
        involuntary_switches: Some(3),
        voluntary_switches: Some(4),
        waited_ns: None,
        stolen_ns: Some(0),
        longest_gap_ns: Some(77),
        gap_watched: Some(Watched::Around),
        doubts: Vec::new(),
    }
}

const CONDITIONS: &str = "transport=shm, wait=spin, window=1MiB, touch=header, clock=tsc, \
    clock_cost_ns=16.0, recording_cost_ns=21.5, pinned_cpu=1, cpu_choice=given, ran_on_cpu=1, \
    online_cpus=2, raise=raised, \n\
    involuntary_switches=3, voluntary_switches=4, waited_ns=unknown, stolen_ns=0, \
    longest_gap_ns=77, gap_watched=around, watched_ns=1000, verdict='quiet', \n";

fn found_distribution() -> Distribution {
    Distribution {
        min_ns: 128,
        p50_ns: 150,
        p90_ns: 160,
        p99_ns: 170,
        p99_9_ns: 180,
        p99_99_ns: 190,
        p99_999_ns: 195,
        max_ns: 205_974,
        mean_ns: 156.4,
        samples: 2_500_000,
        buckets: vec![(128, 1), (205_974, 2_499_999)],
    }
}

fn stream_figures(latency: Option<Latency>) -> StreamResult {
    StreamResult {
        topic: "smx_perf".into(),
        session: "00000000000000aa".into(),
        source: "shm:aa".into(),
        ended: Some("closed"),
        figures: Figures {
            received: 2_510_000,
            warmup: 10_000,
            first_number: Some(0),
            duration_ns: 9_999_997_986,
            rate: 250_000.050_35,
            latency,
            ..Figures::default()
        },
    }
}

#[test]
fn the_publisher_s_options_are_the_documented_line() {
    let settings = publisher::Settings {
        topics: vec!["smx_perf".into()],
        size: 25,
        messages: 100_000_000,
        rate: 999_999_999,
        time: None,
        burst: 1,
        warmup: 10_000,
        warmup_rate: 10_000,
        flags: Flags::from_bits(3).unwrap(),
        touch: Touch::Header,
        place: Pinning { cpu: Some(7), choice: PinChoice::Given },
        arrival: Arrival::Subscribers(1),
        linger: Duration::from_millis(2000),
        calls: None,
        setup: setup(),
    };
    assert_eq!(
        publisher_options(&settings, "smx.cfg", 0),
        "o_affinity_cpu=7, o_config=smx.cfg, o_flags=0x03, o_jitter_loops=0, o_linger_ms=2000, \
         o_msg_len=25, o_num_msgs=100000000, o_rate=999999999, o_topic='smx_perf', \
         o_warmup_loops=10000, "
    );
}

#[test]
fn the_subscriber_s_options_are_the_documented_line() {
    let settings = subscriber::Settings {
        topics: vec!["smx_perf".into()],
        place: Pinning { cpu: None, choice: PinChoice::None },
        fast: true,
        linear: None,
        spin: 4,
        touch: Touch::Whole,
        unordered: false,
        once: false,
        setup: setup(),
    };
    assert_eq!(
        subscriber_options(&settings, ""),
        "o_affinity_cpu=-1, o_config=, o_fast=1, o_spin_cnt=4, o_topic='smx_perf', "
    );
}

#[test]
fn the_publisher_s_result_starts_with_the_documented_lines() {
    let result = PublisherResult {
        topic: "smx_perf".into(),
        session: "00000000000000aa".into(),
        source: "shm:aa".into(),
        size: 25,
        sent: 100_000_000,
        warmup: 10_000,
        interrupted: false,
        duration_ns: 5_045_650_145,
        rate: 19_819_051.485_188,
        rate_asked: 999_999_999,
        burst: 1,
        largest_burst: 100_000_000,
        back_pressured: Some(12),
        subscribers_at_start: 1,
        subscribers_at_end: 1,
        drained: None,
        lateness: None,
        calls: None,
        persistence: None,
        conditions: found_conditions(),
    };
    assert_eq!(
        publisher_result(&result),
        "actual_sends=100000000, duration_ns=5045650145, result_rate=19819051.485188, \n\
         25,100010000,19819051.485188\n\
         burst=1, largest_burst=100000000, global_max_tight_sends=100000000, \
         max_flight_size=unknown, back_pressured=12, subscribers_at_start=1, \
         subscribers_at_end=1, source=shm:aa, \n"
            .to_owned()
            + CONDITIONS
    );
}

#[test]
fn a_stream_s_end_is_the_documented_line_and_ours() {
    let counts = "lost=0, reported_lost=0, duplicated=0, damaged=0, unchecked=0, warmup=10000, \
                  first_number=0, duration_ns=9999997986, result_rate=250000.050350, \
                  ended='closed', \n";
    assert_eq!(
        stream_result(&stream_figures(None)),
        format!("rcv event EOS, 'smx_perf', shm:aa, num_rcv_msgs=2510000, \n{counts}")
    );

    let latency = Latency { actual: found_distribution(), intended: found_distribution() };
    let tail = "min_ns=128, A_p50_ns=150, A_p90_ns=160, A_p99_ns=170, A_p99_9_ns=180, \
                A_p99_99_ns=190, A_p99_999_ns=195, A_max_ns=205974, A_mean_ns=156.4, \
                A_samples=2500000, \n";
    assert_eq!(
        stream_result(&stream_figures(Some(latency))),
        format!(
            "rcv event EOS, 'smx_perf', shm:aa, num_rcv_msgs=2510000, min_latency=128, \
             max_latency=205974, average latency=156, \n{counts}actual_{}intended_{}",
            tail.replace('A', "actual"),
            tail.replace('A', "intended")
        )
    );
}

#[test]
fn a_stream_that_goes_on_is_no_end() {
    let result = StreamResult { ended: None, ..stream_figures(None) };
    let text = stream_result(&result);
    assert!(text.starts_with("rcv stopped, 'smx_perf', shm:aa, num_rcv_msgs=2510000, \n"));
    assert!(text.contains("ended='still there'"));
}

#[test]
fn a_beginning_is_the_documented_line() {
    let stream = Stream {
        session: lanecast_transport::SessionId(0xaa),
        topic: "smx_perf".into(),
        topic_id: lanecast_transport::TopicId::FIRST,
        pid: 7,
        source: "shm:aa".into(),
    };
    assert_eq!(joined(&stream), "rcv event BOS, topic_name='smx_perf', source=shm:aa, \n");
    let gap =
        Gap { stream: &stream, first: 12, count: 3, why: lanecast_transport::LossReason::Damaged };
    assert_eq!(
        lost(&gap),
        "rcv event LOST, topic_name='smx_perf', source=shm:aa, first=12, count=3, \
         why='the stream's memory is damaged', \n"
    );
}

#[test]
fn lateness_comes_between_the_publisher_s_own_lines() {
    let text = distribution("lateness", &found_distribution());
    assert!(text.starts_with("lateness_min_ns=128, lateness_p50_ns=150, "), "{text}");
    assert!(text.ends_with("lateness_samples=2500000, \n"), "{text}");
}

#[test]
fn the_linear_histogram_is_the_documented_lines() {
    let mut linear = crate::Linear::new("3,1000".parse().unwrap());
    [0, 999, 2500, 2600, 2701, 3000].into_iter().for_each(|ns| linear.record(ns));
    assert_eq!(
        super::linear(&linear.result()),
        "2\n0\n3\n\
         o_histogram=3,1000, hist_overflows=1, hist_min_sample=0, hist_max_sample=3000,\n\
         hist_num_samples=6, average_sample=1967,\n\
         Percentiles: 90=-1, 99=-1, 99.9=-1, 99.99=-1, 99.999=-1\n"
    );
}

#[test]
fn the_jitter_result_starts_with_the_documented_line() {
    let result = JitterResult {
        loops: 10,
        ts_min_ns: 12,
        ts_max_ns: 365_127,
        gaps: found_distribution(),
        long_gaps: 2,
        lost_share: 0.012_345_6,
        duration_ns: 99,
        clock: "tsc",
        clock_cost_ns: 15.96,
        monotonic_cost_ns: 62.0,
        cpus: Cpus { pinned: None, choice: PinChoice::None, ran_on: 0, online: 2 },
        raise: PriorityChange::NotPermitted,
        interference: interfered(),
    };
    let text = jitter_result(&result);
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[0], "ts_min_ns=12, ts_max_ns=365127, ");
    assert!(lines[1].starts_with("gap_min_ns=128, gap_p50_ns=150, "));
    assert_eq!(
        lines[2],
        "long_gaps=2, lost_share=0.012346, duration_ns=99, clock=tsc, clock_cost_ns=16.0, \
         monotonic_cost_ns=62.0, pinned_cpu=none, cpu_choice=none, ran_on_cpu=0, online_cpus=2, \
         raise=not-permitted, "
    );
    assert!(lines[3].starts_with("involuntary_switches=3, "));
}

#[test]
fn every_line_splits_into_keys_and_values() {
    for text in [CONDITIONS.to_owned(), stream_result(&stream_figures(None))] {
        for line in text.lines().skip_while(|line| line.starts_with("rcv")) {
            let pairs = line.strip_suffix(", ").unwrap().split(", ");
            assert!(pairs.into_iter().all(|pair| pair.contains('=')), "{line}");
        }
    }
}

#[test]
fn json_has_the_promised_shape() {
    let latency = Latency { actual: found_distribution(), intended: found_distribution() };
    let stream = stream_figures(Some(latency));
    let result = crate::SubscriberResult {
        figures: stream.figures.clone(),
        linear: None,
        fast: false,
        spin: 0,
        recovered: Some(7),
        streams: vec![stream],
        conditions: found_conditions(),
    };
    let json = serde_json::to_value(&result).unwrap();
    for path in [
        "/received",
        "/lost",
        "/duration_ns",
        "/rate",
        "/latency/actual/p50_ns",
        "/latency/intended/p99_99_ns",
        "/latency/actual/samples",
        "/streams/0/ended",
        "/latency/actual/p99_999_ns",
        "/latency/intended/buckets/1/0",
        "/clock_cost_ns",
        "/recording_cost_ns",
        "/cpus/pinned",
        "/interference/involuntary_switches",
        "/interference/longest_gap_ns",
    ] {
        assert!(!json.pointer(path).unwrap_or(&serde_json::Value::Null).is_null(), "{path}");
    }
    assert_eq!(json["latency"]["actual"]["buckets"][0], serde_json::json!([128, 1]));
    assert_eq!(json["interference"]["gap_watched"], "around");
    assert_eq!(json["wait"], "spin");
    assert_eq!(json["window"], "1MiB");
    assert_eq!(json["touch"], "header");
}
