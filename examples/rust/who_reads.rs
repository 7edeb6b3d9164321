//! A publisher that tells who came, who went, why, and who has not read everything. It starts
//! itself as three subscribers: one reads all, one leaves early, and one is killed.
//!
//! Run it: `cargo run -p lanecast-examples --example who_reads`
#![forbid(unsafe_code)]

use lanecast::prelude::*;
use std::error::Error;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const TOPIC: &str = "who_reads";
const MESSAGES: u64 = 1_000;

fn main() -> Result<(), Box<dyn Error>> {
    match std::env::args().nth(1).as_deref() {
        Some("all") => subscribe(MESSAGES),
        Some("some") => subscribe(10),
        Some("none") => subscribe(0),
        _ => publish(),
    }
}

fn publish() -> Result<(), Box<dyn Error>> {
    let mut publisher = Context::new()?.publisher(TOPIC)?;
    let mut children = Vec::new();
    for role in ["all", "some", "none"] {
        children.push(start(role)?);
        if !publisher.wait_for_subscribers(children.len(), Duration::from_secs(20)) {
            return Err("a subscriber did not come".into());
        }
        tell(&mut publisher);
    }
    for number in 0..MESSAGES {
        publisher.send(&number.to_le_bytes())?;
    }
    if let Some(last) = children.last_mut() {
        last.kill()?;
    }
    // Two are gone soon: one by itself, one by the kill.
    let (start, mut gone) = (Instant::now(), 0);
    while gone < 2 && start.elapsed() < Duration::from_secs(20) {
        gone += tell(&mut publisher);
        std::thread::sleep(Duration::from_millis(1));
    }
    let completion = publisher.close(Duration::from_secs(10));
    println!("complete: {}", completion.is_complete());
    println!("{completion}");
    for mut child in children {
        child.wait()?;
    }
    Ok(())
}

/// Prints the events since the last call; returns how many subscribers are gone.
fn tell(publisher: &mut Publisher) -> usize {
    let mut gone = 0;
    publisher.poll_events(|event| match event {
        PublisherEvent::SubscriberJoined(who) => println!("{who} joined"),
        PublisherEvent::SubscriberLeft(who, why) => {
            println!("{who} is gone: {why}");
            gone += 1;
        }
        PublisherEvent::Writable => println!("room again after back-pressure"),
        _ => {}
    });
    gone
}

/// Reads `count` messages and leaves; with 0, none ever.
fn subscribe(count: u64) -> Result<(), Box<dyn Error>> {
    let mut feed = Context::new()?.subscriber(TOPIC)?;
    if count == 0 {
        std::thread::sleep(Duration::from_secs(60));
    }
    let (mut read, mut running) = (0, true);
    while running {
        let left = usize::try_from(count - read)?;
        let work = feed.poll(left.max(1), |event| match event {
            Event::Message(_) => read += 1,
            Event::Left(..) => running = false,
            _ => {}
        });
        // The one that reads all waits for the end, the other one leaves.
        running &= read < count || count == MESSAGES;
        feed.wait(work);
    }
    Ok(())
}

fn start(role: &str) -> Result<Child, Box<dyn Error>> {
    let program = std::env::current_exe()?;
    Ok(Command::new(program).arg(role).stdin(Stdio::null()).spawn()?)
}
