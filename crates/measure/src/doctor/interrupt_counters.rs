//! Counters of interrupts, by source and CPU.

use crate::root::Root;

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

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "           CPU0       CPU2\n 24:   5   7  PCI-MSI 1-edge   eth0-rx\n\
        LOC:   100   200   Local timer interrupts\nERR:    3\n";
    const AFTER: &str = "           CPU0       CPU2\n 24:   5   9007  PCI-MSI 1-edge   eth0-rx\n\
        LOC:   350   400   Local timer interrupts\nERR:    4\n";

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
}
