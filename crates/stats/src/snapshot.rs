//! Snapshots of a domain's counters; two of them give rates.

use crate::reader::{StatsReport, list_files, read_file};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The counters of a domain's processes at one moment.
#[derive(Debug)]
pub struct StatsSnapshot {
    /// Time of the snapshot.
    pub at: Instant,
    /// Contents of each counters file, ordered by process number.
    pub reports: Vec<StatsReport>,
    /// Files that could not be read, each with its error.
    pub unreadable: Vec<(PathBuf, io::Error)>,
}

impl StatsSnapshot {
    /// Reads the counters files in `directory`.
    ///
    /// # Errors
    /// If the directory cannot be read.
    pub fn take(directory: &Path) -> io::Result<Self> {
        let mut taken = Self { at: Instant::now(), reports: Vec::new(), unreadable: Vec::new() };
        for path in list_files(directory)? {
            match read_file(&path) {
                Ok(report) => taken.reports.push(report),
                // The process ended and removed its file in the meantime.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => taken.unreadable.push((path, error)),
            }
        }
        taken.reports.sort_by(|a, b| (a.process.pid, &a.path).cmp(&(b.process.pid, &b.path)));
        taken.unreadable.sort_by(|(a, _), (b, _)| a.cmp(b));
        Ok(taken)
    }

    /// Growth per second of each counter of the later `report` since this snapshot; `None` if its
    /// file was absent then, or had other counters.
    pub fn rates_until(&self, report: &StatsReport, at: Instant) -> Option<Vec<f64>> {
        let then = self.reports.iter().find(|earlier| earlier.path == report.path)?;
        let pairs = then.counters.iter().zip(&report.counters);
        let same = then.counters.len() == report.counters.len()
            && pairs.clone().all(|(then, now)| then.label == now.label);
        let elapsed = at.duration_since(self.at);
        same.then(|| pairs.map(|(then, now)| per_second(then.value, now.value, elapsed)).collect())
    }
}

/// Growth per second of a counter modulo 2^64; 0 for a counter that decreased, which only damage
/// can cause.
pub fn per_second(then: u64, now: u64, elapsed: Duration) -> f64 {
    let growth = now.wrapping_sub(then);
    if growth > u64::MAX / 2 || elapsed.is_zero() {
        return 0.0;
    }
    growth as f64 / elapsed.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CounterLayout, Counters};

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn rates_are_growth_over_time() {
        assert_eq!(per_second(10, 30, 2 * SECOND), 10.0);
        assert_eq!(per_second(u64::MAX, 4, SECOND), 5.0, "modulo 2^64");
        assert_eq!(per_second(7, 6, SECOND), 0.0, "counters do not shrink");
        assert_eq!(per_second(0, 9, Duration::ZERO), 0.0);
    }

    #[test]
    fn processes_come_and_go_between_snapshots() {
        let name = format!("lanecast-snapshot-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir(&directory).unwrap();
        let stays =
            Counters::create(&directory, 0o600, &CounterLayout::process(&["a", "b"], 0)).unwrap();
        let goes = Counters::create(&directory, 0o600, &CounterLayout::process(&["a"], 0)).unwrap();
        std::fs::write(directory.join("x.stats"), b"nonsense").unwrap();
        let before = StatsSnapshot::take(&directory).unwrap();
        assert_eq!((before.reports.len(), before.unreadable.len()), (2, 1));
        drop(goes);
        let comes =
            Counters::create(&directory, 0o600, &CounterLayout::process(&["a"], 0)).unwrap();
        stays.add(1, 6);
        let after = StatsSnapshot::take(&directory).unwrap();
        let at = before.at + 2 * SECOND;
        let rates: Vec<_> = after.reports.iter().map(|r| before.rates_until(r, at)).collect();
        assert!(rates.contains(&Some(vec![0.0, 3.0])), "{rates:?}");
        assert!(rates.contains(&None), "the new file: {rates:?}");
        drop((stays, comes));
        std::fs::remove_dir_all(directory).unwrap();
    }
}
