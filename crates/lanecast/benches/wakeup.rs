//! Wake-up time, from asleep on a descriptor to reading the message: lanecast's descriptors beside
//! a bare eventfd and, between hosts, beside a bare socket, interleaved in one run. Then the CPU
//! time of an idle publisher and subscriber, asleep on their descriptors.
//!
//! Run it: `cargo bench -p lanecast --bench wakeup`
#![forbid(unsafe_code)]

use lanecast::prelude::*;
use lanecast_base::clock::Clock;
use lanecast_os::event::EventFd;
use std::error::Error;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
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
/// Length of the idle phase.
const IDLE: Duration = Duration::from_secs(2);
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

/// A thread asleep on a UDP socket of the loopback, by the same wait.
fn bare_udp() -> Result<u64, Failure> {
    let [to, from] = [(); 2].map(|()| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)));
    let (to, from) = (to?, from?);
    from.connect(to.local_addr()?)?;
    let descriptor = to.try_clone()?;
    asleep_on(&descriptor, |time| from.send(&time).map(drop), |time| to.recv(time).map(drop))
}

/// A thread asleep on a connection of the loopback, by the same wait.
fn bare_tcp() -> Result<u64, Failure> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let mut from = TcpStream::connect(listener.local_addr()?)?;
    from.set_nodelay(true)?;
    let (mut to, _) = listener.accept()?;
    let descriptor = to.try_clone()?;
    asleep_on(&descriptor, |time| from.write_all(&time), |time| to.read_exact(time))
}

/// A thread asleep on a socket, to which `send` writes times that `receive` reads.
fn asleep_on(
    socket: &impl AsFd,
    mut send: impl FnMut([u8; 8]) -> io::Result<()> + Send,
    mut receive: impl FnMut(&mut [u8; 8]) -> io::Result<()>,
) -> Result<u64, Failure> {
    let clock = Clock::host();
    let mut set = WaitSet::new()?;
    set.add(0, socket)?;
    std::thread::scope(|scope| {
        let sender = scope.spawn(move || {
            (0..WAKEUPS).try_for_each(|_| {
                std::thread::sleep(PAUSE);
                send(clock.ticks().to_le_bytes())
            })
        });
        let (mut times, mut sent) = (Vec::new(), [0; 8]);
        while times.len() < WAKEUPS {
            if !set.wait(Some(PATIENCE))?.is_empty() {
                receive(&mut sent)?;
                let ticks = clock.ticks_ordered().wrapping_sub(u64::from_le_bytes(sent));
                times.push(clock.ns(ticks));
            } else if sender.is_finished() {
                break;
            }
        }
        sender.join().map_err(|_| "the sender panicked")??;
        if times.len() == WAKEUPS { Ok(median(times)) } else { Err("a message got lost".into()) }
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

/// CPU time that all threads of this process take while a publisher and a subscriber sleep on their
/// descriptors, and wake-ups of their loop.
fn idle(path: &Path, (transports, visibility, _): Row) -> Result<(Duration, usize), Failure> {
    let context = open(path, transports, visibility)?;
    let (mut publisher, mut subscriber) = (context.publisher(TOPIC)?, context.subscriber(TOPIC)?);
    if !publisher.wait_for_subscribers(1, LIMIT) {
        return Err("the subscriber did not join".into());
    }
    let mut set = WaitSet::new()?;
    set.add(0, subscriber.wakeup()?)?;
    set.add(1, publisher.wakeup()?)?;
    while subscriber.poll(64, |_| {}) > 0 {}
    let (start, before, mut wakeups) = (Instant::now(), cpu_time()?, 0);
    while let Some(left) = IDLE.checked_sub(start.elapsed()) {
        if !set.wait(Some(left))?.is_empty() {
            wakeups += 1;
            subscriber.poll(64, |_| {});
        }
    }
    Ok((cpu_time()?.saturating_sub(before), wakeups))
}

/// CPU time that the threads of this process have taken so far.
fn cpu_time() -> Result<Duration, Failure> {
    let mut total = Duration::ZERO;
    for task in std::fs::read_dir("/proc/self/task")? {
        let stat = std::fs::read_to_string(task?.path().join("schedstat"))?;
        let time = stat.split(' ').next().ok_or("the system counts no CPU time")?;
        total += Duration::from_nanos(time.parse()?);
    }
    Ok(total)
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

/// A wake-up by a socket that has nothing around it.
type Bare = fn() -> Result<u64, Failure>;

fn main() -> Result<(), Failure> {
    let mut words = std::env::args_os().skip(1);
    if words.next().is_some_and(|word| word == PUBLISH) {
        let path = words.next().ok_or("no directory was named")?;
        return publish(&open(Path::new(&path), "shm", "host")?);
    }
    let directory = TempDir::new_in("/dev/shm")?;
    let path = directory.path().join("domain");
    let rows: [(&str, Row, Option<Bare>); 5] = [
        ("threads", ("shm", "process", Publisher::Thread), None),
        ("shared memory", ("shm", "host", Publisher::Process), None),
        ("rm", ("rm", "host", Publisher::Thread), Some(bare_udp)),
        ("ru", ("ru", "host", Publisher::Thread), Some(bare_udp)),
        ("tcp", ("tcp", "host", Publisher::Thread), Some(bare_tcp)),
    ];
    for (name, row, socket) in rows {
        let (mut eventfd, mut ours, mut sockets) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..PAIRS {
            eventfd.push(bare()?);
            ours.push(over(&path, row)?);
            if let Some(socket) = socket {
                sockets.push(socket()?);
            }
        }
        let (p50, event) = (microseconds(&ours), microseconds(&eventfd));
        let ratio = ratio(&ours, &eventfd);
        print!("{name}: p50 {p50}, eventfd {event}, ratio {ratio}");
        if !sockets.is_empty() {
            let (socket, limit) = (microseconds(&sockets), self::ratio(&sockets, &eventfd));
            print!("; a bare socket {socket}, ratio {limit}");
        }
        let (taken, wakeups) = idle(&path, row)?;
        let share = 100.0 * taken.as_secs_f64() / IDLE.as_secs_f64();
        print!(", {PAIRS} pairs; idle for {IDLE:?}: {wakeups} wake-ups, ");
        println!("{} us of CPU time ({share:.2} %)", taken.as_micros());
    }
    Ok(())
}

fn microseconds(medians: &[u64]) -> String {
    format!("{:.1} us", median(medians.to_vec()) as f64 / 1e3)
}

/// Median, least and most of the ratios within the pairs.
fn ratio(ours: &[u64], bare: &[u64]) -> String {
    let mut ratios: Vec<u64> =
        ours.iter().zip(bare).map(|(ours, bare)| ours * 1_000 / bare).collect();
    ratios.sort_unstable();
    let shown = |at: usize| ratios[at] as f64 / 1e3;
    let last = ratios.len() - 1;
    format!("{:.2} ({:.2}..{:.2})", shown(last / 2), shown(0), shown(last))
}
