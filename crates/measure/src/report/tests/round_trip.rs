//! The lines of a ping and its pong.

use super::*;
use crate::LinearShape;
use crate::ping::STAMP;
use crate::ping::{
    Ended, PingResult, PongResult, PongSettings, Settings, Threads, Topics, Traffic,
};
use lanecast_transport::{CloseReason, SessionId, TopicId};

const OPTIONS: PingOptions<'_> = PingOptions {
    config: "lan.cfg",
    xml_config: "um.xml",
    receive_thread: "x",
    spin_method: "f",
    persist_mode: "s",
    application: "um_perf_spp",
};
const ANYWHERE: Pinning = Pinning { cpu: None, choice: PinChoice::None };

fn traffic() -> Traffic {
    Traffic { received: 500_005, recovered: Some(2), ..Traffic::default() }
}

fn found() -> PingResult {
    let shape = LinearShape::new(2, 1000).unwrap();
    let mut linear = crate::Linear::new(shape);
    [19_991, 400, 700].into_iter().for_each(|ns| linear.record(ns));
    PingResult {
        topics: Topics::default(),
        source: "shm:aa".into(),
        size: STAMP,
        sent: 500_000,
        warmup: 5,
        interrupted: false,
        duration_ns: 9_999_983_492,
        rate: 49_999.982_54,
        rate_asked: 50_000,
        largest_burst: 6,
        most_in_flight: 3,
        back_pressured: 1,
        traffic: traffic(),
        pong_left: None,
        linear: linear.result(),
        latency: None,
        lateness: Some(found_distribution()),
        threads: Threads::One,
        generic: false,
        persistence: None,
        io_fallback: None,
        drained: None,
        receiver: None,
        conditions: found_conditions(),
    }
}

#[test]
fn a_ping_tells_its_options() {
    let settings = Settings {
        topics: Topics::default(),
        size: 24,
        messages: 500_000,
        rate: 50_000,
        warmup: 5,
        warmup_rate: 6,
        histogram: LinearShape::new(300, 1000).unwrap(),
        generic: true,
        threads: Threads::Two,
        sender: Pinning { cpu: Some(4), choice: PinChoice::Given },
        receiver: Pinning { cpu: Some(12), choice: PinChoice::Given },
        linger: Duration::from_secs(1),
        polls_publisher: false,
        setup: setup(),
    };
    assert_eq!(
        ping_options(&settings, &OPTIONS),
        "o_affinity_src=4, o_affinity_rcv=12, o_config=lan.cfg, o_generic_src=1, \
         o_histogram=300,1000, o_linger_ms=1000, o_msg_len=24, o_num_msgs=500000, \
         o_persist_mode='s', o_rcv_thread='x', o_rate=50000, o_spin_method='f', o_warmup=5,6, \
         o_xml_config=um.xml, \napp_name='um_perf_spp', hist_num_buckets=300, \
         hist_ns_per_bucket=1000, persist_mode='s', spin_method='f', warmup_loops=5, \
         warmup_rate=6, \n"
    );
}

#[test]
fn a_ping_ends_with_the_documented_lines() {
    let text = ping_result(&found());
    assert!(text.starts_with("lateness_min_ns=128, "), "{text}");
    let end = "hot_threads=one, topics='topic1,topic2', source=shm:aa, duplicated=0, damaged=0, \
        back_pressured=1, pong_left='no', \n";
    let documented = "2\n0\n\
        o_histogram=2,1000, hist_overflows=1, hist_min_sample=400, hist_max_sample=19991,\n\
        hist_num_samples=3, average_sample=7030,\n\
        Percentiles: 90=-1, 99=-1, 99.9=-1, 99.99=-1, 99.999=-1\n\
        actual_sends=500000, duration_ns=9999983492, result_rate=49999.982540, \
        global_max_tight_sends=6, max_flight_size=3, \n\
        Rcv: num_rcv_msgs=500005, num_rx_msgs=2, num_unrec_loss=0, \n";
    assert!(text.ends_with(&format!("{end}{CONDITIONS}{documented}")), "{text}");

    let both = PingResult {
        threads: Threads::Two,
        receiver: Some(found_conditions()),
        pong_left: Some("closed"),
        ..found()
    };
    let text = ping_result(&both);
    assert!(text.contains(&format!("pong_left='closed', \n{CONDITIONS}{CONDITIONS}2\n")), "{text}");
}

#[test]
fn a_pong_tells_its_options_and_counts() {
    let settings = PongSettings {
        topics: Topics::default(),
        generic: false,
        place: ANYWHERE,
        once: true,
        linger: Duration::ZERO,
        polls_publisher: false,
        setup: setup(),
    };
    assert_eq!(
        pong_options(&settings, &PingOptions { application: "um_perf", ..PingOptions::default() }),
        "o_affinity_rcv=-1, o_config=, o_exit_on_eos=1, o_generic_src=0, o_persist_mode='', \
         o_rcv_thread='', o_spin_method='', o_xml_config=, \n\
         app_name='um_perf', persist_mode='', spin_method='', \n"
    );
    let result = PongResult {
        topics: Topics::default(),
        traffic: Traffic { recovered: None, reported_lost: 7, ..traffic() },
        answered: 500_005,
        most_at_once: 9,
        back_pressured: 4,
        generic: false,
        persistence: None,
        io_fallback: None,
        conditions: found_conditions(),
    };
    let counts = "answered=500005, num_rcv_msgs=500005, num_rx_msgs=0, num_unrec_loss=7, \
        back_pressured=4, \n";
    assert_eq!(pong_end(&result), format!("{counts}{CONDITIONS}"));
    let by = |io, reason: Option<&str>| PongResult {
        io_fallback: reason.map(str::to_owned),
        conditions: Conditions { io: Some(io), ..found_conditions() },
        ..result.clone()
    };
    let past = pong_end(&by(DatagramIo::XdpCopy, None));
    assert!(past.contains("\ntransport=shm, io='xdp copy', wait=spin, "), "{past}");
    let fallen = pong_end(&by(DatagramIo::Sockets, Some("lo is a loopback")));
    assert!(fallen.contains("\nio_fallback='lo is a loopback', \ntransport="), "{fallen}");
    assert!(fallen.contains(", io='sockets', "), "{fallen}");
}

#[test]
fn the_end_of_a_stream_has_its_counts() {
    let stream = Stream {
        session: SessionId(0xaa),
        topic: "topic1".into(),
        topic_id: TopicId::FIRST,
        pid: 1,
        source: "shm:aa".into(),
    };
    let traffic = traffic();
    let ended = Ended {
        stream: &stream,
        why: CloseReason::Closed,
        traffic: &traffic,
        most_at_once: Some(3),
    };
    let counts = "num_rcv_msgs=500005, num_rx_msgs=2, num_unrec_loss=0, ";
    assert_eq!(
        stream_left(&ended),
        format!("rcv event EOS, 'topic1', shm:aa, {counts}max_flight_size=3, ended='closed', \n")
    );
    assert_eq!(
        stream_left(&Ended { most_at_once: None, ..ended }),
        format!("rcv event EOS, 'topic1', shm:aa, {counts}ended='closed', \n")
    );
}
