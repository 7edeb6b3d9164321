//! The limit of open files, which servers with many clients raise.

use anyhow::Context;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs::File;

/// Descriptors of a server besides those of its clients.
const OWN: u64 = 128;

/// Raises the limit of open files for so many clients: each takes a descriptor, and the usual limit
/// is small.
///
/// # Errors
/// If the system's own maximum is lower.
pub(crate) fn reserve(clients: usize) -> anyhow::Result<()> {
    let needed = clients as u64 + OWN;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    let maximum = limit.maximum;
    setrlimit(Resource::Nofile, Rlimit { current: Some(needed), maximum }).with_context(|| {
        format!(
            "{clients} clients take {needed} open files, and this process may have no more than \
             {}: allow fewer by --clients-max, or raise `ulimit -n`",
            maximum.unwrap_or(0)
        )
    })
}

/// Raises the limit of open files as far as the system lets it: for a server that takes some for
/// each topic, and learns of topics while it runs.
pub(crate) fn raise() {
    let maximum = getrlimit(Resource::Nofile).maximum;
    // With the usual limit it serves fewer topics well.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

/// Whether this process, or the system, has no descriptor left.
pub(crate) fn are_used_up() -> bool {
    File::open("/dev/null").is_err()
}
