//! Topics by pattern: one subscriber for topics that need not exist yet. New ones that match join
//! by themselves, each event names its topic, and a filter works on all of them.
//!
//! Run it: `cargo run -p lanecast-examples --example pattern`
#![forbid(unsafe_code)]

use lanecast::prelude::*;
use std::error::Error;
use std::time::Duration;

fn main() -> Result<(), Box<dyn Error>> {
    let context = Context::new()?;
    // `*` stands for one level of a name, `**` for any number of them. A topic that several
    // patterns match is subscribed to once.
    let mut feed = context.pattern("prices.*").or("prices.to**").subscriber()?;

    let mut london = context.publisher("prices.london")?;
    let mut tokyo = context.publisher("prices.tokyo")?;
    let mut orders = context.publisher("orders.london")?;
    for publisher in [&mut london, &mut tokyo] {
        if !publisher.wait_for_subscribers(1, Duration::from_secs(10)) {
            return Err("the subscriber did not come".into());
        }
    }
    london.send(b"100.25")?;
    tokyo.send(b"101.5")?;
    orders.send(b"not for this subscriber")?;
    drop((london, tokyo, orders));

    let (mut joined, mut left) = (0, 0);
    while joined < 2 || left < joined {
        let work = feed.poll(64, |event| match event {
            Event::Joined(stream) => {
                joined += 1;
                println!("{} has joined", stream.topic);
            }
            Event::Message(message) => {
                let text = String::from_utf8_lossy(message.bytes());
                println!("{}: {text}", message.stream().topic);
            }
            Event::Left(stream, why) => {
                left += 1;
                println!("{} has left: {why}", stream.topic);
            }
            other => println!("{other:?}"),
        });
        feed.wait(work);
    }
    Ok(())
}
