//! Round trips between two threads.

use std::thread;

use anyhow::{Result, anyhow};

use rivals_kit::rounds::{SPINNING_GROUP, whole_groups};
use rivals_kit::{Clock, Line, Rounds, Wait, placement};

use crate::load::Load;

/// One end of a pair: it can send a value, and take the next one that the other end sent.
pub trait End: Send {
    /// Sends and awaits answers, and times them.
    fn time(&mut self, rounds: u64, group: u64) -> Rounds;

    /// Sends back what comes.
    fn answer(&mut self, rounds: u64);
}

/// A library set up for round trips.
pub struct Pair {
    /// The end that begins.
    pub near: Box<dyn End>,
    /// The end that answers.
    pub far: Box<dyn End>,
}

struct Both<S, P, T>(S, P, T);

/// An end that puts into one queue and takes from the other.
pub fn end(
    mut put: impl FnMut(u64) + Send + 'static,
    mut take: impl FnMut() -> u64 + Send + 'static,
) -> Box<dyn End> {
    end_over((), move |(), value| put(value), move |()| take())
}

/// An end that sends and receives over the same socket.
pub fn end_over<S: Send + 'static>(
    socket: S,
    put: impl FnMut(&mut S, u64) + Send + 'static,
    take: impl FnMut(&mut S) -> u64 + Send + 'static,
) -> Box<dyn End> {
    Box::new(Both(socket, put, take))
}

impl<S, P, T> End for Both<S, P, T>
where
    S: Send,
    P: FnMut(&mut S, u64) + Send,
    T: FnMut(&mut S) -> u64 + Send,
{
    fn time(&mut self, rounds: u64, group: u64) -> Rounds {
        let Self(socket, put, take) = self;
        Rounds::time(rounds, group, |value| {
            put(socket, value);
            take(socket)
        })
    }

    fn answer(&mut self, rounds: u64) {
        let Self(socket, put, take) = self;
        for _ in 0..rounds {
            let value = take(socket);
            put(socket, value);
        }
    }
}

/// Measures one run.
///
/// # Errors
///
/// When a CPU cannot be used, or the library panics.
pub fn run(pair: Pair, load: &Load) -> Result<Line> {
    // Tried here, because a thread that fails would leave the other waiting for it.
    placement::pin(load.producer_cpu)?;
    placement::pin(load.consumer_cpu)?;
    let clock = Clock::host();
    let group = if load.wait() == Wait::Spin { SPINNING_GROUP } else { 1 };
    let [warmup, measured] = load.parts();
    let Pair { mut near, mut far } = pair;
    let timed = thread::scope(|scope| -> Result<Rounds> {
        let answering = scope.spawn(move || -> Result<()> {
            placement::pin(load.consumer_cpu)?;
            far.answer(whole_groups(warmup, group) + whole_groups(measured, group));
            Ok(())
        });
        placement::pin(load.producer_cpu)?;
        near.time(warmup, group);
        let timed = near.time(measured, group);
        answering.join().map_err(|_| anyhow!("the answering thread panicked"))??;
        Ok(timed)
    })?;
    let mut line = Line::default();
    line.add("received", timed.rounds);
    line.add("lost", 0);
    line.add("damaged", timed.damaged);
    line.add(
        "rate",
        format_args!("{:.0}", timed.rounds as f64 * 1e9 / clock.ns(timed.ticks) as f64),
    );
    line.add("warmup_lost", 0);
    timed.recorder.describe(&mut line);
    line.add_clock(clock);
    Ok(line)
}
