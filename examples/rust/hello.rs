//! A publisher and a subscriber in one program: claim, write in place, commit; poll, read.
//!
//! Run it: `cargo run -p lanecast-examples --example hello`
#![forbid(unsafe_code)]

use lanecast::prelude::*;
use std::error::Error;
use std::time::Duration;

fn main() -> Result<(), Box<dyn Error>> {
    let context = Context::new()?;
    let mut feed = context.subscriber("hello")?;
    let mut publisher = context.publisher("hello")?;
    let own = publisher.session();
    // Subscribers that join later start with the next message.
    if !publisher.wait_for_subscribers(1, Duration::from_secs(10)) {
        return Err("no subscriber came".into());
    }

    // In place: the bytes are written where the subscriber reads them.
    let greeting = b"hello, world";
    let mut claim = publisher.try_claim(greeting.len())?;
    claim.copy_from_slice(greeting);
    claim.commit();
    // Copied, in one call.
    publisher.try_send(b"and goodbye")?;
    // Closes the session; subscribers still read what is in it.
    drop(publisher);

    let mut running = true;
    while running {
        let work = feed.poll(16, |event| match event {
            Event::Joined(stream) => println!("joined {stream}"),
            Event::Message(message) => {
                println!("read   {}", String::from_utf8_lossy(message.bytes()));
            }
            Event::Left(stream, why) => {
                println!("left   {stream}: {why}");
                running = stream.session != own;
            }
            other => println!("{other:?}"),
        });
        feed.wait(work); // After a poll that found nothing: spins, then sleeps.
    }
    Ok(())
}
