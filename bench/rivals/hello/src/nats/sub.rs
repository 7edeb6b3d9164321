//! The subscribing end over NATS.
use anyhow::{Context, Result};
use futures_util::StreamExt;

#[tokio::main]
async fn main() -> Result<()> {
    let client = async_nats::connect("127.0.0.1:4222").await?;
    let mut subscriber = client.subscribe("hello").await?;
    let message = subscriber.next().await.context("the connection closed")?;
    println!("{}", String::from_utf8_lossy(&message.payload));
    client.publish(message.reply.context("no request")?, "".into()).await?;
    client.flush().await?;
    Ok(())
}
