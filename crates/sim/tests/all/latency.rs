//! Latencies under loss, and with suspended actors.

use lanecast_protocol::{MICROSECOND, MILLISECOND, Nanos};
use lanecast_sim::latency::{BEGIN, Latencies, LatencyScenario, PollingSchedule};
use lanecast_sim::link::{LinkConditions, Loss};

/// 50,000 messages per second between two adjacent hosts, which lose some of the received
/// datagrams, in millionths.
pub(crate) fn scenario(is_group: bool, subscribers: usize, loss: u32) -> LatencyScenario {
    let conditions = LinkConditions {
        delay: 4 * MICROSECOND,
        jitter: 2 * MICROSECOND,
        loss: Loss::Random(loss),
        ..LinkConditions::CALM
    };
    LatencyScenario {
        seed: 1,
        is_group,
        subscribers,
        fec: None,
        conditions,
        messages: 25_000,
        interval: 20 * MICROSECOND,
        uncounted: 0,
        polling: PollingSchedule::ATTENTIVE,
    }
}

/// Runs the scenario; all counted messages are delivered.
pub(crate) fn run(scenario: &LatencyScenario) -> Latencies {
    let waits = scenario.run();
    let [p50, p99, p999, most] = [0.5, 0.99, 0.999, 1.0].map(|share| waits.percentile(share));
    let Latencies { repairs, parity, naks, lost, .. } = waits;
    let LatencyScenario { is_group, subscribers, fec, .. } = scenario;
    println!(
        "to {subscribers}, group {is_group}, {:?}, {fec:?}: p50 {p50} ns, p99 {p99}, \
         p99.9 {p999}, at most {most}; {repairs} repairs, {naks} NAKs, {parity} parity",
        scenario.conditions.loss
    );
    let all = (scenario.messages - scenario.uncounted) as usize * scenario.subscribers;
    assert_eq!((waits.delays.len(), lost), (all, 0), "{scenario:?}");
    waits
}

/// Loss, in millionths, and limits of the 99 % and 99.9 % latencies under it.
const PRICES: [(u32, Nanos, Nanos); 2] =
    [(10_000, 60 * MICROSECOND, 120 * MICROSECOND), (50_000, 120 * MICROSECOND, 300 * MICROSECOND)];

fn check_prices(change: impl Fn(LatencyScenario) -> LatencyScenario) {
    for (is_group, subscribers) in [(false, 1), (false, 3), (true, 1), (true, 3), (true, 24)] {
        for (loss, p99, p999) in PRICES {
            let scenario = change(scenario(is_group, subscribers, loss));
            let waits = run(&scenario);
            let took = (waits.percentile(0.99), waits.percentile(0.999));
            assert!(took.0 <= p99 && took.1 <= p999, "{took:?} ns: {scenario:?}");
        }
    }
}

#[test]
fn losses_cost_little_time() {
    check_prices(|scenario| scenario);
}

#[test]
fn round_trips_of_who_stood_still_are_forgotten() {
    let (awake, asleep) = (MILLISECOND, 30 * MILLISECOND);
    let polling = PollingSchedule { awake, asleep, until: BEGIN, ..PollingSchedule::ATTENTIVE };
    check_prices(|scenario| LatencyScenario { polling, uncounted: 5_000, ..scenario });
}

#[test]
fn a_rescheduled_thread_continues_at_once() {
    for (awake, asleep) in [(1, 100), (5, 300), (1, 700)] {
        for is_group in [false, true] {
            let polling = PollingSchedule {
                awake: awake * MILLISECOND,
                asleep: asleep * MILLISECOND,
                until: BEGIN + 2_000 * MILLISECOND,
                room: 200,
                ..PollingSchedule::ATTENTIVE
            };
            let interval = 100 * MICROSECOND;
            // Everything sent or lost until then is delivered a tenth of a second later.
            let scenario = LatencyScenario {
                interval,
                polling,
                uncounted: 21_000,
                ..scenario(is_group, 1, 0)
            };
            let most = run(&scenario).percentile(1.0);
            assert!(most < MILLISECOND, "{most} ns: {scenario:?}");
        }
    }
}
