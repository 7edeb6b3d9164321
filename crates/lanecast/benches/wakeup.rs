//! Wake-up time, from asleep on a descriptor to reading the message: lanecast's descriptors beside
//! a bare eventfd, as interleaved pairs in one run.
//!
//! Run it: `cargo bench -p lanecast --bench wakeup`
#![forbid(unsafe_code)]

use lanecast::prelude::*;
use lanecast_base::clock::Clock;
use lanecast_os::event::EventFd;
use std::error::Error;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

type Failure = Box<dyn Error + Send + Sync>;

const PAIRS: usize = 7;
const WAKEUPS: usize = 2_000;
/// Pause between two wake-ups, in which the reader falls asleep.
const PAUSE: Duration = Duration::from_micros(300);
const LIMIT: Duration = Duration::from_secs(30);
/// Longest sleep before a look whether the sender has ended.
const PATIENCE: Duration = Duration::from_secs(1);
const TOPIC: &str = "wakeup";
/// Word by which this program is the publisher of another.
const PUBLISH: &str = "--publish";

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

/// Sends the time, again and again, each time after the subscriber has fallen asleep.
fn publish(context: &Context) -> Result<(), Failure> {
    let (mut publisher, clock) = (context.publisher(TOPIC)?, Clock::host());
    if !publisher.wait_for_subscribers(1, LIMIT) {
        return Err("no subscriber came".into());
    }
    for _ in 0..WAKEUPS {
        std::thread::sleep(PAUSE);
        publisher.send(&clock.ticks().to_le_bytes())?;
    }
    match publisher.close(LIMIT).is_complete() {
        true => Ok(()),
        false => Err("the subscriber did not read everything".into()),
    }
}

/// The publisher's place: another thread, or another process.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Publisher {
    Thread,
    Process,
}

/// A subscriber asleep on its descriptor.
fn over(path: &Path, (transports, visibility, publisher): Row) -> Result<u64, Failure> {
    let (context, clock) = (open(path, transports, visibility)?, Clock::host());
    let mut subscriber = context.subscriber(TOPIC)?;
    let mut set = WaitSet::new()?;
    set.add(0, subscriber.wakeup()?)?;
    let mut times = Vec::new();
    std::thread::scope(|scope| {
        let sender = scope.spawn(|| match publisher {
            Publisher::Thread => publish(&context),
            Publisher::Process => publish_elsewhere(path),
        });
        while times.len() < WAKEUPS && !sender.is_finished() {
            set.wait(Some(PATIENCE))?;
            // Until it is empty, as loops do that have nothing else: the next message wakes it.
            while subscriber.poll(64, |event| {
                if let Event::Message(message) = event
                    && let Ok(sent) = message.bytes().try_into()
                {
                    let ticks = clock.ticks_ordered().wrapping_sub(u64::from_le_bytes(sent));
                    times.push(clock.ns(ticks));
                }
            }) > 0
            {}
        }
        sender.join().map_err(|_| "the sender panicked")?
    })?;
    match times.len() {
        WAKEUPS => Ok(median(times)),
        came => Err(format!("{came} of {WAKEUPS} messages came").into()),
    }
}

/// Runs this program once more, as the publisher.
fn publish_elsewhere(path: &Path) -> Result<(), Failure> {
    let status = Command::new(std::env::current_exe()?).arg(PUBLISH).arg(path).status()?;
    if status.success() { Ok(()) } else { Err(format!("the publisher ended: {status}").into()) }
}

fn open(path: &Path, transports: &str, visibility: &str) -> Result<Context, Failure> {
    Ok(Context::builder()
        .set("transports", transports)?
        .set("shm.visibility", visibility)?
        .set("shm.directory", path.display())?
        .build()?)
}

/// Transports, visibility of the memory, and the publisher's place.
type Row = (&'static str, &'static str, Publisher);

fn main() -> Result<(), Failure> {
    let mut words = std::env::args_os().skip(1);
    if words.next().is_some_and(|word| word == PUBLISH) {
        let path = words.next().ok_or("no directory was named")?;
        return publish(&open(Path::new(&path), "shm", "host")?);
    }
    let directory = TempDir::new_in("/dev/shm")?;
    let path = directory.path().join("domain");
    for (name, row) in [
        ("threads", ("shm", "process", Publisher::Thread)),
        ("shared memory", ("shm", "host", Publisher::Process)),
        ("ru", ("ru", "host", Publisher::Thread)),
        ("tcp", ("tcp", "host", Publisher::Thread)),
    ] {
        let mut ratios = Vec::new();
        let mut medians = [Vec::new(), Vec::new()];
        for _ in 0..PAIRS {
            let (bare, ours) = (bare()?, over(&path, row)?);
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
