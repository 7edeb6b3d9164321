//! One publisher thread and two subscriber threads in one program, with no file anywhere.
//!
//! The calls are those between programs; without the setting `shm.visibility`, other programs could
//! subscribe as well, and the threads would still read the publisher's memory directly.
//!
//! Run it: `cargo run -p lanecast-examples --example threads`
#![forbid(unsafe_code)]

use lanecast::prelude::*;
use std::error::Error;
use std::thread;
use std::time::Duration;

const TOPIC: &str = "threads";
const MESSAGES: u64 = 100_000;

fn main() -> Result<(), Box<dyn Error>> {
    let context = Context::builder().set("shm.visibility", "process")?.build()?;
    let mut publisher = context.publisher(TOPIC)?;
    // Ends in one process join at once, without waiting.
    let (sum, largest) = (context.subscriber(TOPIC)?, context.subscriber(TOPIC)?);
    println!("{} has {} subscribers", publisher.source(), publisher.subscribers());

    let sum = thread::spawn(|| fold(sum, u64::wrapping_add));
    let largest = thread::spawn(|| fold(largest, u64::max));
    let completion = thread::spawn(move || -> Result<Completion, ClaimError> {
        for number in 1..=MESSAGES {
            let mut claim = publisher.claim(8)?;
            claim.copy_from_slice(&number.to_le_bytes());
            claim.commit();
        }
        Ok(publisher.close(Duration::from_secs(10)))
    });

    let completion = completion.join().map_err(|_| "the publisher panicked")??;
    let sum = sum.join().map_err(|_| "a subscriber panicked")?;
    let largest = largest.join().map_err(|_| "a subscriber panicked")?;
    println!("{MESSAGES} numbers: {completion}; sum {sum}, largest {largest}");
    if (sum, largest) == (MESSAGES * (MESSAGES + 1) / 2, MESSAGES) {
        Ok(())
    } else {
        Err("that is not what was published".into())
    }
}

/// Folds all numbers with `step`, from 0 to the end of the stream.
fn fold(mut feed: Subscriber, step: impl Fn(u64, u64) -> u64) -> u64 {
    let (mut value, mut running) = (0, true);
    while running {
        let work = feed.poll(256, |event| match event {
            Event::Message(message) => {
                let number = message.bytes().first_chunk().map_or(0, |b| u64::from_le_bytes(*b));
                value = step(value, number);
            }
            Event::Left(..) => running = false,
            _ => {}
        });
        feed.wait(work);
    }
    value
}
