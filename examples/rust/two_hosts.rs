//! A topic between two hosts: a publisher on one, any number of subscribers on others.
//!
//! On one host, in two terminals:
//!     cargo run -p lanecast-examples --example two_hosts -- subscribe
//!     cargo run -p lanecast-examples --example two_hosts -- publish
//! On two, each named by the network that both are in:
//!     cargo run -p lanecast-examples --example two_hosts -- subscribe 10.0.0.0/8
//!     cargo run -p lanecast-examples --example two_hosts -- publish 10.0.0.0/8
//! A third word chooses the way: ru (the default), rm, tcp, or shm+ru and the like.
#![forbid(unsafe_code)]

use lanecast::prelude::*;
use std::error::Error;
use std::time::Duration;

const TOPIC: &str = "two_hosts";

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let word = |index: usize| words.get(index).map(String::as_str);
    let context = Context::builder()
        .set("net.interface", word(1).unwrap_or("127.0.0.1"))?
        .set("transports", word(2).unwrap_or("ru"))?
        .build()?;
    match word(0) {
        Some("publish") => publish(&context),
        Some("subscribe") => subscribe(&context),
        _ => Err("write publish or subscribe, then the interface, then the transports".into()),
    }
}

fn publish(context: &Context) -> Result<(), Box<dyn Error>> {
    let mut publisher = context.publisher(TOPIC)?;
    println!("publishing from {}", publisher.source());
    if !publisher.wait_for_subscribers(1, Duration::from_secs(60)) {
        return Err("no subscriber came within a minute".into());
    }
    for number in 0..10 {
        // Waits for room if a subscriber is a whole window behind.
        publisher.send(format!("message {number}").as_bytes())?;
    }
    let completion = publisher.close(Duration::from_secs(10));
    println!("10 messages: {completion}");
    Ok(())
}

fn subscribe(context: &Context) -> Result<(), Box<dyn Error>> {
    let mut feed = context.subscriber(TOPIC)?;
    let mut running = true;
    while running {
        let work = feed.poll(64, |event| match event {
            Event::Joined(stream) => println!("joined {stream}"),
            Event::Message(message) => {
                println!("read   {}", String::from_utf8_lossy(message.bytes()));
            }
            // Nothing is lost in silence.
            Event::Lost(gap) => println!("lost   {}: {}", gap.count, gap.why.describe()),
            Event::Left(stream, why) => {
                println!("left   {stream}: {why}");
                running = false;
            }
            _ => {}
        });
        feed.wait(work);
    }
    Ok(())
}
