//! CPU and priority of a measured process.
//!
//! On a kernel with autogroups, `nice` counts only inside one login session: a build in another
//! session takes the same share as a measured process. So each measured process gets a session of
//! its own and raises that session's group.

use std::fs;
use std::io;

use anyhow::{Context, Result};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::unistd::{Pid, setsid};

/// Weight of the group, as a nice value; −19 is the last but one before the strongest.
pub const GROUP_NICE: i32 = -19;
const GROUP_FILE: &str = "/proc/self/autogroup";

/// Pins the calling thread, and the threads that it will start, to one CPU.
///
/// # Errors
///
/// When the CPU does not exist or may not be used.
pub fn pin(cpu: usize) -> Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu).with_context(|| format!("CPU {cpu} is out of range"))?;
    sched_setaffinity(Pid::from_raw(0), &set).with_context(|| format!("cannot pin to CPU {cpu}"))
}

/// Makes the process the head of a session of its own and raises the session's group. A process
/// that already heads its session keeps it.
///
/// # Errors
///
/// When the group's weight may not be changed: the figures then depend on what else runs.
pub fn raise() -> io::Result<()> {
    // A process that heads its group cannot make a new session; it is alone in its own already.
    let _ = setsid();
    fs::write(GROUP_FILE, GROUP_NICE.to_string())
}

/// Asks the kernel to end this process when the one that started it ends.
///
/// # Errors
///
/// What the kernel reports.
pub fn end_with_parent() -> io::Result<()> {
    Ok(prctl::set_pdeathsig(Signal::SIGKILL)?)
}
