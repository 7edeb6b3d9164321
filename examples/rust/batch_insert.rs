//! A subscriber that stores messages in batches: it takes a run of them, sorts the run, inserts it
//! as one batch without a copy, and only then drops it.
//!
//! Run it: `cargo run -p lanecast-examples --example batch_insert`
#![forbid(unsafe_code)]

use lanecast::Message;
use lanecast::prelude::*;
use std::collections::BTreeMap;
use std::error::Error;
use std::time::Duration;

const TOPIC: &str = "batch_insert";
const ORDERS: u64 = 10_000;

/// A table in place of a database: it takes rows in batches.
#[derive(Default)]
struct Table {
    quantity_by_account: BTreeMap<u64, u64>,
    rows: usize,
    batches: usize,
}

impl Table {
    /// Inserts rows that are sorted by account.
    fn insert(&mut self, batch: &[(u64, Message<'_>)]) {
        for (account, _order) in batch {
            *self.quantity_by_account.entry(*account).or_default() += 1;
        }
        self.rows += batch.len();
        self.batches += 1;
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let context = Context::new()?;
    let mut feed = context.subscriber(TOPIC)?;
    let mut publisher = context.publisher(TOPIC)?;
    if !publisher.wait_for_subscribers(1, Duration::from_secs(10)) {
        return Err("the subscriber did not come".into());
    }
    let session = publisher.session();
    let writer = std::thread::spawn(move || -> Result<(), ClaimError> {
        for number in 0..ORDERS {
            publisher.send(&(number % 97).to_le_bytes())?;
        }
        Ok(())
    });

    let mut table = Table::default();
    let mut running = true;
    while running {
        let run = feed.take(1_000);
        let mut batch = Vec::new();
        let mut work = 0;
        for event in &run {
            work += 1;
            match event {
                Event::Message(order) if order.stream().session == session => {
                    let account = order.bytes().first_chunk().ok_or("an order has 8 bytes")?;
                    batch.push((u64::from_le_bytes(*account), order));
                }
                Event::Left(stream, _) => running = stream.session != session,
                _ => {}
            }
        }
        if !batch.is_empty() {
            batch.sort_by_key(|(account, _)| *account);
            table.insert(&batch);
        }
        drop(run); // The orders count as read from here on.
        feed.wait(work);
    }
    writer.join().map_err(|_| "the publisher panicked")??;
    println!(
        "stored {} orders in {} batches, of {} accounts",
        table.rows,
        table.batches,
        table.quantity_by_account.len()
    );
    Ok(())
}
