//! The demonstration's processes.
//!
//! A message is its number, its intended send time in ticks (8 bytes each, little-endian), and
//! a line of the file.

use super::ticks::prices;
use crate::output::print_json;
use lanecast::prelude::*;
use lanecast_base::clock::Clock;
use lanecast_measure::Recorder;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

const TOPIC: &str = "ticks";
const HEADER: usize = 16;
/// No intended time: flat out.
const UNTIMED: u64 = 0;

/// Report of the publisher after each part.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct PublisherFigures {
    pub(super) pid: u32,
    /// Messages per second of this part.
    pub(super) rate: f64,
    /// Messages sent so far.
    pub(super) total: u64,
    /// Sum of all bids and asks sent so far, modulo 2^64.
    pub(super) checksum: u64,
    pub(super) mean_bytes: u64,
    /// The longest wait for room so far.
    pub(super) longest_wait_ns: u64,
}

/// Report of a subscriber at its end.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SubscriberFigures {
    pub(super) pid: u32,
    pub(super) received: u64,
    pub(super) out_of_order: u64,
    pub(super) checksum: u64,
    pub(super) p50_ns: u64,
    pub(super) p99_ns: u64,
    pub(super) p99_9_ns: u64,
    /// Reason for the end of the stream.
    pub(super) fate: String,
}

pub(super) fn context(directory: &Path) -> anyhow::Result<Context> {
    Ok(Context::builder().set("shm.directory", directory.display())?.build()?)
}

struct Sender<'a> {
    publisher: Publisher,
    lines: std::iter::Cycle<std::slice::Iter<'a, &'a [u8]>>,
    figures: PublisherFigures,
    bytes: u64,
}

impl Sender<'_> {
    fn send(&mut self, due: u64) -> Result<(), ClaimError> {
        let line = self.lines.next().copied().unwrap_or_default();
        let length = HEADER + line.len();
        if let Err(ClaimError::BackPressured(_)) =
            self.publisher.try_claim(length).map(Claim::abort)
        {
            let start = Instant::now();
            self.publisher.claim(length)?.abort();
            let waited = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
            self.figures.longest_wait_ns = self.figures.longest_wait_ns.max(waited);
        }
        let mut claim = self.publisher.claim(length)?;
        claim[..8].copy_from_slice(&self.figures.total.to_le_bytes());
        claim[8..HEADER].copy_from_slice(&due.to_le_bytes());
        claim[HEADER..].copy_from_slice(line);
        claim.commit();
        self.figures.total += 1;
        self.bytes += length as u64;
        let (bid, ask) = prices(line).unwrap_or_default();
        self.figures.checksum = self.figures.checksum.wrapping_add(bid).wrapping_add(ask << 32);
        Ok(())
    }

    /// Reports the part that began at `start`, when `before` messages had been sent.
    fn report(&mut self, start: Instant, before: u64) -> anyhow::Result<()> {
        let figures = &mut self.figures;
        figures.rate = (figures.total - before) as f64 / start.elapsed().as_secs_f64();
        figures.mean_bytes = self.bytes / figures.total.max(1);
        Ok(print_json(figures)?)
    }
}

/// Streams the file's lines: first at `rate`, evenly, then as fast as they are read.
pub(super) fn publish(
    directory: &Path,
    file: &Path,
    part: Duration,
    rate: u64,
    readers: usize,
) -> anyhow::Result<ExitCode> {
    let text = std::fs::read(file)?;
    let lines: Vec<&[u8]> = text.trim_ascii_end().split(|&byte| byte == b'\n').collect();
    let mut publisher = context(directory)?.publisher(TOPIC)?;
    anyhow::ensure!(
        publisher.wait_for_subscribers(readers, Duration::from_secs(20)),
        "the subscribers did not come"
    );
    let figures = PublisherFigures {
        pid: std::process::id(),
        rate: 0.0,
        total: 0,
        checksum: 0,
        mean_bytes: 0,
        longest_wait_ns: 0,
    };
    let mut sender = Sender { publisher, lines: lines.iter().cycle(), figures, bytes: 0 };

    let clock = Clock::host();
    let (start, origin) = (Instant::now(), clock.ticks());
    let count = rate * part.as_secs();
    while sender.figures.total < count {
        let elapsed = clock.ns(clock.ticks().wrapping_sub(origin));
        let target = (u128::from(elapsed) * u128::from(rate) / 1_000_000_000) as u64 + 1;
        let target = target.min(count);
        if sender.figures.total == target {
            std::thread::yield_now(); // Four processes share what may be two CPUs.
        }
        while sender.figures.total < target {
            let due_ns = u128::from(sender.figures.total) * 1_000_000_000 / u128::from(rate);
            let due = origin.wrapping_add(clock.from_ns(due_ns as u64));
            sender.send(due.max(UNTIMED + 1))?;
        }
    }
    sender.report(start, 0)?;

    sender.figures.longest_wait_ns = 0;
    let (start, before) = (Instant::now(), sender.figures.total);
    while start.elapsed() < part {
        for _ in 0..1000 {
            sender.send(UNTIMED)?;
        }
    }
    sender.report(start, before)?;
    // Killed subscribers are part of the show: the living ones read everything.
    let completion = sender.publisher.close(Duration::from_secs(20));
    Ok(ExitCode::from(u8::from(completion.timed_out())))
}

/// Reads everything, checks order and content, and reports when the stream ends.
pub(super) fn subscribe(directory: &Path) -> anyhow::Result<ExitCode> {
    let mut feed = context(directory)?.subscriber(TOPIC)?;
    let clock = Clock::host();
    let mut recorder = Recorder::new();
    let (mut received, mut out_of_order, mut checksum) = (0u64, 0u64, 0u64);
    let mut fate = None;
    let start = Instant::now();
    while fate.is_none() {
        let work = feed.poll(256, |event| match event {
            Event::Message(message) => {
                let number = u64_at(message.bytes(), 0);
                let due = u64_at(message.bytes(), 8);
                let line = message.bytes().get(HEADER..).unwrap_or_default();
                let (bid, ask) = prices(line).unwrap_or_default();
                checksum = checksum.wrapping_add(bid).wrapping_add(ask << 32);
                out_of_order += u64::from(number != received);
                received += 1;
                if due != UNTIMED {
                    recorder.record(clock.ns(clock.ticks_ordered().saturating_sub(due)));
                }
            }
            Event::Left(_, why) => fate = Some(why.describe().to_owned()),
            _ => {}
        });
        feed.wait(work);
        anyhow::ensure!(
            received > 0 || start.elapsed() < Duration::from_secs(30),
            "no message came"
        );
    }
    let (p50_ns, p99_ns, p99_9_ns) =
        recorder.distribution().map_or((0, 0, 0), |d| (d.p50_ns, d.p99_ns, d.p99_9_ns));
    let figures = SubscriberFigures {
        pid: std::process::id(),
        received,
        out_of_order,
        checksum,
        p50_ns,
        p99_ns,
        p99_9_ns,
        fate: fate.unwrap_or_default(),
    };
    print_json(&figures)?;
    Ok(ExitCode::SUCCESS)
}

fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    let bytes = bytes.get(offset..).and_then(<[u8]>::first_chunk);
    bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
}
