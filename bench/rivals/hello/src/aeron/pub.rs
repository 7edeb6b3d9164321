//! The publishing end over Aeron.
use anyhow::{Result, ensure};
use rusteron_media_driver::{Aeron, BackoffIdleStrategy, IdleStrategy};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(5);

fn main() -> Result<()> {
    let aeron = Aeron::connect_default()?;
    let publication = aeron.async_add_publication(c"aeron:ipc", 123)?.poll_blocking(PATIENCE)?;
    let mut idle = BackoffIdleStrategy::new();
    let start = Instant::now();
    while let Err(error) = publication.offer(b"Hello, world") {
        ensure!(error.is_retryable() && start.elapsed() < PATIENCE, "no subscriber came: {error}");
        idle.idle(0);
    }
    Ok(())
}
