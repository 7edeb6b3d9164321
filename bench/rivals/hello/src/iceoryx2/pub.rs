//! The publishing end over iceoryx2.
use anyhow::{Result, ensure};
use iceoryx2::prelude::*;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(5);
const CYCLE: Duration = Duration::from_millis(10);

fn main() -> Result<()> {
    let node = NodeBuilder::new().create::<ipc::Service>()?;
    let name = "hello".try_into()?;
    let service = node.service_builder(&name).publish_subscribe::<[u8]>().open_or_create()?;
    let publisher = service.publisher_builder().initial_max_slice_len(64).create()?;
    let start = Instant::now();
    while service.dynamic_config().number_of_subscribers() == 0 {
        ensure!(start.elapsed() < PATIENCE, "no subscriber came");
        node.wait(CYCLE)?;
    }
    let line = b"Hello, world";
    publisher.loan_slice_uninit(line.len())?.write_from_slice(line).send()?;
    // The sample lies in the publisher's memory, which stays until the subscriber has left.
    while service.dynamic_config().number_of_subscribers() > 0 {
        ensure!(start.elapsed() < 2 * PATIENCE, "the subscriber did not read the line");
        node.wait(CYCLE)?;
    }
    Ok(())
}
