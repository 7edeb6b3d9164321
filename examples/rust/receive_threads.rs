//! Receive threads: four publishers over the network, whose sessions two threads of the
//! subscriber's context serve, while one handler gets all messages.
//!
//!     cargo run -p lanecast-examples --example receive_threads
//!
//! While it runs, `lanecast stat` shows which thread serves each session (`receive thread`).
#![forbid(unsafe_code)]

use lanecast::prelude::*;
use std::collections::BTreeMap;
use std::error::Error;
use std::thread;
use std::time::Duration;

const TOPIC: &str = "receive_threads";
const PUBLISHERS: usize = 4;
const MESSAGES: u64 = 10_000;

type AnyError = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), AnyError> {
    let context =
        Context::builder().set("transports", "ru")?.set("net.receive_threads", 2)?.build()?;
    let mut feed = context.subscriber(TOPIC)?;
    let publishing: Vec<_> = (0..PUBLISHERS)
        .map(|_| {
            let mut publisher = context.publisher(TOPIC)?;
            Ok(thread::spawn(move || -> Result<Completion, AnyError> {
                if !publisher.wait_for_subscribers(1, Duration::from_secs(60)) {
                    return Err("the subscriber has not joined within a minute".into());
                }
                for number in 0..MESSAGES {
                    // Waits for room if the subscriber is a whole window behind.
                    publisher.send(&number.to_le_bytes())?;
                }
                Ok(publisher.close(Duration::from_secs(60)))
            }))
        })
        .collect::<Result<_, AnyError>>()?;

    // The number of the next message of each publisher: threads keep the order of each.
    let (mut next, mut left) = (BTreeMap::new(), 0);
    while left < PUBLISHERS {
        let work = feed.poll(256, |event| match event {
            Event::Message(message) => {
                let next = next.entry(message.stream().session.0).or_insert(0);
                assert_eq!(message.bytes(), u64::to_le_bytes(*next));
                *next += 1;
            }
            Event::Lost(gap) => println!("lost {}: {}", gap.count, gap.why.describe()),
            Event::Left(stream, why) => {
                println!("left {stream}: {why}");
                left += 1;
            }
            _ => {}
        });
        feed.wait(work);
    }
    for publisher in publishing {
        let completion = publisher.join().map_err(|_| "a publisher panicked")??;
        println!("{completion}");
    }
    println!("{} messages of {} publishers", next.values().sum::<u64>(), next.len());
    Ok(())
}
