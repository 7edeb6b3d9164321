//! The subscribing end over iceoryx2.
use anyhow::Result;
use iceoryx2::prelude::*;
use std::time::Duration;

const CYCLE: Duration = Duration::from_millis(10);

fn main() -> Result<()> {
    let node = NodeBuilder::new().create::<ipc::Service>()?;
    let name = "hello".try_into()?;
    let service = node.service_builder(&name).publish_subscribe::<[u8]>().open_or_create()?;
    let subscriber = service.subscriber_builder().create()?;
    let sample = loop {
        match subscriber.receive()? {
            Some(sample) => break sample,
            None => node.wait(CYCLE)?,
        }
    };
    println!("{}", String::from_utf8_lossy(sample.payload()));
    Ok(())
}
