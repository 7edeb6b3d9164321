//! Parity under loss: what it costs and saves.

use crate::latency::{run, scenario};
use lanecast_protocol::MICROSECOND;
use lanecast_protocol::fec::FecSettings;
use lanecast_sim::latency::{Latencies, LatencyScenario};

/// Loss, in millionths.
const ONE_PERCENT: u32 = 10_000;

/// The same load and the same loss without parity, and with it.
fn both(without: LatencyScenario, fec: FecSettings) -> [Latencies; 2] {
    [run(&without), run(&LatencyScenario { fec: Some(fec), ..without })]
}

#[test]
fn losses_cost_neither_naks_nor_round_trips() {
    let fec = FecSettings { data: 4, parity: 1, delay: 20 * MICROSECOND };
    for (is_group, subscribers) in [(false, 1), (true, 3)] {
        let [naks, parity] = both(scenario(is_group, subscribers, ONE_PERCENT), fec);
        assert!(parity.naks * 10 <= naks.naks, "{} of {}", parity.naks, naks.naks);
        assert!(parity.repairs * 10 <= naks.repairs, "{} of {}", parity.repairs, naks.repairs);
        let p99 = [&naks, &parity].map(|waits| waits.percentile(0.99));
        assert!(2 * p99[1] <= p99[0], "{p99:?} ns");
    }
}

#[test]
fn one_answer_repairs_the_losses_of_many() {
    // Without parity that comes unasked.
    let fec = FecSettings { data: 16, parity: 0, delay: 20 * MICROSECOND };
    let busy = LatencyScenario { interval: MICROSECOND, ..scenario(true, 8, ONE_PERCENT) };
    let [naks, parity] = both(busy, fec);
    let answers = parity.repairs + parity.parity;
    assert!(answers * 10 <= naks.repairs * 9, "{answers} answers for {}", naks.repairs);
    assert!(parity.parity > parity.repairs, "{} of {answers}", parity.parity);
}
