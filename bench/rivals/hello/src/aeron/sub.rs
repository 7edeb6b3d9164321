//! The subscribing end over Aeron.
use anyhow::Result;
use rusteron_media_driver::{Aeron, BackoffIdleStrategy, Handlers, IdleStrategy};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(5);

fn main() -> Result<()> {
    let aeron = Aeron::connect_default()?;
    let subscription = aeron
        .async_add_subscription(c"aeron:ipc", 123, Handlers::NONE, Handlers::NONE)?
        .poll_blocking(PATIENCE)?;
    let mut idle = BackoffIdleStrategy::new();
    let mut received = false;
    while !received {
        let print = |line: &[u8], _| {
            println!("{}", String::from_utf8_lossy(line));
            received = true;
        };
        idle.idle(subscription.poll_fn(print, 1)?);
    }
    Ok(())
}
