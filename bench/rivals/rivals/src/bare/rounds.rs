//! Round trips of the machine itself: the floor of any ping-pong between two threads.
//!
//! Spinning, one cache line goes there and back: each end waits for its turn on it. Asleep, each
//! end sleeps on a futex of its own until the other wakes it, every time.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use clap::Args;

use rivals_kit::futex::{self, Reach};
use rivals_kit::rounds::SPINNING_GROUP;
use rivals_kit::{Clock, Line, Rounds, placement};

use super::arguments::OneWayArgs;

/// Round trips from which the speed is learnt; also the warm-up.
const TRIAL: u64 = 2_000;
/// Value that ends the answering side.
const OVER: u64 = u64::MAX;

/// CPUs, number of rounds, and wait strategy.
#[derive(Args, Clone, Debug)]
pub struct RoundArgs {
    #[command(flatten)]
    one_way: OneWayArgs,
    /// Both ends sleep until they are woken
    #[arg(long)]
    asleep: bool,
}

/// The line; and for sleepers a bell at each end.
#[derive(Debug, Default)]
struct Table {
    ball: Alone<AtomicU64>,
    near: Alone<AtomicU32>,
    far: Alone<AtomicU32>,
}

#[derive(Debug, Default)]
#[repr(align(128))]
struct Alone<T>(T);

/// Measures round trips.
///
/// # Errors
///
/// When a CPU cannot be used.
pub fn measure(arguments: &RoundArgs) -> Result<Line> {
    let (clock, one_way) = (Clock::host(), &arguments.one_way);
    placement::pin(one_way.from_cpu)?;
    let table = Table::default();
    let timed = thread::scope(|scope| -> Result<Rounds> {
        let answering = scope.spawn(|| -> Result<()> {
            placement::pin(one_way.to_cpu)?;
            if arguments.asleep {
                table.answer_asleep()
            } else {
                table.answer_awake()
            }
            Ok(())
        });
        let time = |rounds| {
            if arguments.asleep {
                Rounds::time(rounds, 1, |value| table.call_asleep(value))
            } else {
                Rounds::time(rounds, SPINNING_GROUP, |value| table.call_awake(value))
            }
        };
        let from = Instant::now();
        time(TRIAL);
        let timed = time(rounds_in(Duration::from_millis(one_way.duration_ms), from.elapsed()));
        table.end();
        answering.join().map_err(|_| anyhow!("the answering thread panicked"))??;
        Ok(timed)
    })?;
    let mut line = Line::default();
    line.add("received", timed.rounds);
    line.add("damaged", timed.damaged);
    line.add(
        "rate",
        format_args!("{:.0}", timed.rounds as f64 * 1e9 / clock.ns(timed.ticks) as f64),
    );
    timed.recorder.describe(&mut line);
    line.add_clock(clock);
    Ok(line)
}

fn rounds_in(time: Duration, of_trial: Duration) -> u64 {
    let share = time.as_secs_f64() / of_trial.as_secs_f64().max(1e-9);
    (TRIAL as f64 * share).max(1.0) as u64
}

/// An odd number on the line is the caller's, the even one after it the answer.
impl Table {
    fn call_awake(&self, value: u64) -> u64 {
        // PAIRS(bare-ball): nothing else is read through the line.
        self.ball.0.store(2 * value + 1, Ordering::Release);
        loop {
            // PAIRS(bare-ball): as above.
            let seen = self.ball.0.load(Ordering::Acquire);
            if seen.is_multiple_of(2) {
                return seen / 2 - 1;
            }
        }
    }

    fn answer_awake(&self) {
        loop {
            // PAIRS(bare-ball): as in `call_awake`.
            match self.ball.0.load(Ordering::Acquire) {
                OVER => return,
                // PAIRS(bare-ball): as in `call_awake`.
                odd if !odd.is_multiple_of(2) => self.ball.0.store(odd + 1, Ordering::Release),
                _ => (),
            }
        }
    }

    fn call_asleep(&self, value: u64) -> u64 {
        self.ball.0.store(value, Ordering::Relaxed);
        ring(&self.far.0);
        hear(&self.near.0);
        self.ball.0.load(Ordering::Relaxed)
    }

    fn answer_asleep(&self) {
        loop {
            hear(&self.far.0);
            if self.ball.0.load(Ordering::Relaxed) == OVER {
                return;
            }
            ring(&self.near.0);
        }
    }

    fn end(&self) {
        // PAIRS(bare-ball): the end is all there is to see.
        self.ball.0.store(OVER, Ordering::Release);
        ring(&self.far.0);
    }
}

fn ring(bell: &AtomicU32) {
    // PAIRS(bare-rounds-bell): what was written before is seen by who hears it.
    bell.store(1, Ordering::Release);
    futex::wake(bell, Reach::Process);
}

fn hear(bell: &AtomicU32) {
    // PAIRS(bare-rounds-bell): acquire here, release in `ring`.
    while bell.swap(0, Ordering::Acquire) == 0 {
        futex::wait(bell, 0, Reach::Process);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_called_is_answered() {
        let table = Table::default();
        thread::scope(|scope| {
            scope.spawn(|| table.answer_asleep());
            assert_eq!(Rounds::time(100, 1, |value| table.call_asleep(value)).damaged, 0);
            table.end();
        });
        let table = Table::default();
        assert_eq!(rounds_in(Duration::from_secs(1), Duration::from_millis(500)), 2 * TRIAL);
        thread::scope(|scope| {
            scope.spawn(|| table.answer_awake());
            assert_eq!(Rounds::time(10, 1, |value| table.call_awake(value)).damaged, 0);
            table.end();
        });
    }
}
