//! The examination as a whole: of nothing, of garbage, of this machine.

use super::*;
use crate::root::tests::{put, tree};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::time::Instant;

const ABLE: KernelFeatures =
    KernelFeatures { membarrier: true, futex_waitv: true, counter: true, segmentation: true };

/// Every file that a check reads, with CPUs 0 and 1.
const FILES: [&str; 49] = [
    "proc/cmdline",
    "proc/cpuinfo",
    "proc/interrupts",
    "proc/loadavg",
    "proc/meminfo",
    "proc/stat",
    "proc/1/stat",
    "proc/net/route",
    "proc/net/snmp",
    "proc/net/softnet_stat",
    "proc/self/cgroup",
    "proc/self/limits",
    "proc/self/mounts",
    "proc/self/status",
    "proc/sys/kernel/numa_balancing",
    "proc/sys/kernel/osrelease",
    "proc/sys/kernel/sched_autogroup_enabled",
    "proc/sys/net/core/busy_poll",
    "proc/sys/net/core/busy_read",
    "proc/sys/net/core/netdev_max_backlog",
    "proc/sys/net/core/rmem_max",
    "proc/sys/net/core/wmem_max",
    "proc/sys/net/ipv4/conf/all/rp_filter",
    "proc/sys/net/ipv4/conf/eth0/rp_filter",
    "proc/sys/net/ipv4/igmp_max_memberships",
    "proc/sys/net/netfilter/nf_conntrack_count",
    "sys/class/net/eth0/device/uevent",
    "sys/class/net/eth0/flags",
    "sys/class/net/eth0/gro_flush_timeout",
    "sys/class/net/eth0/mtu",
    "sys/class/net/eth0/operstate",
    "sys/class/dmi/id/sys_vendor",
    "sys/devices/system/clocksource/clocksource0/available_clocksource",
    "sys/devices/system/clocksource/clocksource0/current_clocksource",
    "sys/devices/system/cpu/cpu0/cache/index2/level",
    "sys/devices/system/cpu/cpu0/cache/index2/size",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
    "sys/devices/system/cpu/cpu0/cpuidle/state1/latency",
    "sys/devices/system/cpu/cpu0/topology/thread_siblings_list",
    "sys/devices/system/cpu/cpufreq/boost",
    "sys/devices/system/cpu/cpuidle/current_driver",
    "sys/devices/system/cpu/isolated",
    "sys/devices/system/cpu/nohz_full",
    "sys/devices/system/cpu/online",
    "sys/devices/system/cpu/vulnerabilities/meltdown",
    "sys/devices/system/node/online",
    "sys/fs/cgroup/cpu.max",
    "sys/fs/cgroup/memory.max",
    "sys/kernel/mm/transparent_hugepage/enabled",
];

fn settings(time: Option<Duration>) -> Settings {
    let directory = PathBuf::from("/dev/shm/lanecast");
    Settings { directory, window: Size(1 << 20), raise: PriorityChange::Raised, time }
}

fn look_at(root: &Path) -> (Vec<Finding>, Option<Proposal>) {
    look(&Root::new(root), &settings(None), None, ABLE)
}

#[test]
fn of_an_empty_tree_nothing_is_known_and_nothing_is_blamed() {
    let (findings, proposal) = look_at(tree(&[]).path());
    assert_eq!(proposal, None);
    for finding in &findings {
        let is_told = ["priority", "kernel", "segmentation"].contains(&finding.id);
        let expected = if is_told { State::Good } else { State::Unknown };
        assert_eq!(finding.state, expected, "{finding:?}");
    }
    let ids: BTreeSet<_> = findings.iter().map(|finding| finding.id).collect();
    assert_eq!(ids.len(), findings.len(), "each has its own name");
}

#[test]
fn the_verdict_counts_and_tells_of_the_noise() {
    let check = finding::Check::new("x", "x");
    let two = [check.disturbs(""), check.disturbs(""), check.good("")];
    assert_eq!(
        verdict(&two, Some(12_300)),
        "2 things disturb measurements; expect p99.9 noise of about 12.3 us on this machine"
    );
    assert!(verdict(&two[2..], None).starts_with("nothing disturbs"));
}

#[test]
fn this_machine_is_examined_in_time_and_the_worst_comes_first() {
    let start = Instant::now();
    let mut told = Vec::new();
    let time = Duration::from_millis(200);
    let found = examine(&settings(Some(time)), &mut |what| told.push(what.to_owned()));
    assert!(start.elapsed() < Duration::from_secs(30));
    assert!(found.findings.is_sorted_by_key(|finding| finding.state));
    assert!(told.len() >= 3, "{told:?}");
    if found.proposal.is_some() {
        assert!(found.gaps.len() >= 2 && found.noise_p99_9_ns.is_some(), "{found:?}");
    }
    for finding in found.findings.iter().filter(|finding| finding.state == State::Disturbs) {
        assert!(finding.effect.is_some() && finding.mend.is_some(), "{finding:?}");
    }
    let quick = examine(&settings(None), &mut |_| {});
    assert!(quick.gaps.is_empty() && quick.noise_p99_9_ns.is_none());
}

fn contents() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..60),
        "[0-9 ,:\\-\\[\\]()/a-zK\n]{0,60}".prop_map(String::into_bytes),
        any::<u64>().prop_map(|number| format!("{number} {number}\n").into_bytes()),
        Just(b"0-1\n".to_vec()),
        Just(b"cpu  18446744073709551615 18446744073709551615 1 1 1 1 1 1\n".to_vec()),
        Just(b"MemTotal: 18446744073709551615 kB\nSwapTotal: 1 kB\nSwapFree: 2 kB\n".to_vec()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn whatever_the_files_hold_there_is_an_answer(
        all in prop::collection::vec(contents(), FILES.len()),
    ) {
        let tree = tree(&[]);
        for (path, contents) in FILES.iter().zip(&all) {
            put(&tree, path, contents);
        }
        let (findings, _) = look_at(tree.path());
        prop_assert!(findings.iter().all(|finding| !finding.found.contains(char::is_control)));
        let root = Root::new(tree.path());
        let now = Snapshot::take(&root);
        load::check_steal(&now, &now);
        load::check_average(&root);
        Load::between(&now, &now, 1).check();
        if let Some(interrupts) = interrupt_counters::Interrupts::read(&root) {
            interrupts.since(&interrupts, 0);
        }
        serde_json::to_string(&Host::read(tree.path())).unwrap();
    }
}
