//! Handlers on threads of their own, over rings of values and of bytes, under ThreadSanitizer
//! (`make tsan`): what producers, stages and workers hand each other, and how they end.

use lanecast_base::WaitStrategy;
use lanecast_ring::bytes::{self, ByteConsumer};
use lanecast_ring::rings::{self, EventInfo};
use std::error::Error;
use std::sync::mpsc::channel;
use std::thread;

const ROUNDS: u64 = 20;
const MESSAGES: u64 = 2_000;

/// A value that is on the heap, as a race's damage would show there.
struct Number(Box<u64>);

/// A diamond, workers behind it, and two producers; the third round of every four panics.
fn handlers(round: u64) -> Result<(), Box<dyn Error>> {
    let (done, all) = channel();
    let check = |value: &Number, _: EventInfo| assert!(*value.0 < 2 * MESSAGES);
    let worker = |_: usize| {
        let done = done.clone();
        move |value: &Number, _: EventInfo| {
            assert!(round % 4 != 2 || *value.0 != MESSAGES / 2, "of the test");
            let _ = done.send(*value.0);
        }
    };
    let ring = rings::multi_producer(2, 32, || Number(Box::new(0)))?;
    let mut handlers = ring
        .wait(WaitStrategy::SpinPark)
        .handle_with((check, check))
        .then(check)
        .share_among((0..2).map(worker).collect())
        .start()?;
    drop(done);
    let writers = handlers.producers().into_iter().zip(0..).map(|(mut producer, who)| {
        thread::spawn(move || {
            (0..MESSAGES).all(|number| producer.push(Number(Box::new(number * 2 + who))).is_ok())
        })
    });
    let writers: Vec<_> = writers.collect();
    let ends = writers.into_iter().map(|writer| writer.join().unwrap_or(false));
    let are_whole = !ends.collect::<Vec<_>>().contains(&false);
    let (result, sum) = (handlers.finish(), all.iter().sum::<u64>());
    if round % 4 == 2 {
        assert!(result.is_err());
    } else {
        assert!(result.is_ok() && are_whole);
        assert_eq!(sum, MESSAGES * (2 * MESSAGES - 1));
    }
    Ok(())
}

fn count(mut consumer: ByteConsumer) -> u64 {
    let mut count = 0;
    while !consumer.is_closed() {
        let work = consumer.poll(64, |message| {
            assert!(message.iter().all(|&byte| byte == message.len() as u8));
            count += 1;
        });
        consumer.wait(work);
    }
    count
}

/// Two producers, and three consumers of which one follows the others.
fn bytes() -> Result<(), Box<dyn Error>> {
    let mut build = bytes::multi_producer(2, 1024)?.wait(WaitStrategy::Park);
    let (first, second) = (build.consumer(), build.consumer());
    let last = build.after(&[&first, &second])?;
    let writers = build.producers()?.into_iter().map(|mut producer| {
        thread::spawn(move || {
            for number in 0..MESSAGES {
                let len = number as usize % 60;
                producer.send(&[len as u8; 60][..len]).expect("consumers that stay");
            }
        })
    });
    let writers: Vec<_> = writers.collect();
    let readers = [first, second, last].map(|consumer| thread::spawn(|| count(consumer)));
    for writer in writers {
        writer.join().map_err(|_| "a writer panicked")?;
    }
    for reader in readers {
        assert_eq!(reader.join().map_err(|_| "a reader panicked")?, 2 * MESSAGES);
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    // Found out before there are threads: the standard library hands such a finding on in code
    // that ThreadSanitizer does not see.
    lanecast_os::futex::can_watch_several();
    for round in 0..ROUNDS {
        handlers(round)?;
        bytes()?;
    }
    println!("{ROUNDS} rounds of handlers and of bytes");
    Ok(())
}
