//! One CPU woken by another through a bare futex.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread;

use anyhow::{Result, anyhow};

use lanecast_measure::pacing::Pace;
use rivals_kit::futex::{self, Reach};
use rivals_kit::pace::pace;
use rivals_kit::{Clock, Line, Recorder, placement};

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
    let clock = Clock::host();
    let bell = Bell::default();
    let (rung, heard) = thread::scope(|scope| {
        let sleeper = scope.spawn(|| sleep(arguments, &bell, clock));
        let rung = ring(arguments, &bell, clock);
        // PAIRS(bell): the end is rung like everything else.
        bell.word.store(OVER, Ordering::Release);
        futex::wake(&bell.word, Reach::Host);
        (rung, sleeper.join())
    });
    rung?;
    let recorder = heard.map_err(|_| anyhow!("sleeper panicked"))??;
    let mut line = Line::default();
    line.add("rate", arguments.rate);
    recorder.describe(&mut line);
    line.add_clock(clock);
    Ok(line)
}

fn ring(arguments: &OneWayArgs, bell: &Bell, clock: Clock) -> Result<()> {
    placement::pin(arguments.from_cpu)?;
    let count = (arguments.rate * (arguments.warmup_ms + arguments.duration_ms) / 1000)
        .min(u64::from(OVER) - 1);
    let mut pace = pace(clock, arguments.rate, count);
    while let Some(due) = pace.next_burst(|| clock.ticks(), &|| false) {
        for slot in due {
            bell.stamp.store(clock.ticks(), Ordering::Relaxed);
            // PAIRS(bell): the stamp is there before the word says so.
            bell.word.store(slot.index as u32 + 1, Ordering::Release);
            futex::wake(&bell.word, Reach::Host);
        }
    }
    Ok(())
}

fn sleep(arguments: &OneWayArgs, bell: &Bell, clock: Clock) -> Result<Recorder> {
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
            let way = clock.ticks_ordered().saturating_sub(bell.stamp.load(Ordering::Relaxed));
            let way = clock.ns(way);
            seen = word;
            if word > first_measured {
                recorder.record(way, way);
            }
        }
    }
}
