//! Disturbances by other processes during a measurement.

use std::fs;

use nix::sys::resource::{UsageWho, getrusage};

/// Columns of the first line of `/proc/stat` that add up to all time, and the stolen one.
const TIME_COLUMNS: usize = 8;
const STOLEN_COLUMN: usize = 7;

/// Signs that a measured thread did not have its CPU for itself.
#[derive(Clone, Copy, Debug)]
pub struct Disturbance {
    /// Share of CPU time that the host took away from this machine.
    pub stolen_share: f64,
    /// Involuntary context switches of the measured processes.
    pub involuntary_switches: i64,
}

/// Watches from its start to its stop.
#[derive(Clone, Copy, Debug)]
pub struct Watch {
    stolen: u64,
    total: u64,
    switches: i64,
}

impl Watch {
    /// Starts watching.
    pub fn start() -> Self {
        let (stolen, total) = times();
        Self { stolen, total, switches: switches() }
    }

    /// Disturbances since the start; includes programs that have ended in between.
    pub fn stop(self) -> Disturbance {
        let (stolen, total) = times();
        let passed = total.saturating_sub(self.total).max(1);
        Disturbance {
            stolen_share: stolen.saturating_sub(self.stolen) as f64 / passed as f64,
            involuntary_switches: switches() - self.switches,
        }
    }
}

/// Stolen and total CPU time since the machine started, in clock ticks.
fn times() -> (u64, u64) {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    let first = text.lines().next().unwrap_or_default();
    let columns: Vec<u64> = first
        .split_whitespace()
        .skip(1)
        .take(TIME_COLUMNS)
        .map(|column| column.parse().unwrap_or_default())
        .collect();
    (columns.get(STOLEN_COLUMN).copied().unwrap_or_default(), columns.iter().sum())
}

fn switches() -> i64 {
    getrusage(UsageWho::RUSAGE_CHILDREN).map_or(0, |usage| usage.involuntary_context_switches())
}
