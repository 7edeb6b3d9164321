//! The publishing end over ØMQ.
use anyhow::{Context, Result};

fn main() -> Result<()> {
    let context = zmq::Context::new();
    let publisher = context.socket(zmq::XPUB)?;
    publisher.set_rcvtimeo(5_000)?;
    publisher.bind("ipc://hello")?;
    publisher.recv_bytes(0).context("no subscriber came")?;
    publisher.send("Hello, world", 0)?;
    Ok(())
}
