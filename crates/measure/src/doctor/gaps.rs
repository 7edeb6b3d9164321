//! Gaps of threads that read the clock back to back, two CPUs at a time, as a publisher and a
//! subscriber would. The expected noise follows from these gaps.

use super::finding::{Check, Finding};
use super::interrupt_counters::Interrupts;
use super::topology::Proposal;
use super::words::{percent, time};
use crate::core_to_core::pinned;
use crate::root::Root;
use lanecast_base::clock::Clock;
use serde::Serialize;
use std::time::Duration;

const GAPS: Check = Check::new("interruptions", "interruptions");
/// Shorter gaps are not counted: a reading of the clock can take that long.
const LONG_NS: u64 = 1000;
/// A watch ends after this number of gaps.
const GAPS_MAX: usize = 1 << 16;
/// Interruptions of this share of the time, or with this longest gap, disturb measurements.
const DISTURBING_SHARE: f64 = 0.01;
const DISTURBING_NS: u64 = 500_000;
/// Interruptions with a shorter longest gap are harmless.
const SHORT_NS: u64 = 20_000;

/// Gaps of a spinning thread that had a CPU to itself.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CpuGaps {
    /// The CPU.
    pub cpu: usize,
    /// Duration of the watch.
    pub duration_ns: u64,
    /// Gaps of more than a microsecond.
    pub long_gaps: u64,
    /// The longest gap.
    pub longest_gap_ns: u64,
    /// The time in long gaps, as a share of all.
    pub lost_share: f64,
    /// Interrupts of that CPU, per second of the watch.
    pub interrupts_per_second: Option<f64>,
    /// The source of most of them.
    pub interrupts_mostly: Option<String>,
    /// The long gaps.
    #[serde(skip)]
    gaps: Vec<u64>,
}

impl CpuGaps {
    pub(super) fn new(cpu: usize, duration_ns: u64, gaps: Vec<u64>) -> Self {
        let lost = gaps.iter().copied().fold(0, u64::saturating_add);
        Self {
            cpu,
            duration_ns,
            long_gaps: gaps.len() as u64,
            longest_gap_ns: gaps.iter().copied().max().unwrap_or(0),
            lost_share: lost as f64 / duration_ns.max(1) as f64,
            interrupts_per_second: None,
            interrupts_mostly: None,
            gaps,
        }
    }
}

/// Watches one or two CPUs for `length`; skips CPUs that cannot be used.
pub(super) fn watch(root: &Root, cpus: &[usize], length: Duration) -> Vec<CpuGaps> {
    let clock = Clock::host();
    let (before, since_ticks) = (Interrupts::read(root), clock.ticks());
    let mut found: Vec<CpuGaps> = std::thread::scope(|scope| {
        let watches: Vec<_> = cpus
            .iter()
            .map(|&cpu| pinned(scope, cpu, move || watch_one(cpu, clock, length)))
            .collect();
        watches.into_iter().filter_map(|watch| watch?.join().ok()?).collect()
    });
    if let (Some(before), Some(after)) = (before, Interrupts::read(root)) {
        // A watch with very many gaps ends early.
        let watched_ns = clock.ns(clock.ticks().saturating_sub(since_ticks));
        let seconds = (watched_ns as f64 / 1e9).max(1e-3);
        for gaps in &mut found {
            let since = after.since(&before, gaps.cpu);
            gaps.interrupts_per_second = since.as_ref().map(|(all, _)| *all as f64 / seconds);
            gaps.interrupts_mostly = since.and_then(|(_, mostly)| mostly);
        }
    }
    found
}

fn watch_one(cpu: usize, clock: Clock, length: Duration) -> CpuGaps {
    // Written once, so that recording meets no page fault.
    let mut gaps = vec![1; GAPS_MAX];
    gaps.clear();
    let long = clock.from_ns(LONG_NS);
    let length = clock.from_ns(u64::try_from(length.as_nanos()).unwrap_or(u64::MAX));
    let start = clock.ticks();
    let mut last = start;
    while last.saturating_sub(start) < length && gaps.len() < GAPS_MAX {
        let now = clock.ticks();
        let gap = now.saturating_sub(last);
        if gap > long {
            gaps.push(clock.ns(gap));
        }
        last = now;
    }
    CpuGaps::new(cpu, clock.ns(last.saturating_sub(start)), gaps)
}

/// Delay that this share of messages exceeds, if each can fall into any gap of either side at any
/// moment; 0 if fewer messages meet a gap.
///
/// A message that comes `t` after the start of a gap of `g` waits `g − t`: of all moments, a
/// share of `(g − x) / duration` waits for more than `x`.
pub(super) fn noise_ns(sides: &[&CpuGaps], share: f64) -> u64 {
    let exceeding = |delay: u64| {
        let share = |side: &&CpuGaps| {
            let late: f64 = side.gaps.iter().map(|gap| gap.saturating_sub(delay) as f64).sum();
            late / side.duration_ns.max(1) as f64
        };
        sides.iter().map(share).sum::<f64>()
    };
    let (mut low, mut high) = (0, sides.iter().map(|side| side.longest_gap_ns).max().unwrap_or(0));
    while low < high {
        let middle = low + (high - low) / 2;
        if exceeding(middle) > share { low = middle + 1 } else { high = middle }
    }
    low
}

/// Rates the gaps of the proposed pair of CPUs.
pub(super) fn check(gaps: &[CpuGaps], proposal: Option<Proposal>) -> Finding {
    let is_judged =
        |gaps: &&CpuGaps| proposal.is_none_or(|proposal| proposal.pair().contains(&gaps.cpu));
    let Some(worst) = gaps.iter().filter(is_judged).max_by_key(|gaps| gaps.longest_gap_ns) else {
        return GAPS.unknown("no CPU could be watched");
    };
    let lost = gaps.iter().filter(is_judged).map(|gaps| gaps.lost_share).fold(0.0, f64::max);
    let found = format!(
        "longest {} on CPU {}, {} of the time lost",
        time(worst.longest_gap_ns as f64),
        worst.cpu,
        percent(lost)
    );
    if worst.longest_gap_ns < SHORT_NS {
        return GAPS.good(found);
    }
    let disturbs = worst.longest_gap_ns >= DISTURBING_NS || lost >= DISTURBING_SHARE;
    let finding = if disturbs { GAPS.disturbs(found) } else { GAPS.note(found) };
    let calm = gaps
        .iter()
        .min_by_key(|gaps| gaps.longest_gap_ns)
        .filter(|calm| calm.longest_gap_ns < worst.longest_gap_ns / 4 && gaps.len() > 2);
    let finding =
        finding.effect("a spinning thread stands still for so long, and its messages wait");
    match calm {
        Some(calm) => finding.mend(format!(
            "CPU {} is quieter (longest {}): -a {}",
            calm.cpu,
            time(calm.longest_gap_ns as f64),
            calm.cpu
        )),
        None => {
            finding.mend("see background load, priority and isolated CPUs; judge by p50 and p90")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::State;
    use super::*;
    use proptest::prelude::*;

    const SECOND: u64 = 1_000_000_000;

    fn side(cpu: usize, gaps: &[u64]) -> CpuGaps {
        CpuGaps::new(cpu, SECOND, gaps.to_vec())
    }

    fn proposal() -> Option<Proposal> {
        Some(Proposal { publisher_cpu: 1, subscriber_cpu: 0, rest_cpu: None })
    }

    #[test]
    fn noise_follows_from_how_often_messages_meet_gaps() {
        let quiet = side(0, &[]);
        assert_eq!(noise_ns(&[&quiet, &quiet], 0.001), 0);
        // One gap of 2 ms a second: half of it is longer than a thousandth of the second.
        let gap = side(1, &[2_000_000]);
        assert_eq!(noise_ns(&[&quiet, &gap], 0.001), 1_000_000);
        assert_eq!(noise_ns(&[&gap, &gap], 0.001), 1_500_000);
        // 250 ticks a second of 3 us are 0.75 ms in all: below a thousandth.
        let ticks = side(1, &[3000; 250]);
        assert_eq!(noise_ns(&[&ticks], 0.001), 0);
        assert_eq!(noise_ns(&[&ticks], 0.0001), 2600);
        assert_eq!(noise_ns(&[], 0.001), 0);
    }

    proptest! {
        #[test]
        fn noise_is_the_least_delay_that_few_exceed(
            gaps in prop::collection::vec(1000..5_000_000u64, 0..50),
        ) {
            let side = side(0, &gaps);
            let exceeding = |delay: u64| {
                gaps.iter().map(|gap| gap.saturating_sub(delay)).sum::<u64>()
            };
            let noise = noise_ns(&[&side], 0.001);
            prop_assert!(exceeding(noise) <= SECOND / 1000);
            prop_assert!(noise == 0 || exceeding(noise - 1) > SECOND / 1000);
        }
    }

    #[test]
    fn gaps_are_judged_by_length_and_share() {
        let state = |gaps: &[u64]| check(&[side(0, gaps), side(1, &[])], proposal()).state;
        assert_eq!(state(&[]), State::Good);
        assert_eq!(state(&[19_000; 20]), State::Good);
        assert_eq!(state(&[50_000]), State::Note);
        assert_eq!(state(&[50_000; 300]), State::Disturbs);
        assert_eq!(state(&[4_000_000]), State::Disturbs);
        assert_eq!(check(&[], proposal()).state, State::Unknown);
    }

    #[test]
    fn a_quieter_cpu_is_proposed_and_others_are_not_judged() {
        let gaps =
            [side(0, &[90_000]), side(1, &[2_000_000]), side(2, &[3000]), side(3, &[9_000_000])];
        let found = check(&gaps, proposal());
        assert!(found.found.contains("CPU 1"), "{found:?}");
        assert!(found.mend.unwrap().contains("-a 2"));
    }

    #[test]
    fn this_machine_s_cpus_can_be_watched() {
        let cpu = lanecast_os::affinity::allowed().unwrap()[0];
        let length = Duration::from_millis(5);
        let root = Root::new(std::path::Path::new("/"));
        let found = watch(&root, &[cpu, 99_999], length);
        assert_eq!((found.len(), found[0].cpu), (1, cpu), "the other one is not there");
        assert!(found[0].duration_ns >= 4_900_000 || found[0].long_gaps as usize == GAPS_MAX);
        assert!((0.0..=1.0).contains(&found[0].lost_share));
    }
}
