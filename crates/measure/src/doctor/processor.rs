//! The processor: number of CPUs, cores, frequency, idle states.

use super::finding::{Check, Finding};
use super::topology::{Proposal, Topology, list};
use super::words::{count, joined, time};
use crate::root::Root;

const CPUS: &str = "sys/devices/system/cpu";
const COUNT: Check = Check::new("cpus", "CPUs");
const THREADS: Check = Check::new("hyper-threads", "hyper-threads");
const GOVERNOR: Check = Check::new("governor", "frequency governor");
const BOOST: Check = Check::new("boost", "frequency boost");
const IDLE: Check = Check::new("idle-states", "idle states");
const ISOLATED: Check = Check::new("isolated-cpus", "isolated CPUs");
const VIRTUAL: Check = Check::new("virtual-machine", "virtual machine");

/// CPUs for a publisher, a subscriber, and two for other programs.
const CPUS_WANTED: usize = 4;
/// Idle states with at most this wake-up time are harmless.
const LIGHT_SLEEP_US: u64 = 10;

/// Findings about the CPUs that need no measurement.
pub(super) fn check(
    root: &Root,
    topology: &Topology,
    proposal: Option<Proposal>,
    hypervisor: Option<&str>,
) -> Vec<Finding> {
    vec![
        check_count(topology),
        check_threads(topology, proposal),
        check_governor(root, topology, hypervisor),
        check_boost(root, hypervisor),
        check_idle(root),
        check_isolated(root, topology, proposal),
        check_virtual(root, hypervisor),
    ]
}

fn check_count(topology: &Topology) -> Finding {
    let (usable, Some(online)) = (topology.cpus.len(), topology.online) else {
        return COUNT.unavailable();
    };
    let found = if usable == online {
        format!("{online}")
    } else {
        format!("{usable} of {online} given to this process")
    };
    match usable {
        0 | 1 => COUNT
            .disturbs(found)
            .effect("publisher and subscriber take turns on one CPU")
            .mend("use a machine with 4 CPUs and more"),
        _ if usable < CPUS_WANTED => COUNT
            .note(found)
            .effect("a spinning pair leaves few CPUs: other programs interrupt it")
            .mend("use a machine with 4 CPUs and more, or keep this one quiet"),
        _ => COUNT.good(found),
    }
}

fn check_threads(topology: &Topology, proposal: Option<Proposal>) -> Finding {
    let Some(most) = topology.cpus.iter().map(|cpu| cpu.siblings.len()).max() else {
        return THREADS.unavailable();
    };
    if most <= 1 {
        return THREADS.good("one thread per core");
    }
    const MEND: &str = "echo off | sudo tee /sys/devices/system/cpu/smt/control";
    let found = format!("{most} per core");
    let shares_core = proposal.is_some_and(|proposal| {
        let publisher = topology.cpu(proposal.publisher_cpu);
        publisher.is_some_and(|cpu| cpu.siblings.contains(&proposal.subscriber_cpu))
    });
    if shares_core {
        return THREADS
            .disturbs(found)
            .effect("publisher and subscriber share a core and slow each other down")
            .mend("use a machine with two cores and more");
    }
    THREADS
        .note(found)
        .effect("whatever runs on the other thread of a measured core slows it down")
        .mend(MEND)
}

fn check_governor(root: &Root, topology: &Topology, hypervisor: Option<&str>) -> Finding {
    let governor = |cpu: usize| root.text(&format!("{CPUS}/cpu{cpu}/cpufreq/scaling_governor"));
    let mut governors: Vec<_> =
        topology.cpus.iter().filter_map(|cpu| governor(cpu.number)).collect();
    governors.sort_unstable();
    governors.dedup();
    if governors.is_empty() {
        return match hypervisor {
            Some(_) => GOVERNOR.unknown("the host decides; not visible here"),
            None => GOVERNOR.unavailable(),
        };
    }
    let found = joined(&governors);
    if governors.iter().all(|governor| governor == "performance") {
        return GOVERNOR.good(found);
    }
    GOVERNOR
        .disturbs(found)
        .effect("the frequency follows the load: short runs read slow, and runs differ")
        .mend("echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor")
}

fn check_boost(root: &Root, hypervisor: Option<&str>) -> Finding {
    let no_turbo = format!("{CPUS}/intel_pstate/no_turbo");
    let boost = format!("{CPUS}/cpufreq/boost");
    let (is_on, mend) = match (root.value::<u8>(&no_turbo), root.value::<u8>(&boost)) {
        (Some(off), _) => (off == 0, format!("echo 1 | sudo tee /{no_turbo}")),
        (None, Some(on)) => (on != 0, format!("echo 0 | sudo tee /{boost}")),
        (None, None) if hypervisor.is_some() => {
            return BOOST.unknown("the host decides; not visible here");
        }
        (None, None) => return BOOST.unavailable(),
    };
    if !is_on {
        return BOOST.good("off");
    }
    BOOST
        .note("on")
        .effect("the frequency depends on heat and on what other cores do: runs differ")
        .mend(mend)
}

fn check_idle(root: &Root) -> Finding {
    let driver = root.text(&format!("{CPUS}/cpuidle/current_driver"));
    let base = format!("{CPUS}/cpu0/cpuidle");
    let state = |name: String| {
        let file = |file: &str| format!("{base}/{name}/{file}");
        let disabled = root.value::<u8>(&file("disable")).unwrap_or(0) != 0;
        let latency_us: u64 = root.value(&file("latency"))?;
        (!disabled).then(|| (latency_us, root.text(&file("name")).unwrap_or(name.clone())))
    };
    let deepest = root.names(&base).into_iter().filter_map(state).max();
    let Some((latency_us, name)) = deepest else {
        return match driver.as_deref() {
            Some("none") => IDLE.good("no driver"),
            _ => IDLE.unavailable(),
        };
    };
    let driver = driver.unwrap_or_else(|| "no driver named".to_owned());
    let found = format!("{driver}, down to {name} ({latency_us} us to leave)");
    if latency_us <= LIGHT_SLEEP_US {
        return IDLE.good(found);
    }
    IDLE.note(found)
        .effect(format!(
            "a thread that sleeps wakes up to {latency_us} us later; a spinning one does not"
        ))
        .mend(format!(
            "sudo cpupower idle-set -D {LIGHT_SLEEP_US} (until the next start), or compare \
             --wait spin"
        ))
}

fn check_isolated(root: &Root, topology: &Topology, proposal: Option<Proposal>) -> Finding {
    let (Some(_), Some(proposal)) = (topology.online, proposal) else {
        return ISOLATED.unknown("fewer than two CPUs are known");
    };
    let command_line = root.text("proc/cmdline").unwrap_or_default();
    let quiet = root.list(&format!("{CPUS}/nohz_full")).unwrap_or_default();
    let pair = proposal.pair();
    let is_isolated = |cpu: usize| topology.cpu(cpu).is_some_and(|cpu| cpu.isolated);
    let all: Vec<_> =
        topology.cpus.iter().filter(|cpu| cpu.isolated).map(|cpu| cpu.number).collect();
    let missing = [
        ("isolcpus", !pair.iter().all(|&cpu| is_isolated(cpu))),
        ("nohz_full", !pair.iter().all(|cpu| quiet.contains(cpu))),
        ("rcu_nocbs", !command_line.contains("rcu_nocbs=")),
    ];
    let found = if all.is_empty() { "none".to_owned() } else { list(&all) };
    if missing.iter().all(|(_, missing)| !missing) {
        return ISOLATED.good(format!("{found}, without timer ticks"));
    }
    let finding = ISOLATED
        .note(found)
        .effect("other threads, and the timer some hundred times a second, use measured CPUs");
    if topology.cpus.len() < CPUS_WANTED {
        return finding.mend("on so few CPUs: pin (-a) and keep the machine quiet");
    }
    let mut numbers = pair;
    numbers.sort_unstable();
    let numbers = list(&numbers);
    let options: Vec<_> = missing
        .iter()
        .filter(|(_, missing)| *missing)
        .map(|(name, _)| format!("{name}={numbers}"))
        .collect();
    finding.mend(format!("kernel command line: {}", options.join(" ")))
}

fn check_virtual(root: &Root, hypervisor: Option<&str>) -> Finding {
    match hypervisor {
        Some(name) => VIRTUAL
            .note(name)
            .effect("other machines share the processor, unseen; a sleeping CPU wakes slowly")
            .mend("for figures to rely on: a machine of one's own, or dedicated CPUs"),
        None if root.text("proc/cpuinfo").is_none() => VIRTUAL.unavailable(),
        None => VIRTUAL.good("no"),
    }
}

/// Rates the round trip of waking a thread.
pub(super) fn check_wake(root: &Root, round_trip_ns: Option<f64>) -> Finding {
    const WAKE: Check = Check::new("wake-up", "wake-up across CPUs");
    const QUICK_NS: f64 = 10_000.0;
    const SLOW_NS: f64 = 60_000.0;
    /// Time an idle CPU of a virtual machine polls before it halts.
    const POLLS: &str = "sys/module/haltpoll/parameters/guest_halt_poll_ns";
    let Some(ns) = round_trip_ns else { return WAKE.unknown("could not be measured") };
    let found = format!("{} there and back", time(ns));
    if ns <= QUICK_NS {
        return WAKE.good(found);
    }
    let finding = if ns >= SLOW_NS { WAKE.disturbs(found) } else { WAKE.note(found) };
    let finding = finding
        .effect(format!("a subscriber that sleeps gets its message {} later", time(ns / 2.0)));
    match root.value(POLLS) {
        Some(0u64) => finding.mend(format!("echo 200000 | sudo tee /{POLLS}; or --wait spin")),
        _ => finding.mend("--wait spin; judge those that sleep by this figure"),
    }
}

/// Rates the round trip of a cache line between the CPUs.
pub(super) fn check_line(line_ns: Option<f64>, proposal: Option<Proposal>) -> Finding {
    const LINE: Check = Check::new("cache-line", "cache line between CPUs");
    const FAR_NS: f64 = 300.0;
    let (Some(ns), Some(proposal)) = (line_ns, proposal) else {
        return LINE.unknown("could not be measured");
    };
    let [publisher, subscriber] = proposal.pair();
    let found = format!("{} from {publisher} to {subscriber} and back", time(ns));
    if ns <= FAR_NS {
        return LINE.good(found);
    }
    LINE.note(found)
        .effect(format!("no message can be faster than {}", time(ns / 2.0)))
        .mend(format!("choose CPUs nearer to each other, of {}", count(1, "socket", "sockets")))
}

#[cfg(test)]
mod tests;
