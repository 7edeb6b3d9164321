//! Wake-up time, from asleep on a descriptor to reading the message: lanecast's descriptors beside
//! a bare eventfd, as interleaved pairs in one run.
//!
//! Run it: `cargo bench -p lanecast --bench wakeup`
#![forbid(unsafe_code)]

use lanecast::prelude::*;
use lanecast_os::event::EventFd;
use std::error::Error;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

type Failure = Box<dyn Error + Send + Sync>;

const PAIRS: usize = 7;
const WAKEUPS: usize = 2_000;
/// Pause between two wake-ups, in which the reader falls asleep.
const PAUSE: Duration = Duration::from_micros(300);
const LIMIT: Duration = Duration::from_secs(30);

/// Median of the nanoseconds from just before the signal to after the read.
fn median(mut times: Vec<u64>) -> u64 {
    times.sort_unstable();
    times[times.len() / 2]
}

fn nanos(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// A thread asleep on an eventfd, by the same wait.
fn bare() -> Result<u64, Failure> {
    let (event, start) = (EventFd::new(false)?, Instant::now());
    let (sent, signals) = (AtomicU64::new(0), AtomicUsize::new(0));
    let mut set = WaitSet::new()?;
    set.add(0, &event)?;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..WAKEUPS {
                std::thread::sleep(PAUSE);
                sent.store(nanos(start), Ordering::Release);
                signals.fetch_add(1, Ordering::Release);
                event.signal();
            }
        });
        let mut times = Vec::new();
        // Signals that meet a reader without a CPU are one wake-up.
        while signals.load(Ordering::Acquire) < WAKEUPS {
            if !set.wait(Some(LIMIT))?.is_empty() {
                event.clear();
                times.push(nanos(start) - sent.load(Ordering::Acquire));
            }
        }
        Ok(median(times))
    })
}

/// A subscriber asleep on its descriptor.
fn over(context: &Context) -> Result<u64, Failure> {
    let mut subscriber = context.subscriber("wakeup")?;
    let mut publisher = context.publisher("wakeup")?;
    let mut set = WaitSet::new()?;
    set.add(0, subscriber.wakeup()?)?;
    if !publisher.wait_for_subscribers(1, LIMIT) {
        return Err("no subscriber came".into());
    }
    let start = Instant::now();
    let sender = std::thread::spawn(move || {
        for _ in 0..WAKEUPS {
            std::thread::sleep(PAUSE);
            publisher.send(&nanos(start).to_le_bytes())?;
        }
        Ok::<_, ClaimError>(publisher)
    });
    let mut times = Vec::new();
    while times.len() < WAKEUPS {
        set.wait(Some(LIMIT))?;
        // Until it is empty, as loops do that have nothing else: the next message wakes this one.
        while subscriber.poll(64, |event| {
            if let Event::Message(message) = event
                && let Ok(sent) = message.bytes().try_into()
            {
                times.push(nanos(start) - u64::from_le_bytes(sent));
            }
        }) > 0
        {}
    }
    drop(sender.join().map_err(|_| "the sender panicked")??);
    Ok(median(times))
}

fn main() -> Result<(), Failure> {
    let directory = TempDir::new_in("/dev/shm")?;
    for (name, transports, visibility) in [
        ("threads", "shm", "process"),
        ("shared memory", "shm", "host"),
        ("ru", "ru", "host"),
        ("tcp", "tcp", "host"),
    ] {
        let context = Context::builder()
            .set("transports", transports)?
            .set("shm.visibility", visibility)?
            .set("shm.directory", directory.path().join("domain").display())?
            .build()?;
        let mut ratios = Vec::new();
        let mut medians = [Vec::new(), Vec::new()];
        for _ in 0..PAIRS {
            let (bare, ours) = (bare()?, over(&context)?);
            ratios.push(ours * 1_000 / bare);
            medians[0].push(bare);
            medians[1].push(ours);
        }
        let (least, most) = (ratios.iter().min(), ratios.iter().max());
        let (least, most) = (least.copied().unwrap_or(0), most.copied().unwrap_or(0));
        let [bare, ours] = medians.map(median);
        let ratio = median(ratios);
        println!(
            "{name}: p50 {:.1} us, eventfd {:.1} us, ratio {:.2} ({:.2}..{:.2}), {PAIRS} pairs",
            ours as f64 / 1e3,
            bare as f64 / 1e3,
            ratio as f64 / 1e3,
            least as f64 / 1e3,
            most as f64 / 1e3,
        );
    }
    Ok(())
}
