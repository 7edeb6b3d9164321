//! Description of the machine, without its network name, since report pages are shown to others.

use crate::root::Root;
use serde::Serialize;
use std::path::Path;

const CPUS: &str = "sys/devices/system/cpu";
const CLOCKS: &str = "sys/devices/system/clocksource/clocksource0";

/// The machine as the kernel describes it. Unknown members are absent.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Host {
    /// The processor's name.
    pub cpu: Option<String>,
    /// The architecture that this program was built for.
    pub architecture: &'static str,
    /// Processors that are switched on.
    pub cpus: Option<usize>,
    /// Hyper-threads of a core.
    pub threads_per_core: Option<usize>,
    /// NUMA nodes.
    pub numa_nodes: Option<usize>,
    /// The size of CPU 0's second cache.
    pub l2_bytes: Option<u64>,
    /// The size of CPU 0's third cache.
    pub l3_bytes: Option<u64>,
    /// The size of the main memory.
    pub memory_bytes: Option<u64>,
    /// The kernel's release.
    pub kernel: Option<String>,
    /// Hypervisor, such as `kvm`; absent on bare metal.
    pub hypervisor: Option<String>,
    /// The frequency governor of CPU 0.
    pub governor: Option<String>,
    /// The kernel's clock source.
    pub clock_source: Option<String>,
    /// Load average of the last minute.
    pub load_average: Option<f64>,
}

impl Host {
    /// Reads `proc` and `sys` below `root` (`/` is this machine).
    pub fn read(root: &Path) -> Self {
        Self::look(&Root::new(root))
    }

    pub(crate) fn look(root: &Root) -> Self {
        let count = |path: &str| Some(root.list(path)?.len());
        let cpu0 = format!("{CPUS}/cpu0");
        Self {
            cpu: root.labelled("proc/cpuinfo", "model name"),
            architecture: std::env::consts::ARCH,
            cpus: count(&format!("{CPUS}/online")),
            threads_per_core: count(&format!("{cpu0}/topology/thread_siblings_list")),
            numa_nodes: count("sys/devices/system/node/online"),
            l2_bytes: cache_bytes(root, 2),
            l3_bytes: cache_bytes(root, 3),
            memory_bytes: root.memory_bytes("MemTotal"),
            kernel: root.text("proc/sys/kernel/osrelease"),
            hypervisor: hypervisor(root),
            governor: root.text(&format!("{cpu0}/cpufreq/scaling_governor")),
            clock_source: root.text(&format!("{CLOCKS}/current_clocksource")),
            load_average: root.value("proc/loadavg").filter(|load: &f64| load.is_finite()),
        }
    }
}

/// The size of CPU 0's cache of a level; a size such as `2048K`.
fn cache_bytes(root: &Root, level: u32) -> Option<u64> {
    let caches = format!("{CPUS}/cpu0/cache");
    let size = |index: String| {
        let cache = format!("{caches}/{index}");
        let is_wanted = root.value::<u32>(&format!("{cache}/level"))? == level;
        let size = is_wanted.then(|| root.text(&format!("{cache}/size")))??;
        let (digits, unit) = match size.strip_suffix('K') {
            Some(digits) => (digits, 1 << 10),
            None => (size.strip_suffix('M')?, 1 << 20),
        };
        digits.parse::<u64>().ok()?.checked_mul(unit)
    };
    root.names(&caches).into_iter().find_map(size)
}

/// Name of the hypervisor; `unknown` if only its presence is known.
fn hypervisor(root: &Root) -> Option<String> {
    if let Some(name) = root.text("sys/hypervisor/type") {
        return Some(name);
    }
    let clocks = root.text(&format!("{CLOCKS}/available_clocksource")).unwrap_or_default();
    let vendor = root.text("sys/class/dmi/id/sys_vendor").unwrap_or_default();
    let product = root.text("sys/class/dmi/id/product_name").unwrap_or_default();
    let signs = [
        (clocks.contains("kvm-clock") || product.contains("KVM"), "kvm"),
        (clocks.contains("hyperv") || product == "Virtual Machine", "hyper-v"),
        (clocks.contains("xen") || vendor == "Xen", "xen"),
        (vendor.contains("VMware"), "vmware"),
        (product == "VirtualBox", "virtualbox"),
        (vendor == "QEMU", "qemu"),
    ];
    if let Some((_, name)) = signs.iter().find(|(shows, _)| *shows) {
        return Some((*name).to_owned());
    }
    let flags = root.labelled("proc/cpuinfo", "flags")?;
    flags.split_whitespace().any(|flag| flag == "hypervisor").then(|| "unknown".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root::tests::{put, tree};

    #[test]
    fn a_whole_machine_is_described() {
        let tree = tree(&[
            ("proc/cpuinfo", "processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\nflags\t\t: fpu\n"),
            ("proc/meminfo", "MemTotal:       1024 kB\n"),
            ("proc/loadavg", "0.25 0.10 0.05 1/100 4711\n"),
            ("proc/sys/kernel/osrelease", "6.1.0\n"),
            ("sys/devices/system/cpu/online", "0-3,8\n"),
            ("sys/devices/system/cpu/cpu0/topology/thread_siblings_list", "0,2\n"),
            ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n"),
            ("sys/devices/system/cpu/cpu0/cache/index0/level", "1\n"),
            ("sys/devices/system/cpu/cpu0/cache/index0/size", "48K\n"),
            ("sys/devices/system/cpu/cpu0/cache/index2/level", "2\n"),
            ("sys/devices/system/cpu/cpu0/cache/index2/size", "2048K\n"),
            ("sys/devices/system/cpu/cpu0/cache/index3/level", "3\n"),
            ("sys/devices/system/cpu/cpu0/cache/index3/size", "32M\n"),
            ("sys/devices/system/node/online", "0-1\n"),
            ("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n"),
        ]);
        let text = |text: &str| Some(text.to_owned());
        let expected = Host {
            cpu: text("Some CPU @ 2 GHz"),
            architecture: std::env::consts::ARCH,
            cpus: Some(5),
            threads_per_core: Some(2),
            numa_nodes: Some(2),
            l2_bytes: Some(2 << 20),
            l3_bytes: Some(32 << 20),
            memory_bytes: Some(1 << 20),
            kernel: text("6.1.0"),
            hypervisor: None,
            governor: text("powersave"),
            clock_source: text("tsc"),
            load_average: Some(0.25),
        };
        assert_eq!(Host::read(tree.path()), expected);
    }

    #[test]
    fn unknown_members_of_the_host_are_absent() {
        let host = serde_json::to_value(Host::read(tree(&[]).path())).unwrap();
        let host = host.as_object().unwrap();
        assert!(host.iter().all(|(name, value)| value.is_null() != (name == "architecture")));
    }

    #[test]
    fn hypervisors_are_recognised_by_any_sign() {
        let clocks = "sys/devices/system/clocksource/clocksource0/available_clocksource";
        for (path, contents, name) in [
            ("sys/hypervisor/type", "xen", "xen"),
            (clocks, "tsc kvm-clock acpi_pm", "kvm"),
            (clocks, "tsc hyperv_clocksource_tsc_page", "hyper-v"),
            ("sys/class/dmi/id/sys_vendor", "VMware, Inc.", "vmware"),
            ("sys/class/dmi/id/sys_vendor", "QEMU", "qemu"),
            ("sys/class/dmi/id/product_name", "VirtualBox", "virtualbox"),
            ("proc/cpuinfo", "flags\t: fpu hypervisor sse", "unknown"),
        ] {
            let tree = tree(&[("proc/cpuinfo", "flags : fpu")]);
            put(&tree, path, contents);
            assert_eq!(Host::read(tree.path()).hypervisor.as_deref(), Some(name), "{contents}");
        }
    }
}
