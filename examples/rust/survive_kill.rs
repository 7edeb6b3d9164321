//! Effect of `kill -9` on the others: none if a subscriber dies; the end of the stream after the
//! last message, if the publisher does. The program starts itself as the three others.
//!
//! Run it: `cargo run -p lanecast-examples --example survive_kill`
#![forbid(unsafe_code)]

use lanecast::prelude::*;
use std::error::Error;
use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

const TOPIC: &str = "survive_kill";
/// A subscriber tells of every so many messages: more than fit between it and its publisher.
const STEP: u64 = 100_000;

fn main() -> Result<(), Box<dyn Error>> {
    match std::env::args().nth(1).as_deref() {
        Some("publisher") => publish(),
        Some("subscriber") => subscribe(),
        _ => direct(),
    }
}

fn publish() -> Result<(), Box<dyn Error>> {
    let mut publisher = Context::new()?.publisher(TOPIC)?;
    if !publisher.wait_for_subscribers(2, Duration::from_secs(20)) {
        return Err("two subscribers did not come".into());
    }
    let mut number = 0u64;
    while !number.is_multiple_of(STEP) || publisher.subscribers() > 0 {
        publisher.send(&number.to_le_bytes())?;
        number += 1;
    }
    Ok(())
}

fn subscribe() -> Result<(), Box<dyn Error>> {
    let mut feed = Context::new()?.subscriber(TOPIC)?;
    let (mut read, mut missing, mut over) = (0u64, 0u64, None);
    while over.is_none() {
        let work = feed.poll(256, |event| match event {
            Event::Message(message) => {
                missing += u64::from(message.bytes() != read.to_le_bytes());
                read += 1;
                if read.is_multiple_of(STEP) {
                    println!("has read {read} messages");
                }
            }
            Event::Left(_, why) => over = Some(why),
            _ => {}
        });
        feed.wait(work);
    }
    let why = over.map_or("is there", CloseReason::describe);
    println!("read {read} messages, {missing} out of order; then the publisher {why}");
    Ok(())
}

fn direct() -> Result<(), Box<dyn Error>> {
    let (mut survivor, mut victim) = (Actor::start("subscriber")?, Actor::start("subscriber")?);
    let mut publisher = Actor::start("publisher")?;
    println!("survivor: {}", survivor.line()?);
    println!("victim:   {}", victim.line()?);
    victim.0.kill()?;
    println!("victim:   killed; were it not found dead, it would hold the publisher up");
    for _ in 0..3 {
        println!("survivor: {}", survivor.line()?);
    }
    publisher.0.kill()?;
    let mut last = survivor.line()?;
    while last.starts_with("has") {
        last = survivor.line()?;
    }
    println!("survivor: {last}");
    Ok(())
}

/// A process of this program, which does not outlive the one that started it.
struct Actor(Child, Lines<BufReader<ChildStdout>>);

impl Actor {
    fn start(role: &str) -> Result<Self, Box<dyn Error>> {
        let program = std::env::current_exe()?;
        let mut child = Command::new(program).arg(role).stdout(Stdio::piped()).spawn()?;
        let output = child.stdout.take().ok_or("no pipe")?;
        Ok(Self(child, BufReader::new(output).lines()))
    }

    fn line(&mut self) -> Result<String, Box<dyn Error>> {
        Ok(self.1.next().ok_or("a process ended early")??)
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
