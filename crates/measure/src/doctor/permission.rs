//! Permissions of this process: its priority, limits and sandbox.

use super::finding::{Check, Finding};
use super::words::joined;
use crate::priority::PriorityChange;
use crate::root::Root;

const RAISE: Check = Check::new("priority", "priority");
const LIMITS: Check = Check::new("limits", "limits");
const SANDBOX: Check = Check::new("sandbox", "system call filter");
/// The limit of locked memory, in bytes, as /proc names it.
pub(super) const LOCKED_MEMORY: &str = "Max locked memory";
/// Descriptors for some sessions: a publisher and each subscriber need two.
const FILES_WANTED: u64 = 256;

/// Checks priority, limits and system call filter.
pub(super) fn check(root: &Root, raise: PriorityChange) -> Vec<Finding> {
    vec![check_raise(root, raise), check_limits(root), check_sandbox(root)]
}

fn check_raise(root: &Root, raise: PriorityChange) -> Finding {
    let autogroups = root.value::<u8>("proc/sys/kernel/sched_autogroup_enabled");
    let found = match autogroups {
        Some(0) => "sessions are not grouped",
        Some(_) => "sessions are grouped (autogroup)",
        None => "grouping of sessions is unknown",
    };
    match raise {
        PriorityChange::SharedSession => RAISE
            .note(format!("{found}; this one is shared"))
            .effect("beside another busy session, measured threads get half of a CPU")
            .mend("setsid -w lanecast perf ... (a session of its own can be raised)"),
        PriorityChange::NotPermitted => RAISE
            .note(format!("{found}; raising is not permitted"))
            .effect("beside another busy session, measured threads get half of a CPU")
            .mend("start it as root, or with CAP_SYS_NICE"),
        PriorityChange::NoAutogroups => RAISE
            .note(format!("{found}: nothing was raised"))
            .effect("measured threads share their CPUs evenly with others")
            .mend("sudo nice -n -19 lanecast perf ..."),
        _ => RAISE.good(format!("{found}; {raise}")),
    }
}

/// A soft limit of the process; `u64::MAX` if there is none.
pub(super) fn limit(root: &Root, name: &str) -> Option<u64> {
    let text = root.text("proc/self/limits")?;
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    match value.split_whitespace().next()? {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    }
}

/// The capability that nice values and real-time priorities need.
const SYS_NICE: u32 = 23;
/// The capability that large socket buffers need.
pub(super) const NET_ADMIN: u32 = 12;

/// The capability that memory beyond the limit of locked memory needs.
pub(super) const IPC_LOCK: u32 = 14;
/// The capability that sockets for frames need.
pub(super) const NET_RAW: u32 = 13;
/// The capability that loading programs into the kernel needs.
pub(super) const BPF: u32 = 39;

/// Whether the process has the capability.
pub(super) fn may(root: &Root, capability: u32) -> bool {
    let capabilities = root.labelled("proc/self/status", "CapEff");
    let bits = capabilities.and_then(|bits| u64::from_str_radix(&bits, 16).ok());
    bits.is_some_and(|bits| bits & (1 << capability) != 0)
}

fn check_limits(root: &Root) -> Finding {
    let (Some(files), Some(real_time), Some(nice), Some(locked)) = (
        limit(root, "Max open files"),
        limit(root, "Max realtime priority"),
        limit(root, "Max nice priority"),
        limit(root, LOCKED_MEMORY),
    ) else {
        return LIMITS.unavailable();
    };
    let may_raise = may(root, SYS_NICE);
    let shown = |value: u64| match value {
        u64::MAX => "unlimited".to_owned(),
        value => value.to_string(),
    };
    let found = if may_raise {
        format!("{} files, any priority", shown(files))
    } else {
        format!(
            "{} files, real-time {real_time}, nice {nice}, {} B locked",
            shown(files),
            shown(locked)
        )
    };
    let mut effects = Vec::new();
    let mut mends = Vec::new();
    if files < FILES_WANTED {
        effects.push("few sessions can be joined");
        mends.push("ulimit -n 4096");
    }
    if real_time == 0 && !may_raise {
        effects.push("no real-time runs (--raise real-time)");
        mends.push("in /etc/security/limits.conf: * - rtprio 10");
    }
    if effects.is_empty() {
        return LIMITS.good(found);
    }
    LIMITS.note(found).effect(joined(effects)).mend(mends.join("; "))
}

fn check_sandbox(root: &Root) -> Finding {
    match root.labelled("proc/self/status", "Seccomp").as_deref() {
        Some("0") => SANDBOX.good("none"),
        Some(_) => SANDBOX
            .note("seccomp")
            .effect("each system call passes a filter: sleeping and waking cost more")
            .mend("in a container: --security-opt seccomp=unconfined"),
        None => SANDBOX.unavailable(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::State;
    use super::*;
    use crate::root::tests::tree;

    const LIMITS: &str = "Limit   Soft Limit  Hard Limit  Units\n\
        Max open files            1024                 4096                 files\n\
        Max locked memory         unlimited            unlimited            bytes\n\
        Max nice priority         0                    0\n\
        Max realtime priority     0                    0\n";

    fn found(files: &[(&str, &str)], raise: PriorityChange) -> Vec<Finding> {
        check(&Root::new(tree(files).path()), raise)
    }

    fn states(files: &[(&str, &str)], raise: PriorityChange) -> Vec<State> {
        found(files, raise).iter().map(|finding| finding.state).collect()
    }

    #[test]
    fn root_outside_of_a_sandbox_may_do_all() {
        let files = [
            ("proc/self/limits", LIMITS),
            ("proc/self/status", "CapEff:\t000001ffffffffff\nSeccomp:\t0\n"),
            ("proc/sys/kernel/sched_autogroup_enabled", "1\n"),
        ];
        assert_eq!(states(&files, PriorityChange::Raised), [State::Good; 3]);
    }

    #[test]
    fn an_unprivileged_user_gets_advice() {
        let limits = LIMITS.replace("1024", "128 ");
        let files = [
            ("proc/self/limits", limits.as_str()),
            ("proc/self/status", "CapEff:\t0000000000000000\nSeccomp:\t2\n"),
        ];
        let found = found(&files, PriorityChange::SharedSession);
        assert!(found.iter().all(|finding| finding.state == State::Note), "{found:#?}");
        assert!(found[0].mend.as_ref().unwrap().contains("setsid"));
        let mend = found[1].mend.as_ref().unwrap();
        assert!(mend.contains("ulimit -n") && mend.contains("rtprio"), "{mend}");
    }

    #[test]
    fn silence_is_unknown_and_refusals_are_noted() {
        assert_eq!(
            states(&[], PriorityChange::Raised),
            [State::Good, State::Unknown, State::Unknown]
        );
        assert_eq!(states(&[], PriorityChange::NotPermitted)[0], State::Note);
        assert_eq!(states(&[], PriorityChange::NoAutogroups)[0], State::Note);
    }
}
