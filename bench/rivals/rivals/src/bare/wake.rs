//! One CPU woken by another through a bare futex.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread;

use anyhow::{Result, anyhow};

use rivals_kit::futex::{self, Reach};
use rivals_kit::{Clock, Line, Recorder, clock, placement};

use super::arguments::OneWayArgs;

/// Value of the word that tells the sleeper to end.
const OVER: u32 = u32::MAX;

#[derive(Debug, Default)]
#[repr(align(128))]
struct Bell {
    /// Counts the wake-ups; the sleeper sleeps on it.
    word: AtomicU32,
    /// Time of the last wake-up in ticks, written before the word.
    stamp: AtomicU64,
}

/// Measures from just before the wake-up to the first instruction of the woken thread.
///
/// # Errors
///
/// When a CPU cannot be used.
pub fn measure(arguments: &OneWayArgs) -> Result<Line> {
    let clock = Clock::calibrated();
    let bell = Bell::default();
    let (rung, heard) = thread::scope(|scope| {
        let sleeper = scope.spawn(|| sleep(arguments, &bell));
        let rung = ring(arguments, &bell, &clock);
        // PAIRS(bell): the end is rung like everything else.
        bell.word.store(OVER, Ordering::Release);
        futex::wake(&bell.word, Reach::Host);
        (rung, sleeper.join())
    });
    rung?;
    let recorder = heard.map_err(|_| anyhow!("sleeper panicked"))??;
    let mut line = Line::default();
    line.add("rate", arguments.rate);
    recorder.describe(&clock, &mut line);
    line.add("clock", Clock::NAME);
    line.add("clock_cost_ns", format_args!("{:.1}", clock.cost_ns()));
    Ok(line)
}

fn ring(arguments: &OneWayArgs, bell: &Bell, clock: &Clock) -> Result<()> {
    placement::pin(arguments.from_cpu)?;
    let interval = clock.ticks(1e9 / arguments.rate as f64);
    let count = (arguments.rate * (arguments.warmup_ms + arguments.duration_ms) / 1000).min(u64::from(OVER) - 1);
    let start = clock::now();
    for index in 1..=count as u32 {
        let due = start + (f64::from(index) * interval) as u64;
        while clock::now() < due {
            std::hint::spin_loop();
        }
        bell.stamp.store(clock::now(), Ordering::Relaxed);
        // PAIRS(bell): the stamp is there before the word says so.
        bell.word.store(index, Ordering::Release);
        futex::wake(&bell.word, Reach::Host);
    }
    Ok(())
}

fn sleep(arguments: &OneWayArgs, bell: &Bell) -> Result<Recorder> {
    placement::pin(arguments.to_cpu)?;
    let (mut recorder, mut seen) = (Recorder::default(), 0);
    let first_measured = (arguments.rate * arguments.warmup_ms / 1000) as u32;
    loop {
        futex::wait(&bell.word, seen, Reach::Host);
        // PAIRS(bell): after the word the stamp is the one that was rung.
        let word = bell.word.load(Ordering::Acquire);
        if word == OVER {
            return Ok(recorder);
        }
        if word != seen {
            let way = clock::after_load().saturating_sub(bell.stamp.load(Ordering::Relaxed));
            seen = word;
            if word > first_measured {
                recorder.record(way, way);
            }
        }
    }
}
