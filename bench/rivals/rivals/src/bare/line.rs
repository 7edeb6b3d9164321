//! One cache line handed between two pinned threads: the shortest way of any message.
//!
//! The writer puts the time into the line when the next transfer is due; the reader spins on the
//! line and takes an ordered time as soon as it sees a new value. Nothing is sent back, so a
//! reader that was held up misses values; it never delays the writer.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use anyhow::{Result, anyhow};

use lanecast_measure::pacing::Pace;
use rivals_kit::pace::pace;
use rivals_kit::{Clock, Line, Recorder, placement};

use super::arguments::OneWayArgs;

/// Alone on its line and on the neighbour that the hardware may fetch with it.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Alone<T>(T);

#[derive(Debug, Default)]
struct Shared {
    /// Time of the transfer in ticks; written by the writer, read by the reader.
    stamp: Alone<AtomicU64>,
    /// Set once by the writer when the measured part begins, and again when all is over.
    measuring: Alone<AtomicBool>,
    over: Alone<AtomicBool>,
}

/// Measures the way of the line at the asked rate.
///
/// # Errors
///
/// When a CPU cannot be used.
pub fn measure(arguments: &OneWayArgs) -> Result<Line> {
    let clock = Clock::host();
    let shared = Shared::default();
    let (sent, seen) = thread::scope(|scope| {
        let reader = scope.spawn(|| read(arguments, &shared, clock));
        let sent = write(arguments, &shared, clock);
        // PAIRS(bare-over): the reader sees every stamp before it sees the end.
        shared.over.0.store(true, Ordering::Release);
        (sent, reader.join())
    });
    let (sent, (received, recorder)) = (sent?, seen.map_err(|_| anyhow!("reader panicked"))??);
    let mut line = Line::default();
    line.add("received", received);
    line.add("missed", sent.saturating_sub(received));
    line.add("rate", format_args!("{:.0}", sent as f64 * 1000.0 / arguments.duration_ms as f64));
    recorder.describe(&mut line);
    line.add_clock(clock);
    Ok(line)
}

fn write(arguments: &OneWayArgs, shared: &Shared, clock: Clock) -> Result<u64> {
    placement::pin(arguments.from_cpu)?;
    let stream = |duration_ms: u64| {
        let count = arguments.rate * duration_ms / 1000;
        let mut pace = pace(clock, arguments.rate, count);
        while let Some(due) = pace.next_burst(|| clock.ticks(), &|| false) {
            for _ in due {
                // PAIRS(bare-stamp): the stamp is all there is to see.
                shared.stamp.0.store(clock.ticks(), Ordering::Release);
            }
        }
        count
    };
    stream(arguments.warmup_ms);
    shared.measuring.0.store(true, Ordering::Relaxed);
    Ok(stream(arguments.duration_ms))
}

fn read(arguments: &OneWayArgs, shared: &Shared, clock: Clock) -> Result<(u64, Recorder)> {
    placement::pin(arguments.to_cpu)?;
    let (mut recorder, mut received, mut last) = (Recorder::default(), 0_u64, 0_u64);
    let (mut spins, mut measuring) = (0_u32, false);
    loop {
        // PAIRS(bare-stamp): nothing else is read through the stamp.
        let stamp = shared.stamp.0.load(Ordering::Acquire);
        if stamp != last {
            let way = clock.ns(clock.ticks_ordered().saturating_sub(stamp));
            last = stamp;
            recorder.record(way, way);
            received += 1;
            if !measuring && shared.measuring.0.load(Ordering::Relaxed) {
                (measuring, received) = (true, 0);
                recorder.end_warm_up();
            }
            continue;
        }
        spins = spins.wrapping_add(1);
        // PAIRS(bare-over): looked at rarely, so that the reader watches one line only.
        if spins.is_multiple_of(1 << 16) && shared.over.0.load(Ordering::Acquire) {
            return Ok((received, recorder));
        }
    }
}
