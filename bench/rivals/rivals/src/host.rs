//! The machine that the figures belong to.

use std::fs;
use std::process::Command;
use std::thread;

use serde::Serialize;

use rivals_kit::placement::GROUP_NICE;

use crate::raise::REFUSED;

/// What a reader has to know about the machine.
#[derive(Clone, Debug, Serialize)]
pub struct Host {
    /// Name of the processor.
    pub processor: String,
    /// CPUs that may be used.
    pub cpus: usize,
    /// Release of the kernel.
    pub kernel: String,
    /// Clock source of the kernel.
    pub clock_source: String,
    /// Whether the measured processes could be raised above others.
    pub raised: bool,
    /// Load average of the last minute at the start.
    pub load_before: f64,
}

impl Host {
    /// Looks at the machine.
    pub fn look() -> Self {
        let cpu_info = read("/proc/cpuinfo");
        let processor = cpu_info.lines().find_map(|line| line.strip_prefix("model name"));
        Self {
            processor: processor
                .map_or("unknown", |rest| rest.trim_matches([' ', '\t', ':']))
                .into(),
            cpus: thread::available_parallelism().map_or(1, usize::from),
            kernel: read("/proc/sys/kernel/osrelease"),
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
        format!(
            "{}, {} CPUs, Linux {}, clock source {}, load {:.2} at the start; {raised}",
            self.processor, self.cpus, self.kernel, self.clock_source, self.load_before
        )
    }
}

/// Load average of the last minute.
pub fn load() -> f64 {
    let text = read("/proc/loadavg");
    text.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or_default()
}

/// Tries it on a program that does nothing.
fn can_raise() -> bool {
    let Ok(own) = std::env::current_exe() else { return false };
    let output = Command::new(own).args(["raise", "true"]).output();
    output.is_ok_and(|output| !String::from_utf8_lossy(&output.stderr).contains(REFUSED))
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}
