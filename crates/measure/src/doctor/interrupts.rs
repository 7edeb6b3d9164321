//! Interrupts of the proposed CPUs.

use super::finding::{Check, Finding};
use super::gaps::CpuGaps;
use super::topology::Proposal;
use super::words::joined;

const INTERRUPTS: Check = Check::new("interrupts", "interrupts");
/// Interrupts a second above those of the timer, which ticks up to 1,000 times.
const NOTED: f64 = 1200.0;
const DISTURBING: f64 = 3000.0;

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
