//! Several topics in one session: a subscriber to all of them reads them in the one order in
//! which they were published, and what is published as a batch becomes visible together.
//!
//! Run it: `cargo run -p lanecast-examples --example tape`
#![forbid(unsafe_code)]

use lanecast::prelude::*;
use std::error::Error;
use std::time::Duration;

const TOPICS: [&str; 3] = ["tape.trades", "tape.quotes", "tape.news"];

fn main() -> Result<(), Box<dyn Error>> {
    let context = Context::new()?;
    let mut feed = context.subscriber_to(&TOPICS)?;
    let mut publisher = context.publisher(TOPICS[0])?;
    let trades = TopicId::FIRST;
    let quotes = publisher.add_topic(TOPICS[1])?;
    let news = publisher.add_topic(TOPICS[2])?;
    let session = publisher.session();
    if !publisher.wait_for_subscribers(1, Duration::from_secs(10)) {
        return Err("no subscriber came".into());
    }

    // One after the other, each on its topic.
    let single = [(quotes, "10.00 10.02"), (trades, "10.02 x 100"), (quotes, "10.01 10.03")];
    for (topic, text) in single {
        publisher.try_send_on(topic, text.as_bytes())?;
    }
    // All or nothing: dropped before `publish`, none of these would ever have been there.
    let together = [(news, "halted"), (quotes, "- -"), (trades, "cancel 100")];
    let mut batch = publisher.batch();
    for (topic, text) in together {
        batch.try_add(topic, text.len())?.copy_from_slice(text.as_bytes());
    }
    println!("a batch of {} messages", batch.publish());
    drop(publisher);

    let (mut tape, mut left) = (Vec::new(), 0);
    while left < TOPICS.len() {
        let work = feed.poll(64, |event| match event {
            Event::Message(message) if message.stream().session == session => {
                let text = String::from_utf8_lossy(message.bytes()).into_owned();
                println!("{:12} {text}", message.stream().topic);
                tape.push((message.stream().topic_id, text));
            }
            Event::Left(stream, _) if stream.session == session => left += 1,
            _ => {}
        });
        feed.wait(work);
    }
    let published = single.iter().chain(&together).map(|&(topic, text)| (topic, text.to_owned()));
    if !published.eq(tape) {
        return Err("that is not the order in which they were published".into());
    }
    Ok(())
}
