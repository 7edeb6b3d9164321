//! Interrupts of each CPU.

use super::finding::{Check, Finding};
use super::gaps::CpuGaps;
use super::topology::Proposal;
use super::words::joined;
use crate::root::Root;

const INTERRUPTS: Check = Check::new("interrupts", "interrupts");
/// Interrupts a second above those of the timer, which ticks up to 1,000 times.
const NOTED: f64 = 1200.0;
const DISTURBING: f64 = 3000.0;

/// The counters of `/proc/interrupts` at one moment.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Interrupts {
    cpus: Vec<usize>,
    /// The source's name, and its counts in the order of `cpus`.
    sources: Vec<(String, Vec<u64>)>,
}

impl Interrupts {
    pub(super) fn read(root: &Root) -> Option<Self> {
        Self::parse(&root.text("proc/interrupts")?)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let cpu = |word: &str| word.strip_prefix("CPU")?.parse().ok();
        let cpus: Option<Vec<usize>> = lines.next()?.split_whitespace().map(cpu).collect();
        let cpus = cpus.filter(|cpus| !cpus.is_empty())?;
        let source = |line: &str| {
            let (label, rest) = line.split_once(':')?;
            let counts: Vec<u64> = rest
                .split_whitespace()
                .map_while(|word| word.parse().ok())
                .take(cpus.len())
                .collect();
            // Lines with one number, such as errors, belong to no CPU.
            let is_whole = counts.len() == cpus.len();
            let words: Vec<_> = rest.split_whitespace().skip(counts.len()).collect();
            let label = label.trim();
            let is_device = label.parse::<u32>().is_ok();
            let name = match (is_device, words.last()) {
                (true, Some(device)) => format!("{device} (IRQ {label})"),
                _ => words.join(" "),
            };
            is_whole.then_some((if name.is_empty() { label.to_owned() } else { name }, counts))
        };
        let sources = lines.filter_map(source).collect();
        Some(Self { cpus, sources })
    }

    /// Interrupts of a CPU since `before`, and their main source.
    pub(super) fn since(&self, before: &Self, cpu: usize) -> Option<(u64, Option<String>)> {
        let column = |interrupts: &Self| interrupts.cpus.iter().position(|&other| other == cpu);
        let (now, then) = (column(self)?, column(before)?);
        let grown = |(name, counts): &(String, Vec<u64>)| {
            let earlier = before.sources.iter().find(|(other, _)| other == name);
            let earlier = earlier.map_or(0, |(_, counts)| counts[then]);
            (counts[now].saturating_sub(earlier), name.clone())
        };
        let grown: Vec<_> = self.sources.iter().map(grown).collect();
        let all = grown.iter().map(|(count, _)| *count).fold(0, u64::saturating_add);
        let most = grown.into_iter().max().filter(|(count, _)| *count > 0);
        Some((all, most.map(|(_, name)| name)))
    }
}

/// Rates the interrupts of the proposed pair of CPUs.
pub(super) fn check(gaps: &[CpuGaps], proposal: Option<Proposal>) -> Finding {
    let is_judged =
        |gaps: &&CpuGaps| proposal.is_none_or(|proposal| proposal.pair().contains(&gaps.cpu));
    let counted: Vec<_> = gaps
        .iter()
        .filter(is_judged)
        .filter_map(|gaps| Some((gaps, gaps.interrupts_per_second?)))
        .collect();
    let Some(&(worst, most)) = counted.iter().max_by(|a, b| a.1.total_cmp(&b.1)) else {
        return INTERRUPTS.unavailable();
    };
    let each = counted.iter().map(|(gaps, rate)| format!("CPU {}: {rate:.0}/s", gaps.cpu));
    let mostly = worst.interrupts_mostly.as_deref().unwrap_or("nothing");
    let found = format!("{}, mostly {mostly}", joined(each));
    if most < NOTED {
        return INTERRUPTS.good(found);
    }
    let finding =
        if most < DISTURBING { INTERRUPTS.note(found) } else { INTERRUPTS.disturbs(found) };
    let finding = finding.effect("each takes the CPU for some microseconds");
    let number = mostly.rsplit_once("(IRQ ").and_then(|(_, rest)| rest.strip_suffix(')'));
    let rest = proposal.and_then(|proposal| proposal.rest_cpu);
    match (number, rest) {
        (Some(number), Some(rest)) => {
            finding.mend(format!("echo {rest} | sudo tee /proc/irq/{number}/smp_affinity_list"))
        }
        _ => {
            finding.mend("keep devices and busy programs off these CPUs; nohz_full stops the timer")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::State;
    use super::*;

    const BEFORE: &str = "           CPU0       CPU2\n 24:   5   7  PCI-MSI 1-edge   eth0-rx\n\
        LOC:   100   200   Local timer interrupts\nERR:    3\n";
    const AFTER: &str = "           CPU0       CPU2\n 24:   5   9007  PCI-MSI 1-edge   eth0-rx\n\
        LOC:   350   400   Local timer interrupts\nERR:    4\n";

    fn proposal(rest_cpu: Option<usize>) -> Option<Proposal> {
        Some(Proposal { publisher_cpu: 0, subscriber_cpu: 2, rest_cpu })
    }

    fn gaps(cpu: usize, rate: Option<f64>, mostly: Option<&str>) -> CpuGaps {
        let mut gaps = CpuGaps::new(cpu, 1, Vec::new());
        gaps.interrupts_per_second = rate;
        gaps.interrupts_mostly = mostly.map(str::to_owned);
        gaps
    }

    #[test]
    fn columns_belong_to_cpus_by_name() {
        let [before, after] = [BEFORE, AFTER].map(|text| Interrupts::parse(text).unwrap());
        let timer = Some("Local timer interrupts".to_owned());
        assert_eq!(after.since(&before, 0), Some((250, timer)));
        assert_eq!(after.since(&before, 2), Some((9200, Some("eth0-rx (IRQ 24)".to_owned()))));
        assert_eq!(after.since(&before, 1), None);
        assert_eq!(after.since(&after, 0), Some((0, None)));
    }

    #[test]
    fn nonsense_is_nothing() {
        for text in ["", "CPU", "x y\n", "CPU0 CPUx\n1: 2 3\n"] {
            assert_eq!(Interrupts::parse(text), None, "{text}");
        }
        assert!(Interrupts::parse("CPU0\n24: x\n:\n::: 1 2 3\n").is_some());
    }

    #[test]
    fn a_busy_device_is_sent_to_another_cpu() {
        let rates =
            [gaps(0, Some(250.0), Some("timer")), gaps(2, Some(9200.0), Some("eth0 (IRQ 24)"))];
        let found = check(&rates, proposal(Some(5)));
        assert_eq!(found.state, State::Disturbs);
        assert_eq!(found.mend.unwrap(), "echo 5 | sudo tee /proc/irq/24/smp_affinity_list");
        assert!(check(&rates, proposal(None)).mend.unwrap().contains("nohz_full"));
        assert_eq!(check(&rates[..1], proposal(None)).state, State::Good);
        assert_eq!(check(&[gaps(0, None, None)], proposal(None)).state, State::Unknown);
        let note = [gaps(0, Some(2000.0), Some("timer"))];
        assert_eq!(check(&note, proposal(None)).state, State::Note);
    }
}
