//! Memory: the directory of windows, pages, and NUMA nodes.

use super::finding::{Check, Finding};
use super::topology::Topology;
use super::words::{count, size};
use crate::root::Root;
use lanecast_base::Size;
use lanecast_os::DiskSpace;
use std::path::{Path, PathBuf};

const NODES: Check = Check::new("numa-nodes", "NUMA nodes");
const BALANCING: Check = Check::new("numa-balancing", "NUMA balancing");
const HUGE: Check = Check::new("huge-pages", "huge pages");
const SWAP: Check = Check::new("swap", "swap");
const DOMAIN: Check = Check::new("domain-memory", "memory of the domain");

const HUGE_PAGES: &str = "sys/kernel/mm/transparent_hugepage";
/// Space for fewer windows than this is noted; for fewer than the second bound, it disturbs.
const WINDOWS_WANTED: u64 = 64;
const WINDOWS_NEEDED: u64 = 4;

/// Checks the kernel's memory settings.
pub(super) fn check(root: &Root, topology: &Topology) -> Vec<Finding> {
    vec![
        check_nodes(root, topology),
        check_balancing(root, topology),
        check_huge(root),
        check_swap(root),
    ]
}

fn check_nodes(root: &Root, topology: &Topology) -> Finding {
    let nodes = match topology.nodes() {
        0 => root.list("sys/devices/system/node/online").map_or(0, |nodes| nodes.len()),
        nodes => nodes,
    };
    let found = count(nodes, "node", "nodes");
    match nodes {
        0 => NODES.unavailable(),
        1 => NODES.good(found),
        _ => NODES
            .note(found)
            .effect("between nodes, every message takes longer")
            .mend("keep publisher and subscriber on one node (-a), as proposed here"),
    }
}

fn check_balancing(root: &Root, topology: &Topology) -> Finding {
    match root.value::<u8>("proc/sys/kernel/numa_balancing") {
        None if topology.nodes() == 1 => BALANCING.good("one node"),
        None => BALANCING.unavailable(),
        Some(0) => BALANCING.good("off"),
        Some(_) if topology.nodes() <= 1 => BALANCING.good("on, with one node"),
        Some(_) => BALANCING
            .disturbs("on")
            .effect("the kernel unmaps pages to find their users: stalls on the path")
            .mend("echo 0 | sudo tee /proc/sys/kernel/numa_balancing"),
    }
}

fn check_huge(root: &Root) -> Finding {
    // The kernel puts the mode in force in brackets.
    let mode = |file: &str| {
        let text = root.text(&format!("{HUGE_PAGES}/{file}"))?;
        let (_, rest) = text.split_once('[')?;
        Some(rest.split_once(']')?.0.to_owned())
    };
    let Some(enabled) = mode("enabled") else { return HUGE.unavailable() };
    let free = root.labelled("proc/meminfo", "HugePages_Free").unwrap_or_else(|| "?".to_owned());
    let shared = mode("shmem_enabled").unwrap_or_else(|| "never".to_owned());
    let found = format!("transparent: {enabled}, in shared memory: {shared}; {free} reserved free");
    if enabled != "always" && !["always", "force"].contains(&shared.as_str()) {
        return HUGE.good(found);
    }
    HUGE.note(found)
        .effect("the kernel moves memory about to make huge pages: rare stalls")
        .mend(format!("echo madvise | sudo tee /{HUGE_PAGES}/enabled"))
}

fn check_swap(root: &Root) -> Finding {
    let (Some(total), Some(free)) = (root.memory_bytes("SwapTotal"), root.memory_bytes("SwapFree"))
    else {
        return SWAP.unavailable();
    };
    let used = total.saturating_sub(free);
    match (total, used) {
        (0, _) => SWAP.good("none"),
        (_, 0) => SWAP.good(format!("{}, unused", size(total))),
        _ => SWAP
            .note(format!("{} of {} used", size(used), size(total)))
            .effect("pages that were swapped out take milliseconds to come back")
            .mend("sudo swapoff -a"),
    }
}

/// Checks that the domain's directory is in memory and has space for windows; `space` describes its
/// file system.
pub(super) fn check_domain(
    root: &Root,
    directory: &Path,
    window: Size,
    space: Option<DiskSpace>,
) -> Finding {
    let Some(mount) = mount_of(root, directory) else {
        return DOMAIN.unknown(format!("{}: its file system is unknown", directory.display()));
    };
    let place = mount.place.display().to_string();
    let free = space.map_or("?".to_owned(), |space| size(space.free_bytes));
    let all = space.map_or("?".to_owned(), |space| size(space.total_bytes));
    let found = format!("{} on {place}, {free} of {all} free", mount.kind);
    if !["tmpfs", "ramfs", "hugetlbfs"].contains(&mount.kind.as_str()) {
        return DOMAIN
            .disturbs(found)
            .effect("the kernel writes windows to a disk now and then: stalls on the path")
            .mend("mount -t tmpfs tmpfs /dev/shm, and shm.directory = \"/dev/shm/lanecast\"");
    }
    if mount.read_only {
        return DOMAIN
            .disturbs(format!("{found}, read-only"))
            .effect("no publisher can make its session")
            .mend(format!("sudo mount -o remount,rw {place}"));
    }
    let Some(windows) = space.map(|space| space.free_bytes / window.0.max(1)) else {
        return DOMAIN.unknown(found);
    };
    if windows >= WINDOWS_WANTED {
        return DOMAIN.good(found);
    }
    let finding =
        if windows < WINDOWS_NEEDED { DOMAIN.disturbs(found) } else { DOMAIN.note(found) };
    finding
        .effect(format!("room for {windows} sessions with a window of {window}"))
        .mend(format!("sudo mount -o remount,size=1g {place} (docker run --shm-size=1g)"))
}

#[derive(Debug, PartialEq)]
struct Mount {
    place: PathBuf,
    kind: String,
    read_only: bool,
}

/// The mount of a path: the longest prefix of it, and of equal ones the last.
fn mount_of(root: &Root, path: &Path) -> Option<Mount> {
    let mounts = root.text("proc/self/mounts")?;
    let mount = |line: &str| {
        let mut words = line.split_whitespace().skip(1);
        let (place, kind, options) = (words.next()?, words.next()?, words.next()?);
        let mount = Mount {
            place: unescaped(place),
            kind: kind.to_owned(),
            read_only: options.split(',').any(|option| option == "ro"),
        };
        path.starts_with(&mount.place).then_some(mount)
    };
    mounts.lines().filter_map(mount).max_by_key(|mount| mount.place.components().count())
}

/// Blanks in mount points are written as `\040`.
fn unescaped(place: &str) -> PathBuf {
    PathBuf::from(place.replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\"))
}

#[cfg(test)]
mod tests {
    use super::super::finding::State;
    use super::super::topology::tests::{cpu, topology};
    use super::*;
    use crate::root::tests::tree;

    fn one_node() -> Topology {
        topology(vec![cpu(0, &[0], 0), cpu(1, &[1], 0)])
    }

    fn two_nodes() -> Topology {
        topology(vec![cpu(0, &[0], 0), cpu(1, &[1], 1)])
    }

    fn states(files: &[(&str, &str)], topology: &Topology) -> Vec<State> {
        let tree = tree(files);
        check(&Root::new(tree.path()), topology).iter().map(|found| found.state).collect()
    }

    #[test]
    fn a_calm_memory_is_good_and_silence_unknown() {
        let files = [
            ("proc/sys/kernel/numa_balancing", "0\n"),
            ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
            ("proc/meminfo", "HugePages_Free: 0\nSwapTotal: 0 kB\nSwapFree: 0 kB\n"),
        ];
        assert_eq!(states(&files, &one_node()), [State::Good; 4]);
        assert_eq!(states(&[], &Topology::default()), [State::Unknown; 4]);
    }

    #[test]
    fn each_stir_is_named() {
        let files = [
            ("proc/sys/kernel/numa_balancing", "1\n"),
            ("sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n"),
            ("proc/meminfo", "SwapTotal: 2048 kB\nSwapFree: 1024 kB\n"),
        ];
        let found = states(&files, &two_nodes());
        assert_eq!(found, [State::Note, State::Disturbs, State::Note, State::Note]);
        assert_eq!(states(&files, &one_node())[1], State::Good);
    }

    const MOUNTS: &str = "/dev/vda / ext4 rw 0 0\ntmpfs /dev/shm tmpfs rw,noexec 0 0\n\
                          tmpfs /mnt/a\\040b tmpfs ro 0 0\n";

    fn domain(directory: &str, free_windows: Option<u64>) -> Finding {
        let tree = tree(&[("proc/self/mounts", MOUNTS)]);
        let space = |windows: u64| DiskSpace { total_bytes: 1 << 30, free_bytes: windows << 20 };
        let directory = Path::new(directory);
        check_domain(&Root::new(tree.path()), directory, Size(1 << 20), free_windows.map(space))
    }

    #[test]
    fn windows_belong_on_memory_with_room() {
        for (directory, windows, state) in [
            ("/dev/shm/lanecast", Some(100), State::Good),
            ("/dev/shm/lanecast", Some(63), State::Note),
            ("/dev/shm/lanecast", Some(3), State::Disturbs),
            ("/dev/shm/lanecast", None, State::Unknown),
            ("/dev/shmem", Some(100), State::Disturbs),
            ("/mnt/a b/c", Some(100), State::Disturbs),
            ("relative", Some(100), State::Unknown),
        ] {
            let found = domain(directory, windows);
            assert_eq!(found.state, state, "{directory} {windows:?} {found:?}");
        }
        assert!(domain("/dev/shm/x", Some(3)).effect.unwrap().contains("3 sessions"));
    }
}
