//! Capabilities of a thread, taken away for a while.

use anyhow::{Context, Result};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

/// Calls `work` on this thread without the capabilities `taken`, which it has again afterwards.
/// Threads that `work` starts are without them for good; programs of root have them again.
pub fn without<T>(taken: CapabilitySet, work: impl FnOnce() -> T) -> Result<T> {
    let before = capabilities(None).context("cannot read capabilities")?;
    let effective = before.effective.difference(taken);
    set_capabilities(None, CapabilitySets { effective, ..before }).context("cannot drop them")?;
    let result = work();
    set_capabilities(None, before).context("cannot take them back")?;
    Ok(result)
}
