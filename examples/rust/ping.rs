//! Round trips: sends a message, waits for its echo, and prints how long that took.
//!
//! Run it in one terminal: `cargo run --release -p lanecast-examples --example pong`
//! and in another:         `cargo run --release -p lanecast-examples --example ping -- 100000`
//!
//! The number of round trips may be left out. The order of starting does not matter.
#![forbid(unsafe_code)]

use lanecast::prelude::*;
use std::error::Error;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

fn main() -> Result<(), Box<dyn Error>> {
    let rounds: u64 = std::env::args().nth(1).map_or(Ok(20_000), |count| count.parse())?;
    if rounds == 0 {
        return Err("at least one round trip is needed".into());
    }
    let context = Context::new()?;
    let mut echoes = context.subscriber("pong")?;
    let mut publisher = context.publisher("ping")?;
    meet(&mut publisher, &mut echoes)?;

    // The first tenth warms caches and branch predictors up and is not counted.
    let warmup = rounds.div_ceil(10);
    let mut times = Vec::with_capacity(rounds as usize);
    for number in 0..warmup + rounds {
        let start = Instant::now();
        publisher.send(&number.to_le_bytes())?;
        wait_for_echo(&mut echoes, number)?;
        if number >= warmup {
            times.push(start.elapsed());
        }
    }
    times.sort_unstable();
    let at = |share: f64| times[((times.len() as f64 * share) as usize).min(times.len() - 1)];
    println!(
        "{rounds} round trips of 8 bytes: min {:?}, p50 {:?}, p99 {:?}, max {:?}",
        times[0],
        at(0.5),
        at(0.99),
        times[times.len() - 1],
    );
    Ok(())
}

/// Waits until both directions are joined.
fn meet(publisher: &mut Publisher, echoes: &mut Subscriber) -> Result<(), Box<dyn Error>> {
    if !publisher.wait_for_subscribers(1, PATIENCE) {
        return Err("no subscriber reads 'ping': start pong".into());
    }
    let start = Instant::now();
    while echoes.streams() == 0 {
        let work = echoes.poll(1, |_| {});
        echoes.wait(work);
        if start.elapsed() > PATIENCE {
            return Err("no publisher of 'pong': start pong".into());
        }
    }
    Ok(())
}

fn wait_for_echo(echoes: &mut Subscriber, number: u64) -> Result<(), Box<dyn Error>> {
    let (mut has_come, mut is_over) = (false, false);
    while !has_come {
        let work = echoes.poll(1, |event| match event {
            Event::Message(message) => has_come |= message.bytes() == number.to_le_bytes(),
            Event::Left(..) => is_over = true,
            _ => {}
        });
        if is_over && !has_come {
            return Err("pong has gone".into());
        }
        echoes.wait(work);
    }
    Ok(())
}
