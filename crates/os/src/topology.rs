//! The machine's NUMA nodes and cores, from sysfs.

use crate::affinity::parse_list;
use std::fs;
use std::path::Path;

/// A NUMA node: CPUs, memory, or both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The system's number.
    pub number: usize,
    /// Online CPUs, ascending; none if the node is memory alone.
    pub cpus: Vec<usize>,
    /// Whether the node has memory.
    pub has_memory: bool,
}

/// Nodes, and the CPUs that share a core.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topology {
    /// The nodes, by ascending number.
    pub nodes: Vec<Node>,
    /// CPUs of each online core, ascending.
    pub cores: Vec<Vec<usize>>,
}

impl Topology {
    /// The topology of this machine.
    pub fn of_this_host() -> Self {
        Self::read(Path::new("/sys/devices/system"))
    }

    /// Reads the files below `root`. Without information on nodes all CPUs are one node with
    /// memory.
    pub fn read(root: &Path) -> Self {
        let list = |path: &str| fs::read_to_string(root.join(path)).map(|text| parse_list(&text));
        let online = list("cpu/online").unwrap_or_default();
        let with_memory = list("node/has_memory").ok();
        let numbers = list("node/online").unwrap_or_default();
        let node = |number: usize| {
            let cpus = list(&format!("node/node{number}/cpulist")).unwrap_or_default();
            let cpus = cpus.into_iter().filter(|cpu| online.contains(cpu)).collect();
            let has_memory = with_memory.as_ref().is_none_or(|nodes| nodes.contains(&number));
            Node { number, cpus, has_memory }
        };
        let mut nodes: Vec<Node> = numbers.into_iter().map(node).collect();
        if nodes.iter().all(|node| node.cpus.is_empty()) {
            nodes = vec![Node { number: 0, cpus: online.clone(), has_memory: true }];
        }
        let mut cores: Vec<Vec<usize>> = Vec::new();
        for cpu in &online {
            let threads = list(&format!("cpu/cpu{cpu}/topology/thread_siblings_list"));
            let mut threads = threads.unwrap_or_else(|_| vec![*cpu]);
            threads.retain(|thread| online.contains(thread));
            if !cores.contains(&threads) && threads.contains(cpu) {
                cores.push(threads);
            }
        }
        Self { nodes, cores }
    }

    /// The nodes that have CPUs.
    pub fn nodes_with_cpus(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(|node| !node.cpus.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host_has_a_node_with_the_cpu_that_runs_this() {
        let topology = Topology::of_this_host();
        let cpu = crate::affinity::current_cpu();
        assert!(topology.nodes_with_cpus().any(|node| node.cpus.contains(&cpu)), "{topology:?}");
        assert!(topology.cores.iter().any(|core| core.contains(&cpu)), "{topology:?}");
    }

    #[test]
    fn files_are_read_and_missing_ones_do_no_harm() {
        let name = format!("lanecast-topology-{:016x}", crate::process::random().expect("bytes"));
        let root = std::env::temp_dir().join(name);
        let put = |path: &str, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("room");
            fs::write(path, text).expect("room");
        };
        assert_eq!(
            Topology::read(&root).nodes,
            [Node { number: 0, cpus: vec![], has_memory: true }]
        );
        put("cpu/online", "0-2\n");
        put("cpu/cpu0/topology/thread_siblings_list", "0,2\n");
        put("cpu/cpu2/topology/thread_siblings_list", "0,2\n");
        let plain = Topology::read(&root);
        assert_eq!(plain.nodes[0].cpus, [0, 1, 2]);
        assert_eq!(plain.cores, [vec![0, 2], vec![1]]);
        put("node/online", "0-2\n");
        put("node/has_memory", "0,2\n");
        put("node/node0/cpulist", "0,2\n");
        put("node/node1/cpulist", "1,3\n");
        put("node/node2/cpulist", "\n");
        let node =
            |number, cpus: &[usize], has_memory| Node { number, cpus: cpus.into(), has_memory };
        let read = Topology::read(&root);
        fs::remove_dir_all(&root).expect("it was made here");
        assert_eq!(read.nodes, [node(0, &[0, 2], true), node(1, &[1], false), node(2, &[], true)]);
        assert_eq!(read.nodes_with_cpus().count(), 2);
    }
}
