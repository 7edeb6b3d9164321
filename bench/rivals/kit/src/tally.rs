//! The subscriber's side: every sequence number is checked, every stamp recorded.

use std::hint;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use lanecast_base::clock::Clock;

use crate::line::Line;
use crate::load::{Load, Touch, Wait};
use crate::message::{self, WARMUP};
use crate::placement;
use crate::recorder::Recorder;

/// Time limit for the first message.
const FIRST_LIMIT: Duration = Duration::from_secs(30);
/// Silence after which a stream counts as ended.
const SILENCE_LIMIT: Duration = Duration::from_secs(3);
/// Empty polls between two looks at the clock.
const POLLS_PER_LOOK: u32 = 4096;
/// Empty polls after which [`Wait::Yield`] gives the CPU away.
const SPINS_BEFORE_YIELD: u32 = 20;

/// The subscriber's end of a transport.
pub trait Receiver {
    /// Hands the messages that are there to the tally, some at a time; returns how many.
    ///
    /// # Errors
    ///
    /// When the transport is broken.
    fn poll(&mut self, tally: &mut Tally) -> Result<usize>;
}

/// Counts and latencies of a subscriber.
#[derive(Debug)]
pub struct Tally {
    messages: u64,
    stamped: bool,
    whole: bool,
    measuring: bool,
    expected: u64,
    received: u64,
    lost: u64,
    lost_in_warmup: u64,
    damaged: u64,
    first_ticks: u64,
    last_ticks: u64,
    recorder: Recorder,
    clock: Clock,
}

impl Tally {
    /// An empty tally for a load.
    pub fn new(load: &Load) -> Self {
        Self {
            messages: load.messages,
            stamped: load.latency,
            whole: load.touch == Touch::Whole,
            measuring: false,
            expected: WARMUP,
            received: 0,
            lost: 0,
            lost_in_warmup: 0,
            damaged: 0,
            first_ticks: 0,
            last_ticks: 0,
            recorder: Recorder::default(),
            clock: Clock::host(),
        }
    }

    /// Takes one message, read in place.
    #[inline]
    pub fn take(&mut self, bytes: &[u8]) {
        let sequence = message::sequence(bytes);
        if sequence != self.expected {
            self.resume_at(sequence);
        }
        self.expected = sequence + 1;
        self.received += 1;
        if self.stamped {
            let at = self.clock.ticks_ordered();
            let stamps = message::stamps(bytes);
            let since = |stamp: u64| self.clock.ns(at.saturating_sub(stamp));
            let (sent, due) = (since(stamps.sent), since(stamps.due));
            self.recorder.record(sent, due);
        }
        if self.whole && !message::body_is_whole(bytes, self.stamped, sequence) {
            self.damaged += 1;
        }
        if self.received + self.lost == self.messages && self.measuring {
            self.last_ticks = self.clock.ticks();
        }
    }

    /// True when every measured message has arrived or is known to be lost.
    #[inline]
    pub fn is_complete(&self) -> bool {
        self.measuring && self.received + self.lost >= self.messages
    }

    /// Ends a stream that fell silent at `silent_since` (ticks): what has not arrived is lost.
    pub fn give_up(&mut self, silent_since: u64) {
        self.received = if self.measuring { self.received } else { 0 };
        self.lost = self.messages.saturating_sub(self.received);
        self.last_ticks = silent_since;
    }

    /// The result line.
    pub fn describe(&self) -> Line {
        let duration_ns = self.clock.ns(self.last_ticks.saturating_sub(self.first_ticks));
        let rate = self.received.saturating_sub(1) as f64 * 1e9 / duration_ns.max(1) as f64;
        let mut line = Line::default();
        line.add("received", self.received);
        line.add("lost", self.lost);
        line.add("duration_ns", duration_ns);
        line.add("rate", format_args!("{rate:.0}"));
        if self.stamped {
            self.recorder.describe(&mut line);
        }
        line.add("damaged", self.damaged);
        line.add("warmup_lost", self.lost_in_warmup);
        line.add_clock(self.clock);
        line
    }

    /// The sequence number is not the expected one: the measured part begins, or some are lost.
    #[cold]
    fn resume_at(&mut self, sequence: u64) {
        let warm = sequence & WARMUP != 0;
        if !warm && !self.measuring {
            self.measuring = true;
            self.received = 0;
            self.damaged = 0;
            self.lost = sequence;
            self.recorder.end_warm_up();
            self.first_ticks = self.clock.ticks();
            return;
        }
        let missing = sequence.saturating_sub(self.expected);
        if self.measuring {
            self.lost += missing;
        } else {
            self.lost_in_warmup += missing;
        }
    }
}

/// Pins the thread, reads the whole stream and tells what was seen.
///
/// # Errors
///
/// When the CPU cannot be used or the transport is broken.
pub fn receive<R: Receiver>(load: &Load, receiver: &mut R) -> Result<Line> {
    placement::pin(load.cpu)?;
    let mut tally = Tally::new(load);
    // The process that starts the publisher waits for this line.
    eprintln!("ready");
    drain(receiver, &mut tally, load.wait)?;
    Ok(tally.describe())
}

fn drain<R: Receiver>(receiver: &mut R, tally: &mut Tally, wait: Wait) -> Result<()> {
    let (mut empty, mut seen) = (0_u32, 0);
    let (mut heard, mut heard_ticks) = (Instant::now(), tally.clock.ticks());
    while !tally.is_complete() {
        if receiver.poll(tally)? > 0 {
            empty = 0;
            continue;
        }
        empty = empty.wrapping_add(1);
        // A poll that blocks has taken long enough to look each time.
        if wait == Wait::Block || empty.is_multiple_of(POLLS_PER_LOOK) {
            if tally.expected != seen {
                (seen, heard, heard_ticks) = (tally.expected, Instant::now(), tally.clock.ticks());
            }
            let limit = if tally.expected == WARMUP { FIRST_LIMIT } else { SILENCE_LIMIT };
            if heard.elapsed() > limit {
                tally.give_up(heard_ticks);
                return Ok(());
            }
        }
        idle(wait, empty);
    }
    Ok(())
}

#[inline(always)]
fn idle(wait: Wait, empty: u32) {
    match wait {
        Wait::Yield if empty > SPINS_BEFORE_YIELD => thread::yield_now(),
        Wait::Spin | Wait::Yield | Wait::Block => hint::spin_loop(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(messages: u64) -> Load {
        Load {
            cpu: 0,
            size: 64,
            messages,
            rate: 0,
            topic: "t".into(),
            touch: Touch::Header,
            latency: false,
            wait: Wait::Spin,
            warmup_ms: 1,
            subscribers: 1,
            domain: "d".into(),
        }
    }

    fn take(tally: &mut Tally, sequences: &[u64]) {
        for sequence in sequences {
            let mut bytes = [0; 64];
            message::write_sequence(&mut bytes, *sequence);
            tally.take(&bytes);
        }
    }

    #[test]
    fn warm_up_does_not_count() {
        let mut tally = Tally::new(&load(2));
        take(&mut tally, &[WARMUP, WARMUP + 1, WARMUP + 2]);
        assert!(!tally.is_complete());
        take(&mut tally, &[0, 1]);
        assert!(tally.is_complete());
        assert_eq!((tally.received, tally.lost, tally.lost_in_warmup), (2, 0, 0));
    }

    #[test]
    fn gaps_are_losses_of_the_part_they_are_in() {
        let mut tally = Tally::new(&load(10));
        take(&mut tally, &[WARMUP + 2, WARMUP + 3, 1, 2, 5, 9]);
        assert!(tally.is_complete());
        assert_eq!((tally.received, tally.lost, tally.lost_in_warmup), (4, 6, 2));
    }

    #[test]
    fn a_silent_stream_loses_the_rest() {
        let mut tally = Tally::new(&load(10));
        take(&mut tally, &[0, 1, 2]);
        tally.give_up(0);
        assert_eq!((tally.received, tally.lost), (3, 7));
    }
}
