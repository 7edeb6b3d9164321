//! Figures of one interval of a run, as the `-f` file has them.

use serde::Serialize;
use std::fmt;
use std::fs;

/// Memory of the host and of the process, in bytes. Values that the system does not tell are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Memory of the host that programs can still have.
    pub free: u64,
    /// Memory of the host.
    pub total: u64,
    /// Memory of this process.
    pub resident: u64,
}

impl Memory {
    /// The memory now.
    pub fn now() -> Self {
        let host = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let own = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let (free, total) = (kib(&host, "MemAvailable:"), kib(&host, "MemTotal:"));
        Self { free, total, resident: kib(&own, "VmRSS:") }
    }
}

/// The bytes in a line such as `MemTotal:  24014456 kB`.
fn kib(text: &str, label: &str) -> u64 {
    let value = text.lines().find_map(|line| line.strip_prefix(label));
    let number = value.and_then(|value| value.split_whitespace().next()?.parse::<u64>().ok());
    number.unwrap_or(0).saturating_mul(1024)
}

/// Figures of an interval of `log_interval` received messages.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct IntervalSample {
    /// Messages received since the start.
    pub count: u64,
    /// Messages per second, within the interval.
    pub rate: f64,
    /// Bytes per second, within the interval.
    pub bytes_per_second: f64,
    /// Time since the first message, in nanoseconds.
    pub elapsed_ns: u64,
    /// Memory of the host that programs can still have, in bytes.
    pub free_bytes: u64,
    /// Memory of the host, in bytes.
    pub total_bytes: u64,
    /// Memory of the process, in bytes.
    pub resident_bytes: u64,
}

impl IntervalSample {
    /// Heading of the `-f` file.
    pub const COLUMNS: &str =
        "count,rate_per_s,throughput_mb_per_s,time_ms,free_bytes,total_bytes,resident_bytes";

    pub(super) fn new(count: u64, elapsed_ns: u64, since: (u64, u64), size: usize) -> Self {
        let (first, began_ns) = since;
        let seconds = elapsed_ns.saturating_sub(began_ns).max(1) as f64 / 1e9;
        let rate = count.saturating_sub(first) as f64 / seconds;
        let memory = Memory::now();
        Self {
            count,
            rate,
            bytes_per_second: rate * size as f64,
            elapsed_ns,
            free_bytes: memory.free,
            total_bytes: memory.total,
            resident_bytes: memory.resident,
        }
    }
}

/// A line of the `-f` file.
impl fmt::Display for IntervalSample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{},{:.1},{:.3},{:.3},{},{},{}",
            self.count,
            self.rate,
            self.bytes_per_second / 1e6,
            self.elapsed_ns as f64 / 1e6,
            self.free_bytes,
            self.total_bytes,
            self.resident_bytes
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read() {
        let memory = Memory::now();
        assert!(memory.free > 0 && memory.free <= memory.total, "{memory:?}");
        assert!(memory.resident > 0 && memory.resident < memory.total, "{memory:?}");
        assert_eq!(kib("MemTotal:  3 kB\n", "MemTotal:"), 3072);
        assert_eq!(kib("", "MemTotal:"), 0);
    }

    #[test]
    fn a_line_has_a_field_for_each_column() {
        let sample = IntervalSample::new(3000, 2_000_000_000, (1000, 1_000_000_000), 500);
        assert_eq!((sample.rate, sample.bytes_per_second), (2000.0, 1e6));
        let line = sample.to_string();
        assert!(line.starts_with("3000,2000.0,1.000,2000.000,"), "{line}");
        assert_eq!(line.split(',').count(), IntervalSample::COLUMNS.split(',').count());
    }
}
