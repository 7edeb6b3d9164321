//! One network namespace: made, entered, removed; and what dead processes have left of them.
//!
//! The name, `lc<process>x<number>`, names its owner, so that a later run can see that its
//! owner has ended.

use crate::tool;
use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

const PREFIX: &str = "lc";
/// Directory of the names that `ip` keeps.
const NAMES: &str = "/run/netns";

/// A network namespace with a name; the name goes when it is dropped.
#[derive(Debug)]
pub(crate) struct Namespace {
    name: String,
}

impl Namespace {
    pub(crate) fn new() -> Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("{PREFIX}{}x{number}", std::process::id());
        tool::ip(&format!("netns add {name}\n"))?;
        let namespace = Self { name };
        namespace.ip("link set lo up\n")?;
        Ok(namespace)
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Runs `ip` commands inside.
    pub(crate) fn ip(&self, script: &str) -> Result<()> {
        tool::run("ip", &["-n", &self.name, "-batch", "-"], script).map(drop)
    }

    /// Runs an nftables script inside; what it prints.
    pub(crate) fn nft(&self, script: &str) -> Result<String> {
        tool::run("ip", &["netns", "exec", &self.name, "nft", "-f", "-"], script)
    }

    /// Calls `work` on a thread inside. Sockets that it opens stay inside for good.
    pub(crate) fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T> {
        let place = File::open(Path::new(NAMES).join(&self.name)).context(self.name.clone())?;
        std::thread::scope(|scope| {
            let worker = scope.spawn(|| {
                move_into_link_name_space(place.as_fd(), Some(LinkNameSpaceType::Network))
                    .with_context(|| format!("cannot enter {}", self.name))?;
                Ok(work())
            });
            worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if let Err(error) = remove(&self.name) {
            println!("{error:#}");
        }
    }
}

fn remove(name: &str) -> Result<()> {
    tool::run("ip", &["netns", "delete", name], "").map(drop)
}

/// Removes the namespaces whose makers are dead, and ends what still runs in them.
pub fn clear_stale() -> Result<()> {
    // The directory comes with the first namespace.
    let Ok(names) = std::fs::read_dir(NAMES) else { return Ok(()) };
    for name in names.filter_map(|entry| entry.ok()?.file_name().into_string().ok()) {
        let Some(maker) = maker(&name) else { continue };
        if Path::new("/proc").join(maker.to_string()).exists() {
            continue;
        }
        // Another run may clear the same one at the same time; the second one finds nothing.
        if let Ok(processes) = tool::run("ip", &["netns", "pids", &name], "") {
            processes.lines().filter_map(|line| line.trim().parse().ok()).for_each(end);
        }
        if remove(&name).is_ok() {
            println!("removed {name}, which a killed run had left");
        }
    }
    Ok(())
}

/// The owner of a namespace of these tests.
fn maker(name: &str) -> Option<u32> {
    let (process, number) = name.strip_prefix(PREFIX)?.split_once('x')?;
    number.parse::<u32>().ok()?;
    process.parse().ok()
}

fn end(process: i32) {
    if let Some(pid) = Pid::from_raw(process) {
        // It may have ended by itself.
        let _ = kill_process(pid, Signal::KILL);
    }
}

#[cfg(test)]
mod tests {
    use super::maker;

    #[test]
    fn only_our_names_have_a_maker() {
        assert_eq!(maker("lc4194304x12"), Some(4_194_304));
        for name in ["lc12", "lcx1", "lc1x", "lc1xa", "local1x1", "xlc1x1", "lc-1x1"] {
            assert_eq!(maker(name), None, "{name}");
        }
    }
}
