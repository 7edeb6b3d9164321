//! The machine that the figures belong to.

use std::env::consts::ARCH;
use std::fs;
use std::process::Command;
use std::thread;

use serde_json::{Value, json};

use rivals_kit::placement::GROUP_NICE;

use crate::raise::REFUSED;

/// Description of the machine, for readers of the figures.
#[derive(Clone, Debug)]
pub struct Host {
    processor: Option<String>,
    cpus: usize,
    memory_bytes: Option<u64>,
    /// Release of the kernel.
    pub kernel: Option<String>,
    governor: Option<String>,
    clock_source: Option<String>,
    /// Whether the measured processes could be raised above others.
    pub raised: bool,
    load_before: f64,
}

impl Host {
    /// Looks at the machine.
    pub fn look() -> Self {
        Self {
            processor: entry("/proc/cpuinfo", "model name"),
            cpus: thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: memory_bytes(),
            kernel: read("/proc/sys/kernel/osrelease"),
            governor: read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            clock_source: read("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
            raised: can_raise(),
            load_before: load(),
        }
    }

    /// One line for the head of the report.
    pub fn line(&self) -> String {
        let raised = if self.raised {
            format!("measured processes in sessions of their own, raised to {GROUP_NICE}")
        } else {
            "measured processes NOT raised (no permission): figures depend on what else runs".into()
        };
        let or_unknown = |name: &Option<String>| name.as_deref().unwrap_or("unknown").to_owned();
        format!(
            "{}, {} CPUs, Linux {}, clock source {}, load {:.2} at the start; {raised}",
            or_unknown(&self.processor),
            self.cpus,
            or_unknown(&self.kernel),
            or_unknown(&self.clock_source),
            self.load_before
        )
    }

    /// The machine as the lines tell it; null is what is not known here.
    pub fn members(&self) -> Value {
        json!({
            "cpu": self.processor,
            "architecture": ARCH,
            "cpus": self.cpus,
            "threads_per_core": null,
            "numa_nodes": null,
            "l2_bytes": null,
            "l3_bytes": null,
            "memory_bytes": self.memory_bytes,
            "kernel": self.kernel,
            "hypervisor": null,
            "governor": self.governor,
            "clock_source": self.clock_source,
            "load_average": self.load_before,
        })
    }
}

/// Load average of the last minute.
pub fn load() -> f64 {
    let text = read("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or_default()
}

/// Tries it on a program that does nothing.
fn can_raise() -> bool {
    let Ok(own) = std::env::current_exe() else { return false };
    let output = Command::new(own).args(["raise", "true"]).output();
    output.is_ok_and(|output| !String::from_utf8_lossy(&output.stderr).contains(REFUSED))
}

fn memory_bytes() -> Option<u64> {
    let text = entry("/proc/meminfo", "MemTotal")?;
    let kib: u64 = text.strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// Value after a name and a colon.
fn entry(path: &str, name: &str) -> Option<String> {
    let text = read(path)?;
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(rest.trim_matches([' ', '\t', ':']).to_owned())
}

fn read(path: &str) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}
