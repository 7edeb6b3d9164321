//! The other half of `ping`: sends every message back, and ends when ping does.
//!
//! Run it: `cargo run --release -p lanecast-examples --example pong`, then ping (see there).
#![forbid(unsafe_code)]

use lanecast::prelude::*;
use std::error::Error;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

fn main() -> Result<(), Box<dyn Error>> {
    let context = Context::new()?;
    let mut publisher = context.publisher("pong")?;
    let mut pings = context.subscriber("ping")?;

    let start = Instant::now();
    let (mut echoed, mut has_joined, mut is_over) = (0u64, false, false);
    let mut outcome = Ok(());
    while !is_over && outcome.is_ok() {
        let work = pings.poll(64, |event| match event {
            Event::Message(message) => {
                // Straight from one ring into the other.
                outcome = outcome.and_then(|()| publisher.send(message.bytes()));
                echoed += 1;
            }
            Event::Joined(stream) => {
                has_joined = true;
                println!("joined {stream} (pid {})", stream.pid);
            }
            Event::Left(..) => is_over = true,
            _ => {}
        });
        pings.wait(work);
        if !has_joined && start.elapsed() > PATIENCE {
            return Err("no ping came".into());
        }
    }
    outcome?;
    println!("sent {echoed} messages back");
    Ok(())
}
