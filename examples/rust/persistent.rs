//! Messages that outlive their publisher and a crash of their subscriber: a store on a thread of
//! its own, a publisher, and a subscriber that dies after half of the messages and comes back.
//!
//! Run it: `cargo run -p lanecast-examples --example persistent`
#![forbid(unsafe_code)]

use lanecast::persistence::{Acknowledgement, ReceiverEvent};
use lanecast::{Context, DurableSubscriber};
use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// The publisher's id, and the subscriber's: they stay the same over restarts.
const SOURCE: u64 = 7;
const SESSION: u64 = 99;
const NAP: Duration = Duration::from_millis(5);

fn main() -> Result<(), Box<dyn Error>> {
    // In practice the store is a program of its own: `lanecast store`.
    let directory = std::env::temp_dir().join(format!("lanecast-store-{}", std::process::id()));
    let context = Context::new()?;
    let mut store = context.store("store", &directory)?;
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let work = store.poll().expect("a working disk");
                store.wait_at_most(work, NAP);
            }
        });
        let result = run(&context);
        is_over.store(true, Ordering::Relaxed);
        result
    })?;
    std::fs::remove_dir_all(directory)?;
    Ok(())
}

fn run(context: &Context) -> Result<(), Box<dyn Error>> {
    let mut orders = context.topic("orders").persistent(SOURCE).publisher()?;
    for number in 1..=10 {
        // Waits for the registration with the store, and while too many messages are in flight.
        orders.send(format!("order {number}").as_bytes(), |event| println!("{event:?}"))?;
    }
    if !orders.wait_stable(Duration::from_secs(10), |event| println!("{event:?}")) {
        return Err("the store does not answer".into());
    }
    drop(orders); // What is stable stays.

    println!("a subscriber comes, handles five, and dies");
    let mut feed = open(context)?;
    read(&mut feed, 5);
    drop(feed);
    println!("it comes back, and goes on behind the last message that it acknowledged");
    read(&mut open(context)?, 5);
    Ok(())
}

fn open(context: &Context) -> Result<DurableSubscriber, lanecast::Error> {
    let topic = context.topic("orders").durable(SESSION);
    topic.acknowledgement(Acknowledgement::Explicit).subscriber()
}

/// Handles `count` messages and acknowledges the last of them.
fn read(feed: &mut DurableSubscriber, count: usize) {
    let (mut handled, mut last) = (0, 0);
    while handled < count {
        let work = feed.poll(16, |event| match event {
            ReceiverEvent::Message(message) if handled < count => {
                println!("read {}", String::from_utf8_lossy(message.bytes()));
                (handled, last) = (handled + 1, message.sequence());
            }
            ReceiverEvent::Message(_) => {} // Not acknowledged: it comes again.
            other => println!("{other:?}"),
        });
        feed.wait_at_most(work, NAP);
    }
    feed.acknowledge(SOURCE, last);
    if !feed.wait_acknowledged(Duration::from_secs(10), |_| {}) {
        println!("too few stores know of it: it may come again");
    }
}
