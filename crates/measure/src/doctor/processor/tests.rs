//! Checks of processors that files describe.

use super::super::finding::State;
use super::super::topology::tests::{cpu, topology};
use super::*;
use crate::root::tests::{put, tree};
use tempfile::TempDir;

const GOOD: [(&str, &str); 9] = [
    ("proc/cpuinfo", "model name : x\n"),
    ("proc/cmdline", "quiet isolcpus=1-2 nohz_full=1-2 rcu_nocbs=1-2\n"),
    ("sys/devices/system/cpu/nohz_full", "1-2\n"),
    ("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "performance\n"),
    ("sys/devices/system/cpu/cpufreq/boost", "0\n"),
    ("sys/devices/system/cpu/cpuidle/current_driver", "intel_idle\n"),
    ("sys/devices/system/cpu/cpu0/cpuidle/state1/name", "C1\n"),
    ("sys/devices/system/cpu/cpu0/cpuidle/state1/latency", "2\n"),
    ("sys/devices/system/cpu/cpu0/cpuidle/state1/disable", "0\n"),
];

fn quiet() -> Topology {
    let mut topology = topology((0..8).map(|n| cpu(n, &[n], 0)).collect());
    topology.cpus[1].isolated = true;
    topology.cpus[2].isolated = true;
    topology
}

fn found(tree: &TempDir, topology: &Topology, hypervisor: Option<&str>) -> Vec<Finding> {
    check(&Root::new(tree.path()), topology, topology.propose(), hypervisor)
}

fn one(files: &[(&str, &str)], topology: &Topology, id: &str) -> Finding {
    let all = found(&tree(files), topology, None);
    all.into_iter().find(|finding| finding.id == id).unwrap()
}

#[test]
fn a_machine_made_for_measuring_is_good() {
    let all = found(&tree(&GOOD), &quiet(), None);
    assert!(all.iter().all(|finding| finding.state == State::Good), "{all:#?}");
}

#[test]
fn an_untold_machine_is_unknown() {
    let all = found(&tree(&[]), &Topology::default(), None);
    assert!(all.iter().all(|finding| finding.state == State::Unknown), "{all:#?}");
}

#[test]
fn frequencies_that_move_are_named_with_the_command() {
    let tree = tree(&GOOD);
    put(&tree, "sys/devices/system/cpu/cpu2/cpufreq/scaling_governor", "powersave\n");
    put(&tree, "sys/devices/system/cpu/intel_pstate/no_turbo", "0\n");
    let all = found(&tree, &quiet(), None);
    assert_eq!((all[2].state, all[2].found.as_str()), (State::Disturbs, "performance, powersave"));
    assert!(all[2].mend.as_ref().unwrap().contains("scaling_governor"));
    assert_eq!(all[3].state, State::Note);
    assert!(all[3].mend.as_ref().unwrap().ends_with("/intel_pstate/no_turbo"));
}

#[test]
fn the_deepest_state_that_is_switched_on_counts() {
    let tree = tree(&GOOD);
    for (file, value) in [("latency", "890"), ("name", "C10"), ("disable", "1")] {
        put(&tree, &format!("sys/devices/system/cpu/cpu0/cpuidle/state9/{file}"), value);
    }
    assert_eq!(found(&tree, &quiet(), None)[4].state, State::Good);
    put(&tree, "sys/devices/system/cpu/cpu0/cpuidle/state9/disable", "0");
    let finding = &found(&tree, &quiet(), None)[4];
    assert_eq!(finding.state, State::Note);
    assert!(finding.found.contains("C10 (890 us"), "{finding:?}");
}

#[test]
fn hyper_threads_are_noted_and_a_shared_core_disturbs() {
    let pairs = topology((0..8).map(|n| cpu(n, &[n / 2 * 2, n / 2 * 2 + 1], 0)).collect());
    assert_eq!(one(&[], &pairs, "hyper-threads").state, State::Note);
    let core = topology(vec![cpu(0, &[0, 1], 0), cpu(1, &[0, 1], 0)]);
    assert_eq!(one(&[], &core, "hyper-threads").state, State::Disturbs);
}

#[test]
fn few_cpus_are_too_few() {
    let count = |cpus: usize| {
        let topology = topology((0..cpus).map(|n| cpu(n, &[n], 0)).collect());
        one(&[], &topology, "cpus").state
    };
    assert_eq!([1, 2, 3, 4].map(count), [State::Disturbs, State::Note, State::Note, State::Good]);
    let given = Topology { online: Some(64), ..topology(vec![cpu(5, &[5], 0)]) };
    assert!(one(&[], &given, "cpus").found.contains("1 of 64"));
}

#[test]
fn advice_names_the_missing_kernel_parameters() {
    let plain = topology((0..8).map(|n| cpu(n, &[n], 0)).collect());
    let mend = one(&[], &plain, "isolated-cpus").mend.unwrap();
    assert_eq!(mend, "kernel command line: isolcpus=1-2 nohz_full=1-2 rcu_nocbs=1-2");
    let mend = one(&GOOD[..2], &quiet(), "isolated-cpus").mend.unwrap();
    assert_eq!(mend, "kernel command line: nohz_full=1-2");
}

#[test]
fn a_virtual_machine_is_noted_and_its_frequency_unknown() {
    let all = found(&tree(&GOOD[..1]), &quiet(), Some("kvm"));
    assert_eq!((all[6].state, all[6].found.as_str()), (State::Note, "kvm"));
    assert!(all[2].found.contains("host"), "{:?}", all[2]);
}

#[test]
fn measured_times_are_judged() {
    let tree = tree(&[("sys/module/haltpoll/parameters/guest_halt_poll_ns", "0\n")]);
    let wake = |ns| check_wake(&Root::new(tree.path()), ns);
    let states = [None, Some(2e3), Some(33e3), Some(1e5)].map(|ns| wake(ns).state);
    assert_eq!(states, [State::Unknown, State::Good, State::Note, State::Disturbs]);
    assert!(wake(Some(33e3)).effect.unwrap().contains("16.5 us later"));
    assert!(wake(Some(33e3)).mend.unwrap().contains("guest_halt_poll_ns; or"));
    let line = |ns| check_line(ns, quiet().propose()).state;
    assert_eq!(
        [None, Some(125.0), Some(500.0)].map(line),
        [State::Unknown, State::Good, State::Note]
    );
}
