//! A diamond of threads: a journal and a replica read the same values side by side, and the logic
//! behind them reads each value when both are done with it.
//!
//! Run it: `cargo run -p lanecast-examples --example diamond`
#![forbid(unsafe_code)]

use lanecast::ring::rings::{self, Consumer};
use std::error::Error;
use std::thread;

const VALUES: u64 = 1_000_000;

/// Reads all values, in runs as they come; returns their sum and in how many runs they came.
fn sum_up(mut consumer: Consumer<u64>) -> (u64, u64) {
    let (mut sum, mut runs) = (0, 0);
    while !consumer.is_closed() {
        let work = consumer.drain(usize::MAX, |values| {
            sum += values.iter().sum::<u64>();
            runs += 1;
        });
        consumer.wait(work); // After a round that found nothing: spins, then sleeps.
    }
    (sum, runs)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut build = rings::single_producer(4096, || 0_u64)?;
    let journal = build.consumer()?;
    let replica = build.consumer()?;
    let logic = build.after(&[&journal, &replica])?;
    let mut producer = build.producer()?;

    let names = ["journal", "replica", "logic"];
    let readers = [journal, replica, logic].map(|consumer| thread::spawn(|| sum_up(consumer)));
    let mut next = 0;
    while next < VALUES {
        // Room for as many as are free side by side, at most 64, filled in place.
        let wanted = 64.min(VALUES - next) as usize;
        let mut claim = producer.claim(wanted)?;
        claim.iter_mut().zip(next..).for_each(|(slot, value)| *slot = value);
        next += claim.len() as u64;
        claim.commit();
    }
    drop(producer); // Readers read what is there and then see that it is closed.

    let expected = VALUES * (VALUES - 1) / 2;
    for (name, reader) in names.into_iter().zip(readers) {
        let (sum, runs) = reader.join().map_err(|_| "a reader panicked")?;
        println!("{name:8} sum {sum} of {VALUES} values in {runs} runs");
        if sum != expected {
            return Err(format!("{name} has not seen every value once").into());
        }
    }
    Ok(())
}
