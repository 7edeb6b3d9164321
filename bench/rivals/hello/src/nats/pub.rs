//! The publishing end over NATS.
use anyhow::{Result, ensure};
use async_nats::RequestErrorKind;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(5);

#[tokio::main]
async fn main() -> Result<()> {
    let client = async_nats::connect("127.0.0.1:4222").await?;
    let start = Instant::now();
    // A request: only its answer tells whether there is a subscriber.
    while let Err(error) = client.request("hello", "Hello, world".into()).await {
        let is_early = error.kind() == RequestErrorKind::NoResponders;
        ensure!(is_early && start.elapsed() < PATIENCE, "no subscriber came: {error}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}
