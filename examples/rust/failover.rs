//! Hot failover: two publishers send the same orders, and one of them dies. The subscriber reads
//! each order once and in order.
//!
//!     cargo run -p lanecast-examples --example failover
#![forbid(unsafe_code)]

use lanecast::failover::{Failover, FailoverSettings};
use lanecast::prelude::*;
use std::error::Error;
use std::time::Duration;

const TOPIC: &str = "failover";

/// An order begins with its number, which goes on when a publisher is replaced.
fn order(number: u64) -> Vec<u8> {
    let mut bytes = number.to_le_bytes().to_vec();
    bytes.extend_from_slice(format!("order {number}").as_bytes());
    bytes
}

fn number(message: &Message<'_>) -> u64 {
    message.bytes().first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

fn main() -> Result<(), Box<dyn Error>> {
    let context = Context::new()?;
    let subscriber = context.subscriber(TOPIC)?;
    let mut feed = Failover::new(subscriber, FailoverSettings::default(), number);
    let mut publishers = [context.publisher(TOPIC)?, context.publisher(TOPIC)?];
    for publisher in &mut publishers {
        if !publisher.wait_for_subscribers(1, Duration::from_secs(10)) {
            return Err("the subscriber has not joined within 10 s".into());
        }
    }
    let [mut first, mut second] = publishers;

    // The second one is behind when the first one dies.
    (0..6).try_for_each(|number| first.send(&order(number)))?;
    (0..3).try_for_each(|number| second.send(&order(number)))?;
    drop(first);
    (3..8).try_for_each(|number| second.send(&order(number)))?;
    drop(second);

    let mut running = true;
    while running {
        feed.poll(64, |event| match event {
            Event::Message(message) => {
                println!("{}", String::from_utf8_lossy(&message.bytes()[8..]));
            }
            Event::Lost(gap) => println!("lost {} from {} on", gap.count, gap.first),
            Event::Left(_, why) => {
                println!("the last publisher has left: {why}");
                running = false;
            }
            _ => {}
        });
        feed.wait();
    }
    let counters = feed.counters();
    println!("{} orders, {} copies dropped", counters.messages, counters.duplicates);
    Ok(())
}
