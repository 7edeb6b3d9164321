//! Waiting for a condition, for a limited time.

use anyhow::{Result, bail};
use std::time::{Duration, Instant};

/// Between two looks at a condition.
const LOOK: Duration = Duration::from_millis(2);

/// Waits until `found` gives something, but not longer than `limit`; `what` is for the error.
pub fn wait_for<T>(
    what: &str,
    limit: Duration,
    mut found: impl FnMut() -> Result<Option<T>>,
) -> Result<T> {
    let start = Instant::now();
    loop {
        if let Some(value) = found()? {
            return Ok(value);
        }
        if start.elapsed() > limit {
            bail!("waited {limit:?} in vain for {what}");
        }
        std::thread::sleep(LOOK);
    }
}
