//! Latencies under loss, and with suspended actors.

use lanecast_protocol::{MICROSECOND, MILLISECOND, Nanos};
use lanecast_sim::line::{BEGIN, Habits, Line, Waits};
use lanecast_sim::link::{Loss, Weather};

/// 50,000 messages per second between two adjacent hosts, which lose some of the received
/// datagrams, in millionths.
fn line(is_group: bool, subscribers: usize, loss: u32) -> Line {
    let weather = Weather {
        delay: 4 * MICROSECOND,
        jitter: 2 * MICROSECOND,
        loss: Loss::Random(loss),
        ..Weather::CALM
    };
    Line {
        seed: 1,
        is_group,
        subscribers,
        weather,
        messages: 25_000,
        interval: 20 * MICROSECOND,
        uncounted: 0,
        habits: Habits::ATTENTIVE,
    }
}

/// Runs the scenario; all counted messages are delivered.
fn run(line: &Line) -> Waits {
    let waits = line.run();
    let [p50, p99, p999, most] = [0.5, 0.99, 0.999, 1.0].map(|share| waits.percentile(share));
    let Waits { repairs, naks, lost, .. } = waits;
    let Line { is_group, subscribers, .. } = line;
    println!(
        "to {subscribers}, group {is_group}, {:?}: p50 {p50} ns, p99 {p99}, p99.9 {p999}, \
         at most {most}; {repairs} repairs, {naks} NAKs",
        line.weather.loss
    );
    let all = (line.messages - line.uncounted) as usize * line.subscribers;
    assert_eq!((waits.delays.len(), lost), (all, 0), "{line:?}");
    waits
}

/// Loss, in millionths, and limits of the 99 % and 99.9 % latencies under it.
const PRICES: [(u32, Nanos, Nanos); 2] =
    [(10_000, 60 * MICROSECOND, 120 * MICROSECOND), (50_000, 120 * MICROSECOND, 300 * MICROSECOND)];

fn check_prices(change: impl Fn(Line) -> Line) {
    for (is_group, subscribers) in [(false, 1), (false, 3), (true, 1), (true, 3), (true, 24)] {
        for (loss, p99, p999) in PRICES {
            let line = change(line(is_group, subscribers, loss));
            let waits = run(&line);
            let took = (waits.percentile(0.99), waits.percentile(0.999));
            assert!(took.0 <= p99 && took.1 <= p999, "{took:?} ns: {line:?}");
        }
    }
}

#[test]
fn losses_cost_little_time() {
    check_prices(|line| line);
}

#[test]
fn round_trips_of_who_stood_still_are_forgotten() {
    let (awake, asleep) = (MILLISECOND, 30 * MILLISECOND);
    let habits = Habits { awake, asleep, until: BEGIN, ..Habits::ATTENTIVE };
    check_prices(|line| Line { habits, uncounted: 5_000, ..line });
}

#[test]
fn who_gets_a_processor_again_goes_on_at_once() {
    for (awake, asleep) in [(1, 100), (5, 300), (1, 700)] {
        for is_group in [false, true] {
            let habits = Habits {
                awake: awake * MILLISECOND,
                asleep: asleep * MILLISECOND,
                until: BEGIN + 2_000 * MILLISECOND,
                room: 200,
                ..Habits::ATTENTIVE
            };
            let interval = 100 * MICROSECOND;
            // Everything sent or lost until then is delivered a tenth of a second later.
            let line = Line { interval, habits, uncounted: 21_000, ..line(is_group, 1, 0) };
            let most = run(&line).percentile(1.0);
            assert!(most < MILLISECOND, "{most} ns: {line:?}");
        }
    }
}
