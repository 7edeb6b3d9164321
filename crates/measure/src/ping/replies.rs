//! Replies that came back, in the receiving thread.

use super::hooks::{Ended, Notice};
use super::result::Traffic;
use super::settings::Settings;
use super::stamp::Stamp;
use crate::latency::{Latency, LatencyRecorder};
use crate::linear::{Linear, LinearResult};
use lanecast_base::clock::Clock;
use lanecast_transport::{CloseReason, Event, Message};

/// Counts and times of answers.
pub(super) struct Replies<'a> {
    clock: Clock,
    size: usize,
    linear: Linear,
    latency: LatencyRecorder,
    /// Latest intended time that came back.
    latest: u64,
    traffic: Traffic,
    joined: bool,
    left: Option<CloseReason>,
    notify: &'a (dyn Fn(Notice<'_>) + Sync),
}

impl<'a> Replies<'a> {
    pub(super) fn new(settings: &Settings, notify: &'a (dyn Fn(Notice<'_>) + Sync)) -> Self {
        Self {
            clock: settings.setup.clock,
            size: settings.size,
            linear: Linear::new(settings.histogram),
            latency: LatencyRecorder::default(),
            latest: 0,
            traffic: Traffic::default(),
            joined: false,
            left: None,
            notify,
        }
    }

    /// Handles an event of the subscriber.
    #[inline(always)]
    pub(super) fn take(&mut self, event: &Event<'_>) {
        match event {
            Event::Message(message) => self.count(message),
            other => self.on_event(other),
        }
    }

    #[inline(always)]
    fn count(&mut self, message: &Message<'_>) {
        let bytes = message.bytes();
        self.traffic.received += 1;
        match Stamp::read(bytes) {
            Some(stamp) if bytes.len() == self.size => self.time(stamp),
            _ => self.traffic.damaged += 1,
        }
    }

    #[inline(always)]
    fn time(&mut self, stamp: Stamp) {
        if stamp.intended <= self.latest {
            self.traffic.duplicated += 1;
            return;
        }
        self.latest = stamp.intended;
        if stamp.actual == 0 {
            return;
        }
        // Read after the message: an answer cannot be faster than light.
        let now = self.clock.ticks_ordered();
        let ns = |sent| self.clock.ns(now.saturating_sub(sent));
        let actual_ns = ns(stamp.actual);
        self.linear.record(actual_ns);
        self.latency.record(actual_ns, ns(stamp.intended));
    }

    /// Handles events other than messages.
    #[cold]
    #[inline(never)]
    fn on_event(&mut self, event: &Event<'_>) {
        match event {
            Event::Joined(stream) => {
                self.joined = true;
                self.left = None;
                (self.notify)(Notice::Joined(stream));
            }
            Event::Lost(gap) => {
                let lost = &mut self.traffic.reported_lost;
                *lost = lost.saturating_add(gap.count);
                (self.notify)(Notice::Lost(gap));
            }
            Event::Left(stream, why) => {
                self.left = Some(*why);
                let (traffic, why) = (&self.traffic, *why);
                let ended = Ended { stream, why, traffic, most_at_once: None };
                (self.notify)(Notice::Left(&ended));
            }
            _ => {}
        }
    }

    /// Passes a notice on.
    pub(super) fn notify(&self, notice: Notice<'_>) {
        (self.notify)(notice);
    }

    /// Whether a pong has joined.
    pub(super) const fn has_joined(&self) -> bool {
        self.joined
    }

    /// Whether the pong has left.
    pub(super) const fn is_over(&self) -> bool {
        self.left.is_some()
    }

    /// Latest intended time that came back.
    pub(super) const fn latest(&self) -> u64 {
        self.latest
    }

    /// Messages that came back or were reported lost.
    pub(super) const fn accounted(&self) -> u64 {
        self.traffic.received.saturating_add(self.traffic.reported_lost)
    }

    pub(super) fn traffic(&self) -> Traffic {
        self.traffic.clone()
    }

    pub(super) fn left(&self) -> Option<&'static str> {
        self.left.map(CloseReason::describe)
    }

    pub(super) fn linear(&self) -> LinearResult {
        self.linear.result()
    }

    pub(super) fn latency(&self) -> Option<Latency> {
        self.latency.latency()
    }
}
