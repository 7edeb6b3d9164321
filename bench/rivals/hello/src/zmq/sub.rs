//! The subscribing end over ØMQ.
use anyhow::Result;

fn main() -> Result<()> {
    let context = zmq::Context::new();
    let subscriber = context.socket(zmq::SUB)?;
    subscriber.connect("ipc://hello")?;
    subscriber.set_subscribe(b"")?;
    let line = subscriber.recv_bytes(0)?;
    println!("{}", String::from_utf8_lossy(&line));
    Ok(())
}
