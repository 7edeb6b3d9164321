//! Placement of communicating threads on NUMA nodes.

use lanecast_os::topology::{Node, Topology};
use serde::Serialize;
use std::fmt;
use std::str::FromStr;

/// Selection of a NUMA node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Numa {
    /// The node with most cores for the threads.
    #[default]
    Auto,
    /// None: the system places threads.
    Off,
    /// The node with this number.
    Node(usize),
}

/// Placement of threads, one CPU each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NumaPlacement {
    /// The node; none without pinning.
    pub node: Option<usize>,
    /// A CPU for each thread; several threads share one if there are too few. Empty without
    /// pinning.
    pub cpus: Vec<usize>,
    /// The decision in words.
    pub why: String,
}

/// Errors of placement.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NumaPlacementError {
    /// There is no such node.
    #[error("there is no node {asked} with CPUs that are switched on: choose of {there:?}")]
    NoNode {
        /// The requested node.
        asked: usize,
        /// Nodes with CPUs.
        there: Vec<usize>,
    },
    /// There are no CPUs at all.
    #[error("the system names no CPU: use --numa off")]
    NoCpus,
}

impl NumaPlacement {
    /// Places communicating threads on one node, so that all memory is local, and on one core each
    /// while there are cores. Prefers nodes with memory, then with more cores, then the lowest
    /// number. A pinned thread allocates memory of its own node if there is space.
    ///
    /// # Errors
    /// See [`NumaPlacementError`].
    pub fn choose(
        topology: &Topology,
        numa: Numa,
        threads: usize,
    ) -> Result<Self, NumaPlacementError> {
        let count = topology.nodes_with_cpus().count();
        let node = match numa {
            Numa::Off => {
                let why = "nodes are not looked at: the system places threads".to_owned();
                return Ok(Self { why, ..Self::default() });
            }
            Numa::Node(asked) => {
                let found = topology.nodes_with_cpus().find(|node| node.number == asked);
                found.ok_or_else(|| NumaPlacementError::NoNode {
                    asked,
                    there: topology.nodes_with_cpus().map(|node| node.number).collect(),
                })?
            }
            Numa::Auto => {
                let seats = |node: &Node| order(topology, node).0.min(threads);
                let rank =
                    |node: &&Node| (node.has_memory, seats(node), std::cmp::Reverse(node.number));
                topology.nodes_with_cpus().max_by_key(rank).ok_or(NumaPlacementError::NoCpus)?
            }
        };
        let (cores, cpus) = order(topology, node);
        let why = match count {
            1 => "this machine has one node: all memory is equally far".to_owned(),
            _ => format!("node {} of {count}, {cores} cores", node.number),
        };
        let cpus = cpus.iter().copied().cycle().take(threads).collect();
        Ok(Self { node: Some(node.number), cpus, why })
    }
}

/// The number of cores of a node, and its CPUs: one of each core, then the second ones.
fn order(topology: &Topology, node: &Node) -> (usize, Vec<usize>) {
    let own = |core: &Vec<usize>| -> Vec<usize> {
        core.iter().copied().filter(|cpu| node.cpus.contains(cpu)).collect()
    };
    let cores: Vec<Vec<usize>> =
        topology.cores.iter().map(own).filter(|core| !core.is_empty()).collect();
    let deepest = cores.iter().map(Vec::len).max().unwrap_or(0);
    let layer = |depth| cores.iter().filter_map(move |core| core.get(depth).copied());
    let mut cpus: Vec<usize> = (0..deepest).flat_map(layer).collect();
    let unknown = node.cpus.iter().filter(|cpu| !cpus.contains(cpu));
    let unknown: Vec<usize> = unknown.copied().collect();
    cpus.extend(&unknown);
    (cores.len() + unknown.len(), cpus)
}

impl FromStr for Numa {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "off" => Ok(Self::Off),
            number => {
                let number = number.parse().map_err(|_| "write auto, off or a node's number")?;
                Ok(Self::Node(number))
            }
        }
    }
}

impl fmt::Display for Numa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.pad("auto"),
            Self::Off => f.pad("off"),
            Self::Node(number) => fmt::Display::fmt(number, f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nodes by their CPUs and memory; CPU n and n + `threads_apart` share a core.
    fn machine(nodes: &[(&[usize], bool)], threads_apart: Option<usize>) -> Topology {
        let nodes = nodes.iter().enumerate().map(|(number, (cpus, has_memory))| Node {
            number,
            cpus: cpus.to_vec(),
            has_memory: *has_memory,
        });
        let nodes: Vec<Node> = nodes.collect();
        let mut all: Vec<usize> = nodes.iter().flat_map(|node| node.cpus.clone()).collect();
        all.sort_unstable();
        let core = |cpu: &usize| {
            let Some(apart) = threads_apart else { return Some(vec![*cpu]) };
            let core = [cpu % apart, cpu % apart + apart];
            let core: Vec<usize> = core.into_iter().filter(|cpu| all.contains(cpu)).collect();
            (core.first() == Some(cpu)).then_some(core)
        };
        let cores = all.iter().filter_map(core).collect();
        Topology { nodes, cores }
    }

    fn seats(topology: &Topology, numa: Numa, threads: usize) -> (Option<usize>, Vec<usize>) {
        let placement = NumaPlacement::choose(topology, numa, threads).expect("there are CPUs");
        (placement.node, placement.cpus)
    }

    #[test]
    fn one_node_is_said_to_be_one() {
        let small = machine(&[(&[0, 1], true)], None);
        let placement = NumaPlacement::choose(&small, Numa::Auto, 3).expect("there are CPUs");
        assert_eq!((placement.node, &placement.cpus[..]), (Some(0), &[0, 1, 0][..]));
        assert!(placement.why.contains("one node"), "{}", placement.why);
    }

    #[test]
    fn threads_get_cores_before_they_share_one() {
        let two = machine(&[(&[0, 1, 4, 5], true), (&[2, 3, 6, 7], true)], Some(4));
        assert_eq!(seats(&two, Numa::Auto, 3), (Some(0), vec![0, 1, 4]));
        assert_eq!(seats(&two, Numa::Node(1), 3), (Some(1), vec![2, 3, 6]));
    }

    #[test]
    fn the_node_with_room_is_taken() {
        // Of four nodes one has lost CPUs, one has no memory, and one is memory alone.
        let four = machine(&[(&[0], true), (&[2, 3], false), (&[4, 5], true), (&[], true)], None);
        assert_eq!(seats(&four, Numa::Auto, 2), (Some(2), vec![4, 5]));
        // One thread needs no more than one core: the first node will do.
        assert_eq!(seats(&four, Numa::Auto, 1), (Some(0), vec![0]));
        assert_eq!(seats(&four, Numa::Node(1), 2), (Some(1), vec![2, 3]));
    }

    #[test]
    fn nodes_without_memory_do_if_there_are_no_others() {
        let bare = machine(&[(&[0], false), (&[1, 2], false)], None);
        assert_eq!(seats(&bare, Numa::Auto, 2), (Some(1), vec![1, 2]));
    }

    #[test]
    fn a_missing_numa_node_is_refused() {
        let two = machine(&[(&[0, 1], true), (&[2], true), (&[], true)], None);
        let there = vec![0, 1];
        for asked in [2, 7] {
            let refused =
                NumaPlacement::choose(&two, Numa::Node(asked), 1).expect_err("no CPUs there");
            assert_eq!(refused, NumaPlacementError::NoNode { asked, there: there.clone() });
        }
        let nothing = Topology::default();
        assert_eq!(NumaPlacement::choose(&nothing, Numa::Auto, 1), Err(NumaPlacementError::NoCpus));
        assert_eq!(seats(&nothing, Numa::Off, 4), (None, vec![]));
    }

    #[test]
    fn words_read_back() {
        for numa in [Numa::Auto, Numa::Off, Numa::Node(3)] {
            assert_eq!(numa.to_string().parse(), Ok(numa));
        }
        assert!("-1".parse::<Numa>().is_err());
    }
}
