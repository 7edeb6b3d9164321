//! The hold that the demonstration has on its parts: words for the user while they run, and a
//! signal that ends them early, in order, so that processes and directories go with them.

use crate::child::Deadline;
use anyhow::ensure;
use std::time::{Duration, Instant};

/// Longest delay until the stop flag is seen.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Progress and stop flag of a part.
#[derive(Clone, Copy)]
pub(super) struct Control<'a> {
    /// Shows what is being done.
    pub(super) step: &'a dyn Fn(&'static str),
    /// Whether to end early.
    pub(super) stop: &'a (dyn Fn() -> bool + Sync),
}

impl Control<'_> {
    /// Fails if the part is to end early.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        ensure!(!(self.stop)(), "interrupted");
        Ok(())
    }

    /// Sleeps, unless it is to end early: that is an error.
    pub(super) fn sleep(&self, time: Duration) -> anyhow::Result<()> {
        let until = Instant::now() + time;
        loop {
            self.check()?;
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(CHECK_INTERVAL));
        }
    }

    /// For how long processes are waited for.
    pub(super) fn deadline(&self, patience: Duration) -> Deadline<'_> {
        Deadline { until: Instant::now() + patience, stop: self.stop }
    }
}
