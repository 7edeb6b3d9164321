//! The publishing end over lanecast.
use anyhow::{Result, ensure};
use lanecast::prelude::*;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(5);

fn main() -> Result<()> {
    let mut publisher = Context::new()?.publisher("hello")?;
    ensure!(publisher.wait_for_subscribers(1, PATIENCE), "no subscriber came");
    publisher.send(b"Hello, world")?;
    ensure!(publisher.close(PATIENCE).is_complete(), "the subscriber did not read the line");
    Ok(())
}
