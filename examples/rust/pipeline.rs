//! A pipeline of threads: a ring, and one thread for each handler. What one stage has not finished
//! the next one does not see; nothing is copied on the way.
//!
//! Run it: `cargo run -p lanecast-examples --example pipeline`
#![forbid(unsafe_code)]

use lanecast::ring::rings::{self, EventInfo, named};
use std::error::Error;
use std::sync::mpsc::channel;

const ORDERS: u64 = 100_000;

#[derive(Clone, Copy, Debug, Default)]
struct Order {
    price: u64,
    quantity: u64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let (journaled, journal) = channel();
    let (executed, executions) = channel();
    let (audited, audit) = channel();

    let mut volume = 0;
    let mut handlers = rings::single_producer(1024, Order::default)?
        // First on record,
        .handle_with(named("journal", move |order: &Order, info: EventInfo| {
            let _ = journaled.send((info.sequence, *order));
        }))
        // then executed,
        .then(named("execute", move |order: &Order, _: EventInfo| {
            let _ = executed.send(order.price * order.quantity);
        }))
        // and last of all compared with the record, which must be there already.
        .then(named("audit", move |order: &Order, info: EventInfo| {
            let recorded = journal.try_recv().map(|(sequence, of)| (sequence, of.price));
            assert_eq!(recorded, Ok((info.sequence, order.price)), "not on record");
            volume += order.price * order.quantity;
            if info.sequence + 1 == ORDERS {
                let _ = audited.send(volume);
            }
        }))
        .start()?;

    for number in 0..ORDERS {
        handlers.producer().push(Order { price: 100 + number % 7, quantity: number % 13 })?;
    }
    // Lets every stage finish what is under way, and tells of handlers that panicked.
    let report = handlers.finish()?;
    for handled in &report.handlers {
        println!("{:8} {} orders", handled.handler, handled.messages);
    }
    let (executed, audited): (u64, u64) = (executions.iter().sum(), audit.recv()?);
    println!("volume   {executed} executed, {audited} audited");
    if executed != audited {
        return Err("the stages have not seen the same orders".into());
    }
    Ok(())
}
