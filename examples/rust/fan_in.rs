//! Several threads write messages of any length to one reader. Each writer has a lane of its own:
//! they never wait for one another, and each one's messages arrive in its order.
//!
//! Run it: `cargo run -p lanecast-examples --example fan_in`
#![forbid(unsafe_code)]

use lanecast::ring::bytes;
use std::collections::BTreeMap;
use std::error::Error;
use std::thread;

const WRITERS: [&str; 3] = ["anna", "ben", "cleo"];
const LINES: usize = 50_000;

fn main() -> Result<(), Box<dyn Error>> {
    let mut build = bytes::multi_producer(WRITERS.len(), 64 * 1024)?;
    let mut reader = build.consumer();
    let writers: Vec<_> = WRITERS
        .into_iter()
        .zip(build.producers()?)
        .map(|(name, mut producer)| {
            thread::spawn(move || {
                (0..LINES).try_for_each(|number| {
                    let line = format!("{name} {number} {}", "!".repeat(number % 40));
                    producer.send(line.as_bytes())
                })
                // The producer is dropped here, which closes its lane.
            })
        })
        .collect();

    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut mixed_up = None;
    while !reader.is_closed() {
        let work = reader.poll(256, |message| {
            let line = String::from_utf8_lossy(message);
            let mut words = line.split(' ');
            let count = counts.entry(words.next().unwrap_or_default().to_owned()).or_default();
            if words.next() != Some(&count.to_string()) {
                mixed_up = Some(line.into_owned());
            }
            *count += 1;
        });
        reader.wait(work); // Sleeps on all lanes at once.
    }
    for writer in writers {
        writer.join().map_err(|_| "a writer panicked")??;
    }

    for (name, count) in &counts {
        println!("{name:4} {count} lines, in order");
    }
    if let Some(line) = mixed_up {
        return Err(format!("out of order: {line}").into());
    }
    if counts.values().sum::<usize>() != WRITERS.len() * LINES {
        return Err("lines are missing".into());
    }
    Ok(())
}
