//! There and back: one end sends at a fixed rate, never waiting for answers, and times each of
//! them; the other sends back what it gets.

use std::thread;
use std::time::Duration;

use anyhow::Result;

use lanecast_measure::pacing::Pace;
use rivals_kit::message::{self, Stamps, WARMUP};
use rivals_kit::pace::pace;
use rivals_kit::{Clock, Line, Load, Tally, Wait, placement};

use crate::end::{End, sleeps};

/// Silence after which missing answers count as lost.
const SILENCE: Duration = Duration::from_secs(2);
/// The same for the answers of the warm-up; those that come later count for nothing.
const SETTLE: Duration = Duration::from_millis(500);

/// Pins the thread, warms up, makes the measured round trips and tells what they took.
///
/// # Errors
///
/// When the CPU cannot be used or the transport is broken.
pub fn ping<E: End>(load: &Load, end: E) -> Result<Line> {
    placement::pin(load.cpu)?;
    let clock = Clock::host();
    let ticks = |time: Duration| clock.from_ns(time.as_nanos() as u64);
    let mut ping =
        Ping { load, end, clock, tally: Tally::new(load), part: WARMUP, sent: 0, heard: 0 };
    ping.send_all(WARMUP, (load.rate * load.warmup_ms / 1000).max(1))?;
    ping.wait_for_answers(ticks(SETTLE))?;
    (ping.part, ping.sent, ping.heard) = (0, 0, 0);
    ping.send_all(0, load.messages)?;
    ping.wait_for_answers(ticks(SILENCE))?;
    Ok(ping.tally.describe())
}

struct Ping<'a, E> {
    load: &'a Load,
    end: E,
    clock: Clock,
    tally: Tally,
    /// Which messages are counted: what their sequence numbers have in common.
    part: u64,
    sent: u64,
    heard: u64,
}

impl<E: End> Ping<'_, E> {
    fn send_all(&mut self, first: u64, count: u64) -> Result<()> {
        let mut pace = pace(self.clock, self.load.rate.max(1), count);
        while pace.sent() < count {
            let Some(due) = pace.due_at(self.clock.ticks()) else {
                if self.listen()? == 0 {
                    make_room(self.load);
                }
                continue;
            };
            for slot in due {
                let stamp = slot.due.unwrap_or_default();
                while !self.send_one(first + slot.index, stamp)? || !self.end.flush()? {
                    self.listen()?;
                }
                self.listen()?;
            }
        }
        Ok(())
    }

    /// Sends one message; one that was taken already only has to leave.
    fn send_one(&mut self, sequence: u64, due: u64) -> Result<bool> {
        let number = (sequence & !WARMUP) + 1;
        if self.sent == number {
            return Ok(true);
        }
        let clock = self.clock;
        let taken = self.end.send(self.load.size, |bytes| {
            message::write_sequence(bytes, sequence);
            message::write_stamps(bytes, Stamps { sent: clock.ticks(), due });
        })?;
        self.sent += u64::from(taken);
        Ok(taken)
    }

    /// Takes the answers that are there. An end that sleeps is asked only when one is due.
    fn listen(&mut self) -> Result<usize> {
        if sleeps(self.load) && self.heard >= self.sent {
            return Ok(0);
        }
        let Self { end, tally, heard, part, .. } = self;
        end.receive(|bytes| {
            *heard += u64::from(message::sequence(bytes) & WARMUP == *part);
            tally.take(bytes);
        })
    }

    /// Until all have come, or none has for so many ticks.
    fn wait_for_answers(&mut self, silence: u64) -> Result<()> {
        let mut last = self.clock.ticks();
        while self.heard < self.sent {
            self.end.flush()?;
            let now = self.clock.ticks();
            if self.listen()? > 0 {
                last = now;
                continue;
            }
            if now.saturating_sub(last) > silence {
                self.tally.give_up(last);
                break;
            }
            make_room(self.load);
        }
        Ok(())
    }
}

/// Lets the threads of the transport have the CPU, if it has any.
fn make_room(load: &Load) {
    if load.wait == Wait::Yield {
        thread::yield_now();
    }
}

/// Pins the thread and sends back whatever comes, until it is ended from outside.
///
/// # Errors
///
/// When the CPU cannot be used or the transport is broken.
pub fn pong<E: End>(load: &Load, mut end: E) -> Result<()> {
    placement::pin(load.cpu)?;
    let (mut inbox, mut lengths) = (Vec::new(), Vec::new());
    // The process that starts the other end waits for this line.
    eprintln!("ready");
    loop {
        let count = end.receive(|bytes| {
            inbox.extend_from_slice(bytes);
            lengths.push(bytes.len());
        })?;
        let mut rest = inbox.as_slice();
        for length in lengths.drain(..) {
            let (message, after) = rest.split_at(length);
            rest = after;
            while !end.send(length, |bytes| bytes.copy_from_slice(message))? {
                end.flush()?;
            }
        }
        if count == 0 {
            make_room(load);
            continue;
        }
        while !end.flush()? {}
        inbox.clear();
    }
}
