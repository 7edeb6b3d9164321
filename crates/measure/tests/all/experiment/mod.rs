//! Publisher and subscriber against each other, over a transport in memory.

mod lines;
mod memory;
mod round_trip;

use lanecast_base::clock::Clock;
use lanecast_base::{Size, WaitStrategy};
use lanecast_measure::publisher::{self, Arrival, Hooks, PublisherError};
use lanecast_measure::subscriber::{self, Notice};
use lanecast_measure::{
    Flags, LinearShape, PinChoice, Pinning, PriorityChange, PublisherResult, Setup,
    SubscriberResult, Touch,
};
use lanecast_transport::Transport;
use memory::{Fate, Memory, MemoryPublisher};
use std::cell::Cell;
use std::time::Duration;

const NOWHERE: Pinning = Pinning { cpu: None, choice: PinChoice::None };
const NEVER: &dyn Fn() -> bool = &|| false;

fn setup() -> Setup {
    let clock = Clock::host();
    Setup {
        wait: WaitStrategy::Park,
        window: Size(4096),
        io: None,
        raise: PriorityChange::NotPermitted,
        clock,
    }
}

fn sending(size: usize, messages: u64, bits: u8) -> publisher::Settings {
    publisher::Settings {
        topics: vec!["t".into()],
        size,
        messages,
        rate: 0,
        time: None,
        burst: 1,
        warmup: 100,
        warmup_rate: 0,
        flags: Flags::from_bits(bits).unwrap(),
        touch: Touch::Header,
        place: NOWHERE,
        arrival: Arrival::Subscribers(1),
        linger: Duration::from_secs(10),
        calls: None,
        setup: setup(),
    }
}

fn reading() -> subscriber::Settings {
    subscriber::Settings {
        topics: vec!["t".into()],
        place: NOWHERE,
        fast: false,
        linear: None,
        spin: 0,
        touch: Touch::Header,
        unordered: false,
        once: true,
        setup: setup(),
    }
}

fn publish(
    transport: &Memory,
    settings: &publisher::Settings,
    stop: &dyn Fn() -> bool,
) -> Result<PublisherResult, PublisherError> {
    let mut announce = |result: &PublisherResult| {
        assert_eq!(result.drained, None, "told before it lingers");
    };
    let back_pressured = |publisher: &MemoryPublisher| Some(publisher.back_pressured());
    let hooks = Hooks { stop, back_pressured: &back_pressured, announce: &mut announce };
    publisher::run(transport, settings, hooks)
}

/// Runs one publisher and one subscriber; gives what they found and what was told on the way.
fn run(
    transport: &Memory,
    sending: &publisher::Settings,
    reading: &subscriber::Settings,
) -> (PublisherResult, SubscriberResult, Vec<&'static str>) {
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut told = Vec::new();
            let result = subscriber::run(transport, reading, |_| Some(3), NEVER, &mut |notice| {
                told.push(match notice {
                    Notice::Joined(_) => "joined",
                    Notice::Lost(_) => "lost",
                    Notice::Left(_) => "left",
                    Notice::Stopped(_) => "stopped",
                    _ => "something else",
                });
            });
            (result.unwrap(), told)
        });
        let sent = publish(transport, sending, NEVER);
        let (read, told) = reader.join().unwrap();
        (sent.unwrap(), read, told)
    })
}

fn arrives(_: u64) -> Fate {
    Fate::Arrives
}

#[test]
fn calls_are_timed_if_that_is_asked_for() {
    for bits in [0, 1, 2, 4] {
        let calls = LinearShape::new(10, 1000).unwrap();
        let sending = publisher::Settings { calls: Some(calls), ..sending(64, 300, bits) };
        // Room for all, so that nothing is refused.
        let (sent, read, _) = run(&Memory::new(1000, arrives), &sending, &reading());
        let calls = sent.calls.unwrap();
        assert_eq!((calls.samples, calls.buckets), (300, 10), "without the warm-up");
        assert!(read.figures.is_complete() && read.figures.received == 400, "{bits}");
        assert_eq!(read.recovered, Some(3), "as the transport says");
    }
    let (sent, ..) = run(&Memory::new(64, arrives), &sending(64, 10, 0), &reading());
    assert!(sent.calls.is_none());
}

#[test]
fn every_message_is_counted_on_both_sides() {
    for bits in [0, 1, 4, 5] {
        for size in [24, 25, 64, 1500] {
            for (touch, fast) in [(Touch::Header, false), (Touch::Whole, true)] {
                let sending = publisher::Settings { touch, ..sending(size, 2000, bits) };
                let reading = subscriber::Settings { touch, fast, spin: 2, ..reading() };
                let transport = Memory::new(64, arrives);
                let (sent, read, told) = run(&transport, &sending, &reading);
                assert_eq!(transport.copied(), if bits & 4 != 0 { 2100 } else { 0 });
                assert_eq!((sent.sent, sent.warmup, sent.interrupted), (2000, 100, false));
                assert_eq!((sent.subscribers_at_start, sent.drained), (1, Some(true)));
                assert!(sent.rate > 0.0 && sent.duration_ns > 0);

                let figures = &read.figures;
                assert_eq!((figures.received, figures.warmup), (2100, 100));
                assert!(figures.is_complete() && figures.unchecked == 0, "{figures:?}");
                assert_eq!(figures.first_number, Some(0));
                assert!(figures.rate > 0.0 && figures.duration_ns > 0);
                assert_eq!(told, ["joined", "left"]);
                assert_eq!(read.streams[0].ended, Some("closed"));
                let stamped = bits & 1 != 0 && !fast;
                let samples = figures.latency.as_ref().map(|latency| latency.actual.samples);
                assert_eq!(samples, stamped.then_some(2000), "the warm-up has no latency");
            }
        }
    }
}

#[test]
fn a_full_window_is_waited_out_and_counted() {
    let (sent, read, _) = run(&Memory::new(2, arrives), &sending(25, 5000, 0), &reading());
    assert!(sent.back_pressured > Some(0));
    assert_eq!((read.figures.received, read.figures.lost), (5100, 0));
}

#[test]
fn a_schedule_is_kept_and_its_latency_counts_from_the_intended_time() {
    let sending = publisher::Settings { rate: 100_000, ..sending(32, 5000, 1) };
    let (sent, read, _) = run(&Memory::new(10_000, arrives), &sending, &reading());
    assert!(sent.duration_ns >= 49_980_000, "5000 messages at 100 000/s: {}", sent.duration_ns);
    assert!((1..=5000).contains(&sent.largest_burst));
    assert_eq!(sent.lateness.unwrap().samples, 5000);
    let latency = read.figures.latency.unwrap();
    assert_eq!(latency.intended.samples, 5000);
    assert!(latency.intended.mean_ns >= latency.actual.mean_ns);
}

#[test]
fn lost_repeated_and_damaged_messages_are_found() {
    fn fate(number: u64) -> Fate {
        match number {
            50 | 150 | 151 => Fate::Vanishes,
            200 => Fate::ArrivesTwice,
            300 => Fate::IsLost,
            400 => Fate::IsDamaged,
            _ => Fate::Arrives,
        }
    }
    let sending = publisher::Settings { touch: Touch::Whole, ..sending(40, 1000, 0) };
    let reading = subscriber::Settings { touch: Touch::Whole, ..reading() };
    let (sent, read, told) = run(&Memory::new(64, fate), &sending, &reading);
    assert_eq!(sent.sent, 1000);
    let figures = &read.figures;
    assert_eq!((figures.lost, figures.reported_lost), (4, 1), "the told one is missing, too");
    assert_eq!((figures.duplicated, figures.damaged), (1, 1));
    assert_eq!(figures.received, 1100 - 4 + 1);
    assert_eq!(figures.warmup, 99);
    assert_eq!(told, ["joined", "lost", "left"]);
    assert!(!figures.is_complete());
}

#[test]
fn messages_too_small_for_a_number_are_counted_and_said_to_be_unchecked() {
    for size in [0, 1, 7] {
        let (sent, read, _) = run(&Memory::new(64, arrives), &sending(size, 500, 0), &reading());
        assert_eq!(sent.sent, 500);
        assert_eq!((read.figures.received, read.figures.unchecked), (600, 600));
        assert_eq!(read.figures.first_number, None);
    }
}

#[test]
fn a_refusal_in_non_blocking_mode_says_how_many_were_sent() {
    for bits in [2, 2 | 4] {
        let transport = Memory::new(150, arrives);
        let stalled = transport.subscriber(&["t"]).unwrap();
        let settings = publisher::Settings { warmup: 50, ..sending(25, 1000, bits) };
        let error = publish(&transport, &settings, NEVER).unwrap_err();
        // One place is taken by the news that the publisher joined.
        let PublisherError::Refused { sent: 99, of: 1000, .. } = error else {
            panic!("{error:?}");
        };
        assert!(error.to_string().starts_with("sent 99 of 1000 messages, then: back-pressured"));
        drop(stalled);
    }
}

#[test]
fn settings_that_cannot_work_are_refused_before_anything_is_sent() {
    let transport = Memory::new(64, arrives);
    let refused = |settings| publish(&transport, &settings, NEVER).unwrap_err().to_string();
    assert!(refused(sending(23, 1, 1)).contains("take -m 24 or more"));
    assert!(refused(sending(25, u64::MAX, 0)).contains("-n and -w"));
    let bursts = |burst, rate| publisher::Settings { burst, rate, ..sending(25, 1, 0) };
    assert!(refused(bursts(2, 0)).contains("--burst 2 needs a rate"));
    assert!(refused(bursts(2, publisher::FLAT_OUT_RATE)).contains("needs a rate"));
    assert!(refused(bursts(0, 10)).contains("1 is even spacing"));
    assert!(refused(sending(4097, 1, 0)).contains("at most 4096 bytes"));
}

#[test]
fn a_stop_ends_each_side_with_its_result() {
    let transport = Memory::new(1_000_000, arrives);
    let stops = Cell::new(0);
    let stop = || {
        stops.set(stops.get() + 1);
        stops.get() > 3
    };
    let unheard = publisher::Settings { warmup: 0, ..sending(25, 1_000_000, 0) };
    let error = publish(&transport, &unheard, &stop).unwrap_err();
    assert!(matches!(error, PublisherError::NoSubscriber { joined: 0, wanted: 1 }));

    stops.set(0);
    let alone = publisher::Settings {
        arrival: Arrival::Pause(Duration::ZERO),
        rate: 10,
        ..unheard.clone()
    };
    let result = publish(&transport, &alone, &stop).unwrap();
    assert!(result.interrupted && result.sent < 5, "{result:?}");

    let publisher = transport.publisher("t").unwrap();
    stops.set(0);
    let mut told = Vec::new();
    let result = subscriber::run(&transport, &reading(), |_| None, &stop, &mut |notice| {
        told.push(matches!(notice, Notice::Stopped(_)));
    });
    assert_eq!(result.unwrap().streams[0].ended, None);
    assert_eq!(told, [false, true]);
    drop(publisher);
}

#[test]
fn a_run_by_time_ends_of_itself_and_loses_nothing() {
    let time = Some(Duration::from_millis(20));
    let sending = publisher::Settings { time, ..sending(25, u64::MAX >> 9, 0) };
    let (sent, read, _) = run(&Memory::new(64, arrives), &sending, &reading());
    assert!(!sent.interrupted && sent.sent > 0 && sent.duration_ns >= 20_000_000, "{sent:?}");
    assert_eq!(read.figures.received, sent.sent + 100);
    assert!(read.figures.is_complete());
}

#[test]
fn two_publishers_are_two_streams() {
    let transport = Memory::new(64, arrives);
    let reading = subscriber::Settings { once: false, ..reading() };
    let left = Cell::new(0);
    let result = std::thread::scope(|scope| {
        let senders: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let settings = sending(25, 3000, 0);
                    publish(&transport, &settings, NEVER).unwrap()
                })
            })
            .collect();
        let stop = || left.get() == 2;
        let result = subscriber::run(&transport, &reading, |_| None, &stop, &mut |notice| {
            if let Notice::Left(_) = notice {
                left.set(left.get() + 1);
            }
        });
        senders.into_iter().for_each(|sender| assert_eq!(sender.join().unwrap().sent, 3000));
        result.unwrap()
    });
    assert_eq!(result.streams.len(), 2);
    assert!(result.streams.iter().all(|stream| stream.figures.received == 3100));
    assert!(result.figures.is_complete());
    assert_eq!((result.figures.received, result.figures.warmup), (6200, 200));
}
