//! The sending side of a ping, of one thread or of two.

use super::message_sender::MessageSender;
use super::settings::{PingError, Settings};
use super::stamp::Stamp;
use crate::distribution::Distribution;
use crate::expected::expected_time;
use crate::pacing::Bursts;
use crate::publisher::{FLAT_OUT_RATE, is_flat_out};
use crate::recorder::Recorder;
use lanecast_base::Waiter;
use lanecast_base::clock::Clock;
use lanecast_transport::{ClaimError, Publish};
use std::time::Duration;

/// A part of a run with one schedule: warm-up or measured part.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) messages: u64,
    pub(super) rate: u64,
    /// Whether their times are recorded.
    pub(super) stamped: bool,
}

impl Part {
    pub(super) const fn warmup(settings: &Settings) -> Self {
        Self { messages: settings.warmup, rate: settings.warmup_rate, stamped: false }
    }

    pub(super) const fn measured(settings: &Settings) -> Self {
        Self { messages: settings.messages, rate: settings.rate, stamped: true }
    }

    /// The schedule, starting now; flat out, all messages are due at once.
    pub(super) fn pace(&self, clock: Clock) -> (Bursts, u64) {
        let rate = if is_flat_out(self.rate) { FLAT_OUT_RATE } else { self.rate };
        let second = clock.from_ns(1_000_000_000);
        let start = clock.ticks_ordered();
        (Bursts::even(rate, self.messages, start, second), start)
    }

    /// Expected duration without delays.
    pub(super) fn expected(&self) -> Duration {
        let rate = if is_flat_out(self.rate) { FLAT_OUT_RATE } else { self.rate };
        expected_time(self.messages, rate as f64)
    }
}

/// Result of a part.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sent {
    pub(super) messages: u64,
    pub(super) duration_ns: u64,
    pub(super) largest_burst: u64,
    /// The most messages that were sent and not yet back.
    pub(super) most_in_flight: u64,
    pub(super) back_pressured: u64,
    /// Longest gap between clock readings, if the thread did nothing else while it waited.
    pub(super) longest_gap_ns: Option<u64>,
}

/// Sends stamped messages.
pub(super) struct Sender<'a, P> {
    outlet: MessageSender<P>,
    size: usize,
    pub(super) clock: Clock,
    waiter: Waiter,
    /// Delay of sending behind the schedule.
    lateness: Recorder,
    /// Messages of all parts, and the intended time of the latest.
    pub(super) total: u64,
    pub(super) latest: u64,
    pub(super) back_pressured: u64,
    pub(super) stop: &'a dyn Fn() -> bool,
}

impl<'a, P: Publish> Sender<'a, P> {
    pub(super) fn new(
        outlet: MessageSender<P>,
        settings: &Settings,
        stop: &'a dyn Fn() -> bool,
    ) -> Self {
        Self {
            outlet,
            size: settings.size,
            clock: settings.setup.clock,
            waiter: Waiter::new(settings.setup.wait),
            lateness: Recorder::new(),
            total: 0,
            latest: 0,
            back_pressured: 0,
            stop,
        }
    }

    /// Sends the message due at `due`. While the window is full it calls `meanwhile`; false if that
    /// ends the run.
    #[inline(always)]
    pub(super) fn send(
        &mut self,
        due: u64,
        stamped: bool,
        mut meanwhile: impl FnMut() -> bool,
    ) -> Result<bool, PingError> {
        // On a coarse clock, several messages can be due at the same tick.
        let intended = due.max(self.latest + 1);
        loop {
            let clock = self.clock;
            let written = self.outlet.try_send(self.size, |bytes| {
                let actual = if stamped { clock.ticks().max(1) } else { 0 };
                Stamp { actual, intended }.put(bytes);
                actual
            });
            match written {
                Ok(actual) => {
                    self.total += 1;
                    self.latest = intended;
                    if stamped {
                        self.lateness.record(clock.ns(actual.saturating_sub(due)));
                    }
                    return Ok(true);
                }
                Err(ClaimError::BackPressured(_)) => {
                    self.back_pressured += 1;
                    if (self.stop)() || !meanwhile() {
                        return Ok(false);
                    }
                    self.waiter.wait(0);
                }
                Err(error) => return Err(PingError::Refused(error)),
            }
        }
    }

    pub(super) fn poll_events(&mut self) {
        self.outlet.poll_events();
    }

    pub(super) fn wait_for_subscriber(&mut self, timeout: Duration) -> bool {
        self.outlet.wait_for_subscriber(timeout)
    }

    pub(super) fn lateness(&self) -> Option<Distribution> {
        self.lateness.distribution()
    }

    pub(super) fn close(self, linger: Duration) -> bool {
        self.outlet.close(linger)
    }
}
