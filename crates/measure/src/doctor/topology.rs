//! CPUs, their cores and nodes, and a proposal of CPUs to measure on.

use super::control_group::ControlGroup;
use crate::root::Root;
use serde::Serialize;
use std::cmp::Reverse;
use std::path::Path;

const CPUS: &str = "sys/devices/system/cpu";
/// Among more CPUs than this, only the first are proposed.
const LOOKED_AT: usize = 256;

/// A CPU that this process can use.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cpu {
    pub(super) number: usize,
    /// The CPUs of its core, itself among them.
    pub(super) siblings: Vec<usize>,
    pub(super) node: Option<usize>,
    /// Whether the scheduler leaves it alone (`isolcpus`).
    pub(super) isolated: bool,
}

/// The CPUs that this process can use, ascending.
#[derive(Clone, Debug, Default)]
pub(super) struct Topology {
    pub(super) cpus: Vec<Cpu>,
    /// Number of CPUs online, if known.
    pub(super) online: Option<usize>,
}

/// The CPUs to measure on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Proposal {
    /// The publisher's.
    pub publisher_cpu: usize,
    /// The subscriber's.
    pub subscriber_cpu: usize,
    /// CPU for other programs; none if no CPU is left.
    pub rest_cpu: Option<usize>,
}

impl Proposal {
    /// The proposal for this host; none if there are fewer than two CPUs, or the system gives no
    /// information.
    pub fn on_this_host() -> Option<Self> {
        let root = Root::new(Path::new("/"));
        Topology::read(&root, &ControlGroup::read(&root)).propose()
    }

    pub(super) fn pair(&self) -> [usize; 2] {
        [self.publisher_cpu, self.subscriber_cpu]
    }
}

impl Topology {
    pub(super) fn read(root: &Root, group: &ControlGroup) -> Self {
        let Some(online) = root.list(&format!("{CPUS}/online")) else { return Self::default() };
        let isolated = root.list(&format!("{CPUS}/isolated")).unwrap_or_default();
        let given = |cpu: &usize| group.cpus.as_ref().is_none_or(|given| given.contains(cpu));
        let cpu = |number: usize| Cpu {
            number,
            siblings: siblings(root, number),
            node: node(root, number),
            isolated: isolated.contains(&number),
        };
        let cpus = online.iter().copied().filter(given).map(cpu).collect();
        Self { cpus, online: Some(online.len()) }
    }

    pub(super) fn cpu(&self, number: usize) -> Option<&Cpu> {
        self.cpus.iter().find(|cpu| cpu.number == number)
    }

    /// Chooses two CPUs of different cores and of one node, preferably isolated and away from CPU
    /// 0, which gets most interrupts; and another one for other programs.
    pub(super) fn propose(&self) -> Option<Proposal> {
        let cpus = &self.cpus[..self.cpus.len().min(LOOKED_AT)];
        let pairs = cpus
            .iter()
            .enumerate()
            .flat_map(|(index, first)| cpus[index + 1..].iter().map(move |second| (first, second)));
        let (first, second) = pairs.max_by_key(|(first, second)| {
            let both = [first, second];
            (
                !first.siblings.contains(&second.number),
                first.node == second.node,
                both.iter().filter(|cpu| cpu.isolated).count(),
                both.iter().filter(|cpu| !cpu.siblings.contains(&0)).count(),
                Reverse((first.number, second.number)),
            )
        })?;
        let apart = |cpu: &&Cpu| {
            let related = |other: &Cpu| other.siblings.contains(&cpu.number);
            !related(first) && !related(second)
        };
        let rest = self.cpus.iter().filter(apart).min_by_key(|cpu| (cpu.isolated, cpu.number));
        // CPU 0 is the tools' default for the subscriber.
        let (publisher, subscriber) =
            if first.number == 0 { (second, first) } else { (first, second) };
        Some(Proposal {
            publisher_cpu: publisher.number,
            subscriber_cpu: subscriber.number,
            rest_cpu: rest.map(|cpu| cpu.number),
        })
    }

    /// Number of nodes of the CPUs.
    pub(super) fn nodes(&self) -> usize {
        let mut nodes: Vec<_> = self.cpus.iter().filter_map(|cpu| cpu.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes.len()
    }
}

fn siblings(root: &Root, cpu: usize) -> Vec<usize> {
    let list = root.list(&format!("{CPUS}/cpu{cpu}/topology/thread_siblings_list"));
    let mut siblings = list.unwrap_or_default();
    if !siblings.contains(&cpu) {
        siblings.push(cpu);
    }
    siblings
}

fn node(root: &Root, cpu: usize) -> Option<usize> {
    let names = root.names(&format!("{CPUS}/cpu{cpu}"));
    names.iter().find_map(|name| name.strip_prefix("node")?.parse().ok())
}

/// Numbers as the kernel writes them: `0-3,8`.
pub(super) fn list(numbers: &[usize]) -> String {
    let mut parts: Vec<(usize, usize)> = Vec::new();
    for &number in numbers {
        match parts.last_mut() {
            Some((_, last)) if number == *last + 1 => *last = number,
            _ => parts.push((number, number)),
        }
    }
    let part = |(first, last): &(usize, usize)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    parts.iter().map(part).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::doctor) fn cpu(number: usize, siblings: &[usize], node: usize) -> Cpu {
        Cpu { number, siblings: siblings.to_vec(), node: Some(node), isolated: false }
    }

    pub(in crate::doctor) fn topology(cpus: Vec<Cpu>) -> Topology {
        Topology { online: Some(cpus.len()), cpus }
    }

    fn proposed(cpus: Vec<Cpu>) -> Option<(usize, usize, Option<usize>)> {
        let proposal = topology(cpus).propose()?;
        Some((proposal.publisher_cpu, proposal.subscriber_cpu, proposal.rest_cpu))
    }

    #[test]
    fn siblings_and_other_nodes_and_cpu_0_are_avoided() {
        assert_eq!(proposed(vec![]), None);
        assert_eq!(proposed(vec![cpu(0, &[0], 0)]), None);
        let single = |count| (0..count).map(|n| cpu(n, &[n], 0)).collect::<Vec<_>>();
        assert_eq!(proposed(single(2)), Some((1, 0, None)));
        assert_eq!(proposed(single(3)), Some((1, 2, Some(0))));
        assert_eq!(proposed(single(8)), Some((1, 2, Some(0))));
        // Two cores of two threads, numbered either way.
        let halves = |n: usize| cpu(n, &[n % 2, n % 2 + 2], 0);
        assert_eq!(proposed((0..4).map(halves).collect()), Some((1, 0, None)));
        let nodes = (0..6).map(|n| cpu(n, &[n], n % 2)).collect();
        assert_eq!(proposed(nodes), Some((1, 3, Some(0))));
        // With two threads in all there is no better pair.
        assert_eq!(proposed(vec![cpu(0, &[0, 1], 0), cpu(1, &[0, 1], 0)]), Some((1, 0, None)));
    }

    #[test]
    fn isolated_cpus_are_taken_first() {
        let mut cpus: Vec<_> = (0..8).map(|n| cpu(n, &[n], 0)).collect();
        cpus[5].isolated = true;
        assert_eq!(proposed(cpus.clone()), Some((1, 5, Some(0))));
        cpus[7].isolated = true;
        assert_eq!(proposed(cpus), Some((5, 7, Some(0))));
    }

    #[test]
    fn many_cpus_are_no_burden() {
        let cpus = (0..8192).map(|n| cpu(n, &[n], 0)).collect();
        assert_eq!(proposed(cpus), Some((1, 2, Some(0))));
    }

    #[test]
    fn lists_are_short() {
        assert_eq!(list(&[0, 1, 2, 5, 7, 8]), "0-2,5,7-8");
        assert_eq!(list(&[]), "");
    }
}
