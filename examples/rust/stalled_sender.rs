//! A sender that stalls once, measured twice: why latency counts from the intended send time.
//!
//! Messages are due every 50 us. In the middle the sender does nothing for 100 ms, as if it had
//! been swapped out; then it catches up. A measurement from the moment at which a message was
//! really sent sees none of that: the messages that should have gone out in the meantime are
//! stamped after the stall. This is called coordinated omission.
//!
//! Run it: `cargo run --release -p lanecast-examples --example stalled_sender`
#![forbid(unsafe_code)]

use lanecast::prelude::*;
use lanecast_base::clock::Clock;
use lanecast_measure::pacing::{Bursts, Pace};
use lanecast_measure::{Distribution, Recorder};
use std::error::Error;
use std::time::Duration;

const RATE: u64 = 20_000;
const MESSAGES: u64 = 2 * RATE;
const STALL: Duration = Duration::from_millis(100);
/// The message after which the sender stalls.
const STALLS_AFTER: u64 = MESSAGES / 2;
/// Intended and actual time of sending, in ticks.
const STAMPS: usize = 16;

fn main() -> Result<(), Box<dyn Error>> {
    let context = Context::new()?;
    let clock = Clock::host();
    let mut publisher = context.publisher("stalled")?;
    let mut feed = context.subscriber("stalled")?;
    if !publisher.wait_for_subscribers(1, Duration::from_secs(10)) {
        return Err("the subscriber did not come".into());
    }
    let (mut actual, mut intended) = (Recorder::new(), Recorder::new());
    std::thread::scope(|scope| {
        scope.spawn(move || send(publisher, clock));
        let mut open = true;
        while open {
            let work = feed.poll(64, |event| match event {
                Event::Message(message) => {
                    let now = clock.ticks_ordered();
                    let (due, sent) = stamps(message.bytes());
                    actual.record(clock.ns(now.saturating_sub(sent)));
                    intended.record(clock.ns(now.saturating_sub(due)));
                }
                Event::Left(..) => open = false,
                _ => {}
            });
            feed.wait(work);
        }
    });
    let (actual, intended) = (actual.distribution(), intended.distribution());
    print(&actual.ok_or("nothing was read")?, &intended.ok_or("nothing was read")?);
    Ok(())
}

fn send(mut publisher: Publisher, clock: Clock) {
    let second = clock.from_ns(1_000_000_000);
    let mut pace = Bursts::new(RATE, 1, MESSAGES, clock.ticks(), second);
    while let Some(burst) = pace.next_burst(|| clock.ticks(), &|| false) {
        for slot in burst {
            let Ok(mut claim) = publisher.claim(STAMPS) else { return };
            let sent = clock.ticks();
            let (first, second) = claim.split_at_mut(8);
            first.copy_from_slice(&slot.due.unwrap_or(sent).to_le_bytes());
            second.copy_from_slice(&sent.to_le_bytes());
            claim.commit();
            if slot.index == STALLS_AFTER {
                std::thread::sleep(STALL);
            }
        }
    }
    println!("{}", publisher.close(Duration::from_secs(10)));
}

fn stamps(bytes: &[u8]) -> (u64, u64) {
    let number =
        |at: usize| bytes[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    (number(0), number(8))
}

fn print(actual: &Distribution, intended: &Distribution) {
    println!(
        "{} messages, one every 50 us; the sender stalled once, for {} ms.\n",
        actual.samples,
        STALL.as_millis()
    );
    let columns = ["p50", "p90", "p99", "p99.9", "max"].map(|name| format!("{name:>10}")).concat();
    println!("{:<25}{columns}", "latency in us");
    for (from, found) in [("actual send time", actual), ("intended time", intended)] {
        let times = [found.p50_ns, found.p90_ns, found.p99_ns, found.p99_9_ns, found.max_ns];
        let cells = times.map(|ns| format!("{:>10.1}", ns as f64 / 1000.0)).concat();
        println!("from the {from:<16}{cells}");
    }
    let late = RATE * STALL.as_millis() as u64 / 1000;
    println!(
        "\nAbout {late} messages, {} % of all, were due during the stall, and their readers waited \
         up to {} ms.\nOnly the second line shows it.",
        100 * late / MESSAGES,
        STALL.as_millis()
    );
}
