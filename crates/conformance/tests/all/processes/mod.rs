//! Transports between real processes: order, life, and death at any instruction. Most is about
//! shared memory, whose processes share more; `network_runs` is about the transports between hosts.
//!
//! The test executable plays the other processes itself: see `actor`.

mod actor;
mod child;
mod deaths;
mod doors;
mod killer;
mod ledger;
mod network;
mod network_runs;
mod runs;
mod shortage;
mod stalls;
mod witness;

use lanecast_shm::{Domain, DomainSettings, SessionReport, SlowConsumerPolicy, inspect};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The longest that any test waits for anything.
const PATIENCE: Duration = Duration::from_secs(30);

/// A directory for one test's domain.
struct Scene {
    directory: TempDir,
    liveness: Duration,
    slow_consumer: SlowConsumerPolicy,
}

impl Scene {
    fn new() -> Self {
        Self {
            directory: TempDir::new_in("/dev/shm").expect("a directory"),
            liveness: Duration::from_millis(200),
            slow_consumer: SlowConsumerPolicy::Wait,
        }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("domain")
    }

    fn settings(&self) -> DomainSettings {
        settings(&self.path(), self.liveness, self.slow_consumer)
    }

    fn domain(&self) -> Domain {
        Domain::open(self.settings()).expect("a domain")
    }

    /// The one session of the domain, as others see it.
    fn session(&self) -> Option<SessionReport> {
        let mut reports = inspect(&self.path()).expect("the directory");
        assert!(reports.len() <= 1, "one session");
        reports.pop().and_then(Result::ok)
    }
}

/// The settings that all processes of a test share: a small window, soon full.
fn settings(
    directory: &Path,
    liveness: Duration,
    slow_consumer: SlowConsumerPolicy,
) -> DomainSettings {
    DomainSettings {
        directory: directory.to_owned(),
        window_bytes: 64 << 10,
        liveness,
        slow_consumer,
        ..DomainSettings::default()
    }
}

/// Looks until `done`; returns how long it took.
fn until(what: &str, mut done: impl FnMut() -> bool) -> Duration {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < PATIENCE, "waited in vain: {what}");
        std::thread::yield_now();
    }
    start.elapsed()
}
