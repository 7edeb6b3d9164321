//! A ping of one thread: sends messages that are due and polls for answers in between.
//!
//! With a sleeping wait strategy, the thread sleeps only while an answer is in flight. If the
//! answer arrives after the next message is due, that message is late; latencies from the intended
//! time include the delay.

use super::finished_run::FinishedRun;
use super::hooks::{Hooks, Notice};
use super::replies::Replies;
use super::sender::{Part, Sender, Sent};
use super::settings::{PingError, Settings};
use crate::monitor::RunMonitor;
use crate::pacing::{Bursts, Pace};
use lanecast_base::spin;
use lanecast_transport::{Publish, Subscribe};
use std::time::{Duration, Instant};

/// Messages between two checks of the schedule.
const BATCH: usize = 64;
/// Spin pauses between two checks while no message is in flight.
const PAUSES: u32 = 1;
/// Interval of checks of the stop flag while waiting for the pong.
const LOOK_EVERY: Duration = Duration::from_millis(5);

struct Loop<'a, 'b, P, S> {
    sender: Sender<'a, P>,
    subscriber: S,
    replies: Replies<'a>,
    settings: &'b Settings,
}

pub(super) fn run<'a, P: Publish, S: Subscribe>(
    settings: &Settings,
    sender: Sender<'a, P>,
    subscriber: S,
    replies: Replies<'a>,
    monitor: &mut RunMonitor,
    hooks: &Hooks<'a, S>,
) -> Result<FinishedRun<'a, P>, PingError> {
    let mut this = Loop { sender, subscriber, replies, settings };
    this.wait_for_pong()?;
    monitor.pin()?;
    this.replies.notify(Notice::WarmingUp);
    let warmup = this.part(Part::warmup(settings))?;
    this.linger();
    let part = Part::measured(settings);
    this.replies.notify(Notice::Measuring(part.expected()));
    monitor.count_from_here();
    monitor.raise();
    let measured = this.part(part)?;
    this.linger();
    let recovered = (hooks.recovered)(&mut this.subscriber);
    let Loop { sender, replies, .. } = this;
    Ok(FinishedRun { sender, replies, warmup, measured, recovered, receiver: None })
}

impl<P: Publish, S: Subscribe> Loop<'_, '_, P, S> {
    /// Waits until the pong is there on both topics.
    fn wait_for_pong(&mut self) -> Result<(), PingError> {
        loop {
            let heard = self.sender.wait_for_subscriber(LOOK_EVERY);
            self.poll();
            if heard && self.replies.has_joined() {
                return Ok(());
            }
            if (self.sender.stop)() {
                return Err(PingError::NoSubscriber);
            }
        }
    }

    #[inline(always)]
    fn poll(&mut self) -> usize {
        self.subscriber.poll(BATCH, |event| self.replies.take(&event))
    }

    fn part(&mut self, part: Part) -> Result<Sent, PingError> {
        let (before, pressed) = (self.sender.total, self.sender.back_pressured);
        let clock = self.sender.clock;
        let mut most_in_flight = 0;
        let (mut pace, start) = part.pace(clock);
        while pace.sent() < part.messages && !self.is_over() {
            if !self.send_due(&mut pace, part, &mut most_in_flight)? {
                break;
            }
            self.look();
        }
        let duration_ns = clock.ns(clock.ticks_ordered().wrapping_sub(start));
        Ok(Sent {
            messages: self.sender.total - before,
            duration_ns,
            largest_burst: pace.largest_burst(),
            most_in_flight,
            back_pressured: self.sender.back_pressured - pressed,
            longest_gap_ns: None,
        })
    }

    /// Sends messages that are due; false if the run ends.
    #[inline(always)]
    fn send_due(
        &mut self,
        pace: &mut Bursts,
        part: Part,
        most: &mut u64,
    ) -> Result<bool, PingError> {
        let Some(burst) = pace.due_at(self.sender.clock.ticks()) else { return Ok(true) };
        let (subscriber, replies) = (&mut self.subscriber, &mut self.replies);
        for slot in burst {
            let due = slot.due.unwrap_or_default();
            // The pong may be waiting for its answers to be read.
            let meanwhile = || {
                subscriber.poll(BATCH, |event| replies.take(&event));
                !replies.is_over()
            };
            if !self.sender.send(due, part.stamped, meanwhile)? {
                return Ok(false);
            }
            *most = (*most).max(self.sender.total.saturating_sub(replies.accounted()));
        }
        Ok(true)
    }

    /// Polls for answers; waits by the subscriber's strategy while a message is in flight.
    #[inline(always)]
    fn look(&mut self) {
        let work = self.poll();
        if work > 0 || self.sender.latest > self.replies.latest() {
            self.subscriber.wait(work);
        } else {
            // Not while an answer is on its way: that would find it later.
            if self.settings.polls_publisher {
                self.sender.poll_events();
            }
            spin(PAUSES);
        }
    }

    /// Waits for missing answers.
    fn linger(&mut self) {
        let until = Instant::now() + self.settings.linger;
        while self.sender.total > self.replies.accounted()
            && !self.is_over()
            && Instant::now() < until
        {
            self.look();
        }
    }

    #[inline(always)]
    fn is_over(&self) -> bool {
        self.replies.is_over() || (self.sender.stop)()
    }
}
