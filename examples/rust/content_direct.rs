//! Filters without a server: a thread publishes a day of orders and quotes, others want a part of
//! it each, and the publisher looks up who wants what.
//!
//! Run it: `cargo run -p lanecast-examples --example content_direct`
//!
//! Between processes it is the same code, and between hosts with `LANECAST_TRANSPORTS=shm+rm`.
#![forbid(unsafe_code)]

use lanecast::Context;
use lanecast_content::{ContentSettings, Event, Publisher, Subscriber};
use lanecast_filter::message_type::MessageType;
use lanecast_market::Day;
use std::error::Error;
use std::time::{Duration, Instant};

type Outcome = Result<(), Box<dyn Error + Send + Sync>>;

const FILTERS: [&str; 3] =
    ["/55 = 'IBM' and /35 in ('D','G')", "/150 = 'F' and /32 * /31 > 1000000", "/1 like '^C00'"];

fn publish(mut publisher: Publisher<Context>) -> Outcome {
    let start = Instant::now();
    while publisher.filters() < FILTERS.len() {
        if start.elapsed() > Duration::from_secs(20) {
            return Err("the subscribers did not come".into());
        }
        publisher.poll_subscribers();
        std::thread::yield_now();
    }
    let mut day = Day::new(100_000);
    let mut wanted = 0;
    while day.advance().is_some() {
        wanted += usize::from(publisher.publish(day.message())? > 0);
    }
    println!("published {wanted} messages of 100000: nobody wanted the others");
    println!("{}", publisher.close(Duration::from_secs(20)));
    Ok(())
}

fn subscribe(context: &Context, filter: &str) -> Outcome {
    let mut feed =
        Subscriber::new(context, "market", filter, &ContentSettings::new(MessageType::Fix))?;
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
    let publisher = Publisher::new(&context, "market", ContentSettings::new(MessageType::Fix))?;
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
