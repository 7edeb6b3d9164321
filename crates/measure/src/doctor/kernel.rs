//! The kernel: its clock source, its features, and the cost of its calls.

use super::finding::{Check, Finding};
use super::words::{joined, time};
use crate::jitter::monotonic_cost_ns;
use crate::root::Root;
use lanecast_base::clock::{Clock, Source};
use lanecast_base::sync::AtomicU32;
use lanecast_os::{barrier, futex, udp};
use std::time::Instant;

const CLOCK: Check = Check::new("clock-source", "clock source");
const COST: Check = Check::new("clock-cost", "cost of a clock reading");
const FEATURES: Check = Check::new("kernel", "kernel");
const CALLS: Check = Check::new("system-calls", "cost of a system call");
const CLOCKS: &str = "sys/devices/system/clocksource/clocksource0";

/// Kernel features that this process can use.
#[derive(Clone, Copy, Debug)]
pub(super) struct KernelFeatures {
    /// Fences on all processors by one call.
    pub(super) membarrier: bool,
    /// Sleeping on several words.
    pub(super) futex_waitv: bool,
    /// Whether latencies are stamped with the processor's counter.
    pub(super) counter: bool,
    /// UDP segmentation offload.
    pub(super) segmentation: bool,
}

impl KernelFeatures {
    /// Tries each feature.
    pub(super) fn try_now() -> Self {
        Self {
            membarrier: barrier::register(),
            futex_waitv: futex::can_watch_several(),
            counter: Clock::host().source() == Source::Tsc,
            segmentation: udp::segmentation_works(),
        }
    }
}

/// Costs of calls, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Costs {
    pub(super) clock: f64,
    pub(super) monotonic: f64,
    pub(super) system_call: f64,
}

impl Costs {
    /// Measures each cost as a median.
    pub(super) fn measure() -> Self {
        Self {
            clock: Clock::host().cost_ns(),
            monotonic: monotonic_cost_ns(),
            system_call: system_call_ns(),
        }
    }
}

/// Cost of a system call that does nothing: waking a word without sleepers.
fn system_call_ns() -> f64 {
    const CALLS: u32 = 200;
    let word = AtomicU32::new(0);
    let mut rounds: Vec<u128> = (0..31)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..CALLS {
                futex::wake(&word, 1);
            }
            start.elapsed().as_nanos()
        })
        .collect();
    rounds.sort_unstable();
    rounds[rounds.len() / 2] as f64 / f64::from(CALLS)
}

/// Checks the clock source and the features.
pub(super) fn check(root: &Root, features: KernelFeatures) -> Vec<Finding> {
    vec![check_clock(root, features), check_features(root, features)]
}

fn check_clock(root: &Root, features: KernelFeatures) -> Finding {
    let Some(source) = root.text(&format!("{CLOCKS}/current_clocksource")) else {
        return CLOCK.unavailable();
    };
    let counted = if features.counter { "tsc" } else { "clock_gettime" };
    let found = format!("{source}; lanecast stamps with {counted}");
    // These are read without entering the kernel.
    let is_cheap = ["tsc", "arch_sys_counter", "kvm-clock"].contains(&source.as_str())
        || source.starts_with("hyperv_clocksource_tsc");
    let offered = root.text(&format!("{CLOCKS}/available_clocksource")).unwrap_or_default();
    let has_counter = offered.split_whitespace().any(|name| name == "tsc");
    if is_cheap && (features.counter || source == "arch_sys_counter") {
        return CLOCK.good(found);
    }
    let mend = if has_counter {
        format!("echo tsc | sudo tee /{CLOCKS}/current_clocksource")
    } else {
        "the kernel does not trust the counter: see dmesg | grep -i tsc, and tsc=reliable".into()
    };
    let finding = if is_cheap { CLOCK.note(found) } else { CLOCK.disturbs(found) };
    finding.effect("stamping a message costs more than carrying it").mend(mend)
}

fn check_features(root: &Root, features: KernelFeatures) -> Finding {
    let found = root.text("proc/sys/kernel/osrelease").unwrap_or_else(|| "unknown".to_owned());
    let mut effects = Vec::new();
    if !features.membarrier {
        effects.push("no membarrier: each message pays for a fence");
    }
    if !features.futex_waitv {
        effects.push("no futex_waitv: a sleeper on several streams looks every millisecond");
    }
    if effects.is_empty() {
        return FEATURES.good(format!("{found}, with membarrier and futex_waitv"));
    }
    FEATURES
        .disturbs(found)
        .effect(joined(effects))
        .mend("Linux 5.16 and later; in a container, a seccomp profile that allows both")
}

/// Rates the measured costs of calls.
pub(super) fn check_costs(root: &Root, costs: Costs) -> Vec<Finding> {
    vec![check_clock_cost(costs), check_system_call(root, costs)]
}

fn check_clock_cost(costs: Costs) -> Finding {
    const DEAR_NS: f64 = 100.0;
    let found =
        format!("{} as stamped, {} clock_gettime", time(costs.clock), time(costs.monotonic));
    if costs.clock.max(costs.monotonic) < DEAR_NS {
        return COST.good(found);
    }
    let finding = if costs.clock < DEAR_NS { COST.note(found) } else { COST.disturbs(found) };
    finding
        .effect("programs that read clock_gettime for each message measure their clock")
        .mend("see the clock source")
}

fn check_system_call(root: &Root, costs: Costs) -> Finding {
    const DEAR_NS: f64 = 500.0;
    const FOLDER: &str = "sys/devices/system/cpu/vulnerabilities";
    let is_dear = |name: &String| {
        let text = root.text(&format!("{FOLDER}/{name}")).unwrap_or_default();
        let costly = ["PTI", "Clear CPU buffers", "IBRS", "untrained return thunk"];
        text.starts_with("Mitigation") && costly.iter().any(|part| text.contains(part))
    };
    let dear: Vec<_> = root.names(FOLDER).into_iter().filter(is_dear).collect();
    let mut found = time(costs.system_call);
    if !dear.is_empty() {
        found += &format!(", with mitigations of {}", joined(&dear));
    }
    if costs.system_call < DEAR_NS {
        return CALLS.good(found);
    }
    CALLS
        .note(found)
        .effect("each sleep and each wake-up costs as much; spinning does not")
        .mend("--wait spin; on a machine that runs only trusted programs: mitigations=off")
}

#[cfg(test)]
mod tests {
    use super::super::finding::State;
    use super::*;
    use crate::root::tests::tree;

    const ALL: KernelFeatures =
        KernelFeatures { membarrier: true, futex_waitv: true, counter: true, segmentation: true };
    const SOURCE: &str = "sys/devices/system/clocksource/clocksource0/current_clocksource";
    const OFFERED: &str = "sys/devices/system/clocksource/clocksource0/available_clocksource";

    fn clock(source: &str, offered: &str, counter: bool) -> Finding {
        let tree = tree(&[(SOURCE, source), (OFFERED, offered)]);
        check_clock(&Root::new(tree.path()), KernelFeatures { counter, ..ALL })
    }

    #[test]
    fn clocks_are_judged_by_what_reading_them_takes() {
        assert_eq!(clock("tsc", "tsc hpet", true).state, State::Good);
        assert_eq!(clock("kvm-clock", "tsc kvm-clock", true).state, State::Good);
        assert_eq!(clock("kvm-clock", "kvm-clock", false).state, State::Note);
        let slow = clock("hpet", "hpet acpi_pm tsc", false);
        assert_eq!(slow.state, State::Disturbs);
        assert!(slow.mend.unwrap().starts_with("echo tsc"));
        assert!(clock("hpet", "hpet", false).mend.unwrap().contains("dmesg"));
    }

    #[test]
    fn missing_features_are_named_with_their_price() {
        let tree = tree(&[("proc/sys/kernel/osrelease", "4.18.0\n")]);
        let root = Root::new(tree.path());
        assert_eq!(check_features(&root, ALL).state, State::Good);
        let poor = check_features(&root, KernelFeatures { futex_waitv: false, ..ALL });
        assert_eq!((poor.state, poor.found.as_str()), (State::Disturbs, "4.18.0"));
        assert!(poor.effect.unwrap().contains("every millisecond"));
    }

    #[test]
    fn costs_are_judged_and_costly_mitigations_named() {
        let folder = "sys/devices/system/cpu/vulnerabilities";
        let tree = tree(&[
            (&format!("{folder}/meltdown"), "Mitigation: PTI\n"),
            (&format!("{folder}/spectre_v1"), "Mitigation: usercopy\n"),
        ]);
        let root = Root::new(tree.path());
        let cheap = Costs { clock: 16.0, monotonic: 60.0, system_call: 90.0 };
        let states = |costs| check_costs(&root, costs).into_iter().map(|f| f.state);
        assert!(states(cheap).all(|state| state == State::Good));
        let dear = Costs { clock: 16.0, monotonic: 700.0, system_call: 900.0 };
        assert!(states(dear).all(|state| state == State::Note));
        let found = check_system_call(&root, dear).found;
        assert!(found.ends_with("mitigations of meltdown"), "{found}");
        let worse = Costs { clock: 700.0, ..dear };
        assert_eq!(check_clock_cost(worse).state, State::Disturbs);
    }

    #[test]
    fn this_machine_s_calls_have_a_cost() {
        let costs = Costs::measure();
        assert!(costs.clock > 0.0 && costs.monotonic > 0.0 && costs.system_call > 1.0, "{costs:?}");
        let tree = tree(&[]);
        assert_eq!(
            check_clock(&Root::new(tree.path()), KernelFeatures::try_now()).state,
            State::Unknown
        );
    }
}
