//! Publishers and subscribers on hosts.

use anyhow::{Result, ensure};
use lanecast_system_tests::{Actor, Host, Left};

/// All transports.
pub(crate) const ALL: [&str; 3] = ["rm", "ru", "tcp"];

/// Settings that keep a busy machine from looking like a dead host. And the kernel's own recovery
/// of a stream doubles its pauses up to many seconds.
pub(crate) const PATIENT: &str = "liveness=20000";

/// Whether there is time for more.
pub(crate) fn has_time() -> bool {
    std::env::var_os("LONG_TESTS").is_some()
}

/// A publisher that has begun; `words` beyond its transport.
pub(crate) fn publisher(host: &Host, transport: &str, words: &str) -> Result<Actor> {
    let mut actor = Actor::start(host, &format!("publish transport={transport} {words}"))?;
    actor.tells("session")?;
    Ok(actor)
}

/// A subscriber that has begun.
pub(crate) fn subscriber(host: &Host, words: &str) -> Result<Actor> {
    let mut actor = Actor::start(host, &format!("subscribe {words}"))?;
    actor.tells("began")?;
    Ok(actor)
}

/// The publisher has sent `sent` messages on the topic and closed: everything from the first one
/// on was read, and nothing lost.
pub(crate) fn check_whole(left: &Left, sent: u64) -> Result<()> {
    ensure!(left.why == "closed" && left.lost == 0 && left.next == sent, "of {sent}: {left:?}");
    Ok(())
}
