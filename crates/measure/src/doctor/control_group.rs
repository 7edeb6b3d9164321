//! Limits of the process's control group (of a container or service), versions 1 and 2.

use super::finding::{Check, Finding};
use crate::root::Root;
use lanecast_base::Size;

const QUOTA: Check = Check::new("cpu-quota", "CPU quota");
const MEMORY: Check = Check::new("memory-limit", "memory limit");
/// Version 1 writes a number a little below 2^63 if there is no limit.
const NO_LIMIT: u64 = 1 << 60;
/// CPUs for a spinning publisher and subscriber, and a share for other programs.
const CPUS_WANTED: f64 = 2.5;
/// Memory for fewer windows than this is reported.
const WINDOWS_WANTED: u64 = 32;

/// The limits of the process's control group and of those above it, tightest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ControlGroup {
    /// CPUs it may use; none: all.
    pub(super) cpus: Option<Vec<usize>>,
    /// CPU quota: CPUs, and period in microseconds.
    quota: Option<(f64, u64)>,
    /// Number of times it was throttled for using up its quota.
    throttled: Option<u64>,
    memory_bytes: Option<u64>,
    /// False if the system gives no information.
    known: bool,
}

impl ControlGroup {
    pub(super) fn read(root: &Root) -> Self {
        let Some(list) = root.text("proc/self/cgroup") else { return Self::default() };
        let mut found = Self { known: true, ..Self::default() };
        for line in list.lines() {
            let mut parts = line.splitn(3, ':').skip(1);
            let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
            if controllers.is_empty() {
                for base in ["sys/fs/cgroup", "sys/fs/cgroup/unified"] {
                    found.read_version_2(root, &folders(base, path));
                }
            }
            for controller in controllers.split(',') {
                found.read_version_1(root, controller, &folders(controllers, path));
                if controllers != controller {
                    found.read_version_1(root, controller, &folders(controller, path));
                }
            }
        }
        found
    }

    fn read_version_2(&mut self, root: &Root, folders: &[String]) {
        for folder in folders {
            if let Some(limit) = root.text(&format!("{folder}/cpu.max")) {
                let mut words = limit.split_whitespace().map(str::parse);
                if let (Some(Ok(quota)), Some(Ok(period))) = (words.next(), words.next()) {
                    self.limit_quota(quota, period);
                }
            }
            self.limit_memory(root.value(&format!("{folder}/memory.max")));
            self.note_throttling(root, folder);
            if self.cpus.is_none() {
                self.cpus = root.list(&format!("{folder}/cpuset.cpus.effective"));
            }
        }
    }

    fn read_version_1(&mut self, root: &Root, controller: &str, folders: &[String]) {
        for folder in folders.iter().map(|folder| format!("sys/fs/cgroup/{folder}")) {
            match controller {
                "cpu" => {
                    let value = |name| root.value::<u64>(&format!("{folder}/cpu.cfs_{name}_us"));
                    if let (Some(quota), Some(period)) = (value("quota"), value("period")) {
                        self.limit_quota(quota, period);
                    }
                    self.note_throttling(root, &folder);
                }
                "memory" => {
                    self.limit_memory(root.value(&format!("{folder}/memory.limit_in_bytes")));
                }
                "cpuset" if self.cpus.is_none() => {
                    self.cpus = root.list(&format!("{folder}/cpuset.effective_cpus"));
                }
                _ => {}
            }
        }
    }

    fn limit_quota(&mut self, quota_us: u64, period_us: u64) {
        let cpus = quota_us as f64 / period_us.max(1) as f64;
        if self.quota.is_none_or(|(least, _)| cpus < least) {
            self.quota = Some((cpus, period_us));
        }
    }

    fn limit_memory(&mut self, bytes: Option<u64>) {
        if let Some(bytes) = bytes.filter(|bytes| *bytes < NO_LIMIT) {
            self.memory_bytes = Some(self.memory_bytes.map_or(bytes, |least| least.min(bytes)));
        }
    }

    fn note_throttling(&mut self, root: &Root, folder: &str) {
        let stat = root.text(&format!("{folder}/cpu.stat")).unwrap_or_default();
        let times = stat.lines().find_map(|line| line.strip_prefix("nr_throttled ")?.parse().ok());
        self.throttled = self.throttled.max(times);
    }

    pub(super) fn check(&self, window: Size) -> Vec<Finding> {
        vec![self.check_quota(), self.check_memory(window)]
    }

    fn check_quota(&self) -> Finding {
        let Some((cpus, period_us)) = self.quota else {
            return if self.known { QUOTA.good("none") } else { QUOTA.unavailable() };
        };
        let times = self.throttled.unwrap_or(0);
        let found = format!("{cpus:.1} CPUs, stopped {times} times so far");
        if cpus >= CPUS_WANTED && times == 0 {
            return QUOTA.good(found);
        }
        let period_ms = period_us as f64 / 1000.0;
        QUOTA
            .disturbs(found)
            .effect(format!(
                "when its time is used up, all threads stand still, up to {period_ms:.0} ms"
            ))
            .mend(
                "start the container without a quota, or with one of 3 CPUs and more: --cpus=3 \
                 (systemd: CPUQuota=300%)",
            )
    }

    fn check_memory(&self, window: Size) -> Finding {
        let Some(bytes) = self.memory_bytes else {
            return if self.known { MEMORY.good("none") } else { MEMORY.unavailable() };
        };
        let found = Size(bytes >> 10 << 10).to_string();
        if bytes / window.0.max(1) >= WINDOWS_WANTED {
            return MEMORY.good(found);
        }
        MEMORY
            .disturbs(found)
            .effect(format!("shared memory counts too: room for few windows of {window}"))
            .mend("give the container more memory: --memory=1g")
    }
}

/// Directories of a group and of its ancestors, below `base`.
fn folders(base: &str, path: &str) -> Vec<String> {
    let mut parts: Vec<_> = path.split('/').filter(|part| !part.is_empty()).collect();
    if parts.contains(&"..") {
        // Seen from another namespace: only the group on top is in sight.
        parts.clear();
    }
    let folder = |count: usize| {
        let mut folder = base.to_owned();
        parts[..count].iter().for_each(|part| folder.extend(["/", part]));
        folder
    };
    (0..=parts.len()).rev().map(folder).collect()
}

#[cfg(test)]
mod tests {
    use super::super::finding::State;
    use super::*;
    use crate::root::tests::tree;

    const MIB: Size = Size(1 << 20);

    fn states(files: &[(&str, &str)]) -> [State; 2] {
        let tree = tree(files);
        let found = ControlGroup::read(&Root::new(tree.path())).check(MIB);
        [found[0].state, found[1].state]
    }

    #[test]
    fn no_limits_are_good_and_silence_is_unknown() {
        assert_eq!(states(&[]), [State::Unknown; 2]);
        let limits = [
            ("proc/self/cgroup", "0::/user.slice/a.scope\n"),
            ("sys/fs/cgroup/user.slice/a.scope/cpu.max", "max 100000\n"),
            ("sys/fs/cgroup/user.slice/memory.max", "max\n"),
        ];
        assert_eq!(states(&limits), [State::Good; 2]);
        let limits = [
            ("proc/self/cgroup", "3:cpu,cpuacct:/\n2:memory:/x\n"),
            ("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n"),
            ("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"),
            ("sys/fs/cgroup/memory/x/memory.limit_in_bytes", "9223372036854771712\n"),
        ];
        assert_eq!(states(&limits), [State::Good; 2]);
    }

    #[test]
    fn the_tightest_limit_of_version_2_counts() {
        let tree = tree(&[
            ("proc/self/cgroup", "0::/pod/box\n"),
            ("sys/fs/cgroup/pod/cpu.max", "50000 100000\n"),
            ("sys/fs/cgroup/pod/box/cpu.max", "400000 100000\n"),
            ("sys/fs/cgroup/pod/box/cpu.stat", "usage_usec 5\nnr_throttled 12\n"),
            ("sys/fs/cgroup/pod/memory.max", "16777216\n"),
            ("sys/fs/cgroup/pod/box/cpuset.cpus.effective", "2-3\n"),
        ]);
        let group = ControlGroup::read(&Root::new(tree.path()));
        assert_eq!(group.cpus, Some(vec![2, 3]));
        let found = group.check(MIB);
        assert_eq!(found[0].found, "0.5 CPUs, stopped 12 times so far");
        assert_eq!((found[0].state, found[1].state), (State::Disturbs, State::Disturbs));
        assert!(found[0].effect.as_ref().unwrap().contains("100 ms"));
        assert!(found[1].found.contains("16MiB"), "{}", found[1].found);
    }

    #[test]
    fn version_1_limits_count_wherever_they_are_mounted() {
        let tree = tree(&[
            ("proc/self/cgroup", "4:cpu,cpuacct:/box\n3:cpuset:/box\n2:memory:/../..\n"),
            ("sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "150000\n"),
            ("sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "100000\n"),
            ("sys/fs/cgroup/cpuset/cpuset.effective_cpus", "0-1\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "1048576\n"),
        ]);
        let group = ControlGroup::read(&Root::new(tree.path()));
        assert_eq!((group.quota, group.memory_bytes), (Some((1.5, 100_000)), Some(1 << 20)));
        assert_eq!(group.cpus, Some(vec![0, 1]));
    }
}
