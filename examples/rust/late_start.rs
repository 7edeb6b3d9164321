//! Any order of starting: a subscriber that is there before its publisher gets everything, one
//! that comes late begins with what is published next (the live edge).
//!
//! Run it: `cargo run -p lanecast-examples --example late_start`
#![forbid(unsafe_code)]

use lanecast::SessionId;
use lanecast::prelude::*;
use std::error::Error;
use std::time::Duration;

const TOPIC: &str = "late_start";

fn main() -> Result<(), Box<dyn Error>> {
    let context = Context::new()?;
    // No publisher yet: that is no error.
    let early = context.subscriber(TOPIC)?;
    let mut publisher = context.publisher(TOPIC)?;
    wait_for(&mut publisher, 1)?;
    publish(&mut publisher, 0..5)?;

    let late = context.subscriber(TOPIC)?;
    wait_for(&mut publisher, 2)?;
    publish(&mut publisher, 5..10)?;

    let session = publisher.session();
    drop(publisher);
    let (early, late) = (read_all(early, session), read_all(late, session));
    println!("the early one read {early:?}");
    println!("the late one read  {late:?}");
    if early != (0..10).collect::<Vec<_>>() || late != (5..10).collect::<Vec<_>>() {
        return Err("that is not what was published to them".into());
    }
    Ok(())
}

fn wait_for(publisher: &mut Publisher, count: usize) -> Result<(), Box<dyn Error>> {
    let all_came = publisher.wait_for_subscribers(count, Duration::from_secs(10));
    if all_came { Ok(()) } else { Err(format!("{count} subscribers did not come").into()) }
}

fn publish(publisher: &mut Publisher, numbers: std::ops::Range<u64>) -> Result<(), ClaimError> {
    for number in numbers {
        publisher.send(&number.to_le_bytes())?;
    }
    Ok(())
}

/// Events of `session` until its end.
fn read_all(mut feed: Subscriber, session: SessionId) -> Vec<u64> {
    let (mut numbers, mut running) = (Vec::new(), true);
    while running {
        let work = feed.poll(64, |event| match event {
            Event::Message(message) if message.stream().session == session => {
                let bytes = message.bytes().first_chunk().expect("every message has 8 bytes");
                numbers.push(u64::from_le_bytes(*bytes));
            }
            Event::Left(stream, _) => running = stream.session != session,
            _ => {}
        });
        feed.wait(work);
    }
    numbers
}
