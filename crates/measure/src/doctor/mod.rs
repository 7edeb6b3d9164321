//! Finds conditions of this machine that disturb measurements, measures their effect, and proposes
//! remedies.
//!
//! Most checks read `/proc` and `/sys`; some measure for a few seconds. No setting is changed.

mod control_group;
mod finding;
mod gaps;
mod interfaces;
mod interrupt_counters;
mod interrupts;
mod kernel;
mod load;
mod memory;
mod network;
mod permission;
mod processor;
mod topology;
mod words;

pub use finding::{Finding, State};
pub use gaps::CpuGaps;
pub use topology::Proposal;

use crate::baseline::Baseline;
use crate::core_to_core::{CoreToCore, Wait};
use crate::host::Host;
use crate::priority::PriorityChange;
use crate::root::Root;
use control_group::ControlGroup;
use kernel::{Costs, KernelFeatures};
use lanecast_base::Size;
use lanecast_os::DiskSpace;
use load::{Load, Snapshot};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Duration;
use topology::Topology;
use words::time;

/// Share of messages later than the reported noise: one in a thousand.
const NOISY_SHARE: f64 = 0.001;
/// Shortest watch of a CPU.
const SHORTEST_WATCH: Duration = Duration::from_millis(50);

/// Parameters of an examination.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Directory of windows.
    pub directory: PathBuf,
    /// The size of a publisher's window.
    pub window: Size,
    /// Change of the process's priority.
    pub raise: PriorityChange,
    /// Total time for measurements; none to measure nothing.
    pub time: Option<Duration>,
}

/// Result of an examination.
#[derive(Clone, Debug, Serialize)]
pub struct Examination {
    /// Findings, the worst first.
    pub findings: Vec<Finding>,
    /// Proposed CPUs; none with fewer than two CPUs.
    pub proposal: Option<Proposal>,
    /// Gaps of each CPU; empty without measurement.
    pub gaps: Vec<CpuGaps>,
    /// Speed of the machine; none without measurement.
    pub baseline: Option<Baseline>,
    /// Delay by interruptions that one message in a thousand exceeds; none without measurement.
    pub noise_p99_9_ns: Option<u64>,
    /// Summary in a sentence.
    pub verdict: String,
}

impl Examination {
    /// Whether a finding disturbs measurements.
    pub fn is_disturbed(&self) -> bool {
        self.findings.iter().any(|finding| finding.state == State::Disturbs)
    }
}

/// Examines this machine and reports each step to `progress`.
pub fn examine(settings: &Settings, progress: &mut dyn FnMut(&str)) -> Examination {
    let root = Root::new(Path::new("/"));
    progress("looking");
    let space = settings.directory.ancestors().find_map(|place| DiskSpace::at(place).ok());
    let (mut findings, proposal) = look(&root, settings, space, KernelFeatures::try_now());
    let mut found = Measured::default();
    match settings.time {
        Some(length) => {
            found = Measured::take(&root, proposal, length, progress);
            findings.append(&mut found.findings);
        }
        None => {
            findings.push(load::check_average(&root));
            let now = Snapshot::take(&root);
            findings.push(load::check_steal(&now, &now));
        }
    }
    findings.sort_by_key(|finding| finding.state);
    Examination {
        verdict: verdict(&findings, found.noise_p99_9_ns),
        findings,
        proposal,
        gaps: found.gaps,
        baseline: found.baseline,
        noise_p99_9_ns: found.noise_p99_9_ns,
    }
}

/// All findings without measurement, and the CPUs to measure on.
fn look(
    root: &Root,
    settings: &Settings,
    space: Option<DiskSpace>,
    features: KernelFeatures,
) -> (Vec<Finding>, Option<Proposal>) {
    let group = ControlGroup::read(root);
    let topology = Topology::read(root, &group);
    let proposal = topology.propose();
    let hypervisor = Host::look(root).hypervisor;
    let mut findings = processor::check(root, &topology, proposal, hypervisor.as_deref());
    findings.extend(memory::check(root, &topology));
    findings.push(memory::check_domain(root, &settings.directory, settings.window, space));
    findings.extend(permission::check(root, settings.raise));
    findings.extend(group.check(settings.window));
    findings.extend(kernel::check(root, features));
    findings.extend(network::check(root, features.segmentation));
    findings.extend(interfaces::check(root, proposal));
    (findings, proposal)
}

/// Results of measurements.
#[derive(Debug, Default)]
struct Measured {
    findings: Vec<Finding>,
    gaps: Vec<CpuGaps>,
    baseline: Option<Baseline>,
    noise_p99_9_ns: Option<u64>,
}

impl Measured {
    fn take(
        root: &Root,
        proposal: Option<Proposal>,
        length: Duration,
        progress: &mut dyn FnMut(&str),
    ) -> Self {
        progress("watching other processes");
        let start = Snapshot::take(root);
        // Asleep, so that this thread itself does not count as load.
        std::thread::sleep(length / 4);
        let load = Load::between(&start, &Snapshot::take(root), std::process::id());
        let mut findings = vec![load.check()];

        progress("timing calls");
        findings.extend(kernel::check_costs(root, Costs::measure()));
        let baseline = proposal
            .map(|proposal| Baseline::measure(proposal.publisher_cpu, proposal.subscriber_cpu));
        let line_ns = baseline.and_then(|baseline| baseline.line_ns);
        findings.push(processor::check_line(line_ns, proposal));
        findings.push(processor::check_wake(root, proposal.and_then(wake_ns)));

        let gaps = watch_all(root, proposal, length - length / 4, progress);
        findings.push(gaps::check(&gaps, proposal));
        findings.push(interrupts::check(&gaps, proposal));
        findings.push(load::check_steal(&start, &Snapshot::take(root)));
        let pair = |gaps: &&CpuGaps| proposal.is_none_or(|p| p.pair().contains(&gaps.cpu));
        let sides: Vec<_> = gaps.iter().filter(pair).collect();
        let noise = (!sides.is_empty()).then(|| gaps::noise_ns(&sides, NOISY_SHARE));
        Self { findings, gaps, baseline, noise_p99_9_ns: noise }
    }
}

/// Round-trip time of waking a thread on another CPU and being woken by it.
fn wake_ns(proposal: Proposal) -> Option<f64> {
    let patience = Duration::from_millis(100);
    let waking = CoreToCore { wait: Wait::Sleep, patience, rounds: 301, per_round: 1 };
    waking.measure(proposal.publisher_cpu, proposal.subscriber_cpu)
}

/// Watches the proposed pair for half of the time, then all other CPUs in pairs.
fn watch_all(
    root: &Root,
    proposal: Option<Proposal>,
    length: Duration,
    progress: &mut dyn FnMut(&str),
) -> Vec<CpuGaps> {
    let group = ControlGroup::read(root);
    let pair = proposal.map_or(Vec::new(), |proposal| proposal.pair().to_vec());
    let others: Vec<_> = Topology::read(root, &group)
        .cpus
        .iter()
        .map(|cpu| cpu.number)
        .filter(|cpu| !pair.contains(cpu))
        .collect();
    let rounds: Vec<_> = others.chunks(2).collect();
    let (for_pair, for_others) = match (pair.is_empty(), rounds.len()) {
        (false, 0) => (length, Duration::ZERO),
        (true, count) => (Duration::ZERO, length / u32::try_from(count).unwrap_or(1).max(1)),
        (false, count) => (length / 2, length / 2 / u32::try_from(count).unwrap_or(u32::MAX)),
    };
    let mut watch = |cpus: &[usize], length: Duration| {
        progress(&format!("watching CPU {}", topology::list(cpus)));
        gaps::watch(root, cpus, length.max(SHORTEST_WATCH))
    };
    let mut found = if pair.is_empty() { Vec::new() } else { watch(&pair, for_pair) };
    // With very many CPUs, as many as there is time for.
    let fit = (length.as_millis() / SHORTEST_WATCH.as_millis()).max(1);
    let fit = usize::try_from(fit).unwrap_or(usize::MAX);
    for cpus in rounds.into_iter().take(fit) {
        found.extend(watch(cpus, for_others));
    }
    found.sort_by_key(|gaps| gaps.cpu);
    found
}

fn verdict(findings: &[Finding], noise_ns: Option<u64>) -> String {
    let count = findings.iter().filter(|finding| finding.state == State::Disturbs).count();
    let disturbances = match count {
        0 => "nothing disturbs measurements".to_owned(),
        1 => "one thing disturbs measurements".to_owned(),
        _ => format!("{count} things disturb measurements"),
    };
    match noise_ns {
        None => format!("{disturbances}; the noise was not measured"),
        Some(0) => format!("{disturbances}; expect p99.9 without noise on this machine"),
        Some(ns) => {
            let noise = time(ns as f64);
            format!("{disturbances}; expect p99.9 noise of about {noise} on this machine")
        }
    }
}

#[cfg(test)]
mod tests;
