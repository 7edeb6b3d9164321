//! Filters without a server: a thread publishes a day of orders and quotes, others want a part of
//! it each, and the publisher looks up who wants what.
//!
//! Run it: `cargo run -p lanecast-examples --example content_direct`
//!
//! Between processes it is the same code, and between hosts with `LANECAST_TRANSPORTS=shm+rm`.
#![forbid(unsafe_code)]

use lanecast::prelude::*;
use lanecast_market::Day;
use std::error::Error;
use std::time::{Duration, Instant};

type Outcome = Result<(), Box<dyn Error + Send + Sync>>;

const FILTERS: [&str; 3] =
    ["/55 = 'IBM' and /35 in ('D','G')", "/150 = 'F' and /32 * /31 > 1000000", "/1 like '^C00'"];

fn publish(mut publisher: FilterablePublisher) -> Outcome {
    let start = Instant::now();
    while publisher.filters() < FILTERS.len() {
        if start.elapsed() > Duration::from_secs(20) {
            return Err("the subscribers did not come".into());
        }
        publisher.serve_filters();
        std::thread::yield_now();
    }
    let mut day = Day::new(100_000);
    while day.advance().is_some() {
        publisher.send(day.message())?;
    }
    println!("published 100000 messages, and evaluated each once for all filters");
    println!("{}", publisher.close(Duration::from_secs(20)));
    Ok(())
}

fn subscribe(context: &Context, filter: &str) -> Outcome {
    let topic = context.topic("market").message_type(MessageType::Fix);
    let mut feed = topic.filter(filter).subscriber()?;
    let (mut messages, mut running) = (0, true);
    while running {
        let work = feed.poll(64, |event| match event {
            Event::Message(_) => messages += 1,
            Event::Left(..) => running = false,
            _ => {}
        });
        feed.wait(work);
    }
    println!("{messages} messages: {filter}");
    Ok(())
}

fn main() -> Outcome {
    let context = Context::new()?;
    let topic = context.topic("market").message_type(MessageType::Fix);
    let publisher = topic.filterable().publisher()?;
    std::thread::scope(|scope| {
        let subscribers = FILTERS.map(|filter| {
            let context = context.clone();
            scope.spawn(move || subscribe(&context, filter))
        });
        publish(publisher)?;
        let mut ends = subscribers.into_iter().map(|thread| thread.join());
        ends.try_for_each(|end| end.unwrap_or_else(|_| Err("a subscriber has failed".into())))
    })
}
