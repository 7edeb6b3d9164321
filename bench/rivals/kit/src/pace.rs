//! The publisher's side: when each message is due, and the loop that keeps up with it.
//!
//! The schedule is the product's, [`Bursts`]: a sender that was held up finds several messages due
//! and sends them without a pause until it has caught up. Each message carries its due time.

use std::thread;

use anyhow::Result;
use lanecast_base::clock::Clock;
use lanecast_measure::pacing::{Bursts, Pace};

use crate::line::Line;
use crate::load::{Load, Touch, Wait};
use crate::message::{self, Stamps, WARMUP};
use crate::placement;

/// Quiet time between warm-up and measured part, in which a subscriber empties the transport.
const SETTLE_NS: u64 = 30_000_000;
/// Flat-out messages between two looks at the clock during the warm-up.
const WARMUP_CHUNK: u64 = 256;

/// The publisher's end of a transport.
pub trait Sender {
    /// Claims or loans room for `size` bytes, lets `fill` write them in place and publishes them;
    /// waits while the transport is full.
    ///
    /// # Errors
    ///
    /// When the transport is broken.
    fn send(&mut self, size: usize, fill: impl FnOnce(&mut [u8])) -> Result<()>;

    /// Called when nothing else is due: lets go of messages that [`send`](Self::send) gathered.
    /// Most transports publish each message at once.
    ///
    /// # Errors
    ///
    /// When the transport is broken.
    fn flush(&mut self) -> Result<()> {
        Ok(())
    }

    /// Called when everything has been sent: keeps the stream alive until it has been read.
    ///
    /// # Errors
    ///
    /// When the transport is broken.
    fn linger(&mut self) -> Result<()>;
}

/// Pins the thread, warms up, sends the measured load, and tells what was sent.
///
/// # Errors
///
/// When the CPU cannot be used or the transport is broken.
pub fn publish<S: Sender>(load: &Load, sender: &mut S) -> Result<Line> {
    placement::pin(load.cpu)?;
    let clock = Clock::host();
    let mut stream = Stream { load, clock, sender };
    stream.warm_up()?;
    stream.sender.flush()?;
    settle(clock);
    let from = clock.ticks();
    stream.send_all(0, load.messages)?;
    stream.sender.flush()?;
    let duration_ns = clock.ns(clock.ticks().saturating_sub(from)) as f64;
    let mut line = Line::default();
    line.add("sent", load.messages);
    line.add("duration_ns", format_args!("{duration_ns:.0}"));
    line.add("rate", format_args!("{:.0}", load.messages as f64 * 1e9 / duration_ns));
    line.add_clock(clock);
    Ok(line)
}

struct Stream<'a, S> {
    load: &'a Load,
    clock: Clock,
    sender: &'a mut S,
}

impl<S: Sender> Stream<'_, S> {
    /// The same loop as the measured one, on the warm-up's own sequence numbers.
    fn warm_up(&mut self) -> Result<()> {
        if self.load.rate > 0 {
            let count = self.load.rate * self.load.warmup_ms / 1000;
            return self.send_all(WARMUP, count);
        }
        let clock = self.clock;
        let end = clock.ticks() + clock.from_ns(self.load.warmup().as_nanos() as u64);
        let mut first = WARMUP;
        while clock.ticks() < end {
            self.send_all(first, WARMUP_CHUNK)?;
            first += WARMUP_CHUNK;
        }
        Ok(())
    }

    /// Sends `count` messages, the first of which has the sequence number `first`.
    fn send_all(&mut self, first: u64, count: u64) -> Result<()> {
        if self.load.rate == 0 {
            for sequence in first..first + count {
                self.send_one(sequence, None)?;
            }
            return Ok(());
        }
        let clock = self.clock;
        let mut pace = pace(clock, self.load.rate, count);
        let mut is_flushed = false;
        while pace.sent() < count {
            if let Some(due) = pace.due_at(clock.ticks()) {
                for slot in due {
                    self.send_one(first + slot.index, slot.due)?;
                }
                is_flushed = false;
            } else if !is_flushed {
                self.sender.flush()?;
                is_flushed = true;
            } else if self.load.wait == Wait::Yield {
                // Never sleeps, but lets the transport's own threads have the CPU.
                thread::yield_now();
            }
        }
        Ok(())
    }

    /// Sends one message; without a due time it is due when it is sent.
    #[inline(always)]
    fn send_one(&mut self, sequence: u64, due: Option<u64>) -> Result<()> {
        let clock = self.clock;
        let (stamped, whole) = (self.load.latency, self.load.touch == Touch::Whole);
        self.sender.send(self.load.size, |bytes| {
            message::write_sequence(bytes, sequence);
            if stamped {
                let sent = clock.ticks();
                message::write_stamps(bytes, Stamps { sent, due: due.unwrap_or(sent) });
            }
            if whole {
                message::write_body(bytes, stamped, sequence);
            }
        })
    }
}

/// A schedule of `count` messages at `rate` a second that begins now.
pub fn pace(clock: Clock, rate: u64, count: u64) -> Bursts {
    Bursts::even(rate, count, clock.ticks(), clock.from_ns(1_000_000_000))
}

fn settle(clock: Clock) {
    let end = clock.ticks() + clock.from_ns(SETTLE_NS);
    while clock.ticks() < end {
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[derive(Default)]
    struct Kept(Vec<Vec<u8>>);

    impl Sender for Kept {
        fn send(&mut self, size: usize, fill: impl FnOnce(&mut [u8])) -> Result<()> {
            let mut bytes = vec![0; size];
            fill(&mut bytes);
            self.0.push(bytes);
            Ok(())
        }

        fn linger(&mut self) -> Result<()> {
            Ok(())
        }
    }

    fn load(rate: u64) -> Load {
        Load {
            cpu: 0,
            size: 40,
            messages: 100,
            rate,
            topic: "t".into(),
            touch: Touch::Whole,
            latency: true,
            wait: Wait::Spin,
            warmup_ms: 1,
            subscribers: 1,
            domain: "d".into(),
        }
    }

    #[test]
    fn measured_messages_follow_the_warm_up_in_order() {
        for rate in [0, 100_000] {
            let mut kept = Kept::default();
            let line = publish(&load(rate), &mut kept).expect("CPU 0 exists");
            assert_eq!(line.number("sent"), Some(100.0));
            let (warm, measured) = kept.0.split_at(kept.0.len() - 100);
            assert!(!warm.is_empty());
            for (at, bytes) in warm.iter().enumerate() {
                assert_eq!(message::sequence(bytes), WARMUP + at as u64);
            }
            for (at, bytes) in measured.iter().enumerate() {
                assert_eq!(message::sequence(bytes), at as u64);
                assert!(message::body_is_whole(bytes, true, at as u64));
            }
        }
    }

    /// Lets go of what it gathered only when it is told to.
    #[derive(Default)]
    struct Gathering {
        gathered: usize,
        flushed: Vec<usize>,
    }

    impl Sender for Gathering {
        fn send(&mut self, size: usize, fill: impl FnOnce(&mut [u8])) -> Result<()> {
            fill(&mut vec![0; size]);
            self.gathered += 1;
            Ok(())
        }

        fn flush(&mut self) -> Result<()> {
            self.flushed.push(std::mem::take(&mut self.gathered));
            Ok(())
        }

        fn linger(&mut self) -> Result<()> {
            Ok(())
        }
    }

    #[test]
    fn gathered_messages_leave_before_a_wait_and_at_the_end() {
        for rate in [0, 20_000] {
            let mut gathering = Gathering::default();
            publish(&load(rate), &mut gathering).expect("CPU 0 exists");
            assert_eq!(gathering.gathered, 0);
            assert!(gathering.flushed.iter().sum::<usize>() > 100);
            // Flat out: after the warm-up and at the end; at a rate before each wait, too.
            assert_eq!(gathering.flushed.len() > 2, rate > 0);
        }
    }

    #[test]
    fn nothing_leaves_before_it_is_due() {
        let mut kept = Kept::default();
        publish(&load(50_000), &mut kept).expect("CPU 0 exists");
        let stamps: Vec<_> = kept.0.iter().map(|bytes| message::stamps(bytes)).collect();
        assert!(stamps.iter().all(|stamps| stamps.sent >= stamps.due));
        let measured = &stamps[stamps.len() - 100..];
        let span = Clock::host().ns(measured[99].due - measured[0].due) as f64;
        let wanted = Duration::from_micros(99 * 20).as_nanos() as f64;
        assert!((span / wanted - 1.0).abs() < 0.05, "{span} against {wanted}");
    }
}
