//! Ping and pong against each other, over a transport in memory.

use super::memory::{Fate, Memory};
use super::{NEVER, NOWHERE, arrives, setup};
use lanecast_measure::LinearShape;
use lanecast_measure::ping::{
    Hooks, Notice, PingError, PingResult, PongHooks, PongResult, PongSettings, Settings, Threads,
    Topics, ping, pong,
};
use lanecast_transport::Transport;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

pub(crate) fn pinging(size: usize, messages: u64, threads: Threads) -> Settings {
    Settings {
        topics: Topics::default(),
        size,
        messages,
        rate: 0,
        warmup: 50,
        warmup_rate: 0,
        histogram: LinearShape::new(10, 1000).unwrap(),
        generic: false,
        threads,
        sender: NOWHERE,
        receiver: NOWHERE,
        linger: Duration::from_secs(10),
        polls_publisher: false,
        setup: setup(),
    }
}

fn ponging(generic: bool) -> PongSettings {
    let linger = Duration::from_secs(10);
    PongSettings {
        topics: Topics::default(),
        generic,
        place: NOWHERE,
        once: true,
        linger,
        polls_publisher: false,
        setup: setup(),
    }
}

/// Runs a ping; `measuring` is raised when it begins to measure.
fn start(
    transport: &Memory,
    settings: &Settings,
    stop: &dyn Fn() -> bool,
    measuring: &AtomicBool,
) -> Result<PingResult, PingError> {
    let told = Mutex::new(Vec::new());
    let notify = |notice: Notice<'_>| {
        let name = match notice {
            Notice::Joined(_) => "joined",
            Notice::WarmingUp => "warming up",
            Notice::Measuring(_) => {
                measuring.store(true, Ordering::Relaxed);
                "measuring"
            }
            _ => return,
        };
        told.lock().unwrap().push(name);
    };
    let mut announced = 0;
    let mut announce = |result: &PingResult| {
        assert_eq!(result.drained, None, "told before it lingers");
        announced += 1;
    };
    let hooks = Hooks { stop, recovered: |_| None, notify: &notify, announce: &mut announce };
    let result = ping(transport, settings, hooks)?;
    assert_eq!(announced, 1);
    assert_eq!(told.into_inner().unwrap(), ["joined", "warming up", "measuring"]);
    Ok(result)
}

fn answer(transport: &Memory, settings: &PongSettings, stop: &dyn Fn() -> bool) -> PongResult {
    let hooks = PongHooks { stop, recovered: |_| Some(0), notify: &mut |_| {} };
    pong(transport, settings, hooks).unwrap()
}

/// Runs a ping, and a pong that ends once the ping has left.
pub(crate) fn run(transport: &Memory, settings: &Settings) -> (PingResult, PongResult) {
    std::thread::scope(|scope| {
        let answering = scope.spawn(|| answer(transport, &ponging(settings.generic), NEVER));
        let pinged = start(transport, settings, NEVER, &AtomicBool::default());
        (pinged.unwrap(), answering.join().unwrap())
    })
}

#[test]
fn every_message_comes_back_and_is_timed() {
    for threads in [Threads::One, Threads::Two] {
        for (size, generic) in [(16, false), (24, true), (1500, false)] {
            let settings = Settings { generic, ..pinging(size, 1000, threads) };
            let transport = Memory::new(64, arrives);
            let (pinged, ponged) = run(&transport, &settings);
            assert_eq!(transport.copied(), if generic { 2 * 1050 } else { 0 }, "there and back");
            assert!(pinged.is_complete() && !pinged.interrupted, "{pinged:?}");
            assert_eq!((pinged.sent, pinged.warmup, pinged.traffic.received), (1000, 50, 1050));
            assert_eq!((pinged.pong_left, pinged.drained), (None, Some(true)));
            assert_eq!(pinged.linear.samples, 1000, "the warm-up is not recorded");
            let latency = pinged.latency.unwrap();
            assert_eq!((latency.actual.samples, latency.intended.samples), (1000, 1000));
            assert!(latency.intended.mean_ns >= latency.actual.mean_ns);
            assert!(latency.actual.min_ns > 0 && pinged.linear.min_ns == latency.actual.min_ns);
            assert!((1..=1050).contains(&pinged.most_in_flight), "{}", pinged.most_in_flight);
            assert_eq!(pinged.receiver.is_some(), threads == Threads::Two);
            assert!(ponged.is_complete());
            assert_eq!((ponged.answered, ponged.traffic.recovered), (1050, Some(0)));
        }
    }
}

/// A publisher whose messages stores keep waits once for its subscriber's stores: at the first
/// message, which is measured, that would count as a round trip.
#[test]
fn a_pong_is_ready_before_the_first_message() {
    for generic in [false, true] {
        let (transport, is_over) = (Memory::new(64, arrives), AtomicBool::default());
        let stop = || is_over.load(Ordering::Relaxed);
        let is_ready = std::thread::scope(|scope| {
            scope.spawn(|| answer(&transport, &ponging(generic), &stop));
            let topics = Topics::default();
            let _subscriber = transport.subscriber(&[&topics.pong]).unwrap();
            let is_ready = transport.settles(&topics.pong, Duration::from_secs(20));
            is_over.store(true, Ordering::Relaxed);
            is_ready
        });
        assert!(is_ready);
    }
}

#[test]
fn the_schedule_is_kept_and_a_full_window_waited_out() {
    for threads in [Threads::One, Threads::Two] {
        let settings = Settings { rate: 20_000, ..pinging(24, 1000, threads) };
        let (pinged, _) = run(&Memory::new(10_000, arrives), &settings);
        assert!(pinged.duration_ns >= 49_900_000, "1000 at 20 000/s: {}", pinged.duration_ns);
        assert_eq!(pinged.lateness.map(|lateness| lateness.samples), Some(1000));

        let (pinged, ponged) = run(&Memory::new(2, arrives), &pinging(24, 1000, threads));
        assert!(pinged.back_pressured > 0, "two places are too few to send flat out");
        assert!(pinged.is_complete() && ponged.is_complete(), "{pinged:?}");
    }
}

#[test]
fn lost_and_repeated_messages_are_found_in_both_directions() {
    fn fate(number: u64) -> Fate {
        match number {
            60 => Fate::IsLost,
            70 => Fate::Vanishes,
            80 => Fate::ArrivesTwice,
            _ => Fate::Arrives,
        }
    }
    for threads in [Threads::One, Threads::Two] {
        let settings = Settings { linger: Duration::from_millis(50), ..pinging(24, 200, threads) };
        let (pinged, ponged) = run(&Memory::new(1000, fate), &settings);
        // There: two of 250 are lost, one comes twice. Back: the same of what is left.
        assert_eq!((ponged.traffic.received, ponged.traffic.reported_lost), (249, 1));
        assert_eq!((pinged.traffic.received, pinged.traffic.reported_lost), (248, 1));
        assert_eq!(pinged.traffic.duplicated, 2);
        assert_eq!(pinged.linear.samples, 248 - 50 - 2, "repeated ones have no round trip");
        assert!(!pinged.is_complete() && !ponged.is_complete());
    }
}

#[test]
fn a_pong_that_leaves_ends_the_run() {
    for threads in [Threads::One, Threads::Two] {
        let transport = Memory::new(10_000, arrives);
        let settings = Settings { rate: 1000, warmup: 0, ..pinging(24, 1_000_000, threads) };
        let measuring = AtomicBool::default();
        let stop = || measuring.load(Ordering::Relaxed);
        let pinged = std::thread::scope(|scope| {
            scope.spawn(|| answer(&transport, &ponging(false), &stop));
            start(&transport, &settings, NEVER, &measuring).unwrap()
        });
        assert!(pinged.interrupted && pinged.sent < 1_000_000, "{pinged:?}");
        assert_eq!(pinged.pong_left, Some("closed"));
    }
}

#[test]
fn settings_that_cannot_work_are_refused() {
    let transport = Memory::new(64, arrives);
    let off = AtomicBool::default();
    let refused = |settings| start(&transport, &settings, NEVER, &off).unwrap_err().to_string();
    assert!(refused(pinging(15, 1, Threads::One)).contains("take -m 16 or more"));
    assert!(refused(pinging(16, 0, Threads::One)).contains("take -n 1 or more"));
    assert!(refused(pinging(4097, 1, Threads::One)).contains("at most 4096 bytes"));
    for threads in [Threads::One, Threads::Two] {
        let error = start(&transport, &pinging(16, 1, threads), &|| true, &off).unwrap_err();
        assert!(matches!(error, PingError::NoSubscriber), "{error:?}");
    }
}
