//! What the receiver tells the sender about itself, and when.

use super::gap_tracker::GapTracker;
use crate::sequence::ahead;
use crate::{MILLISECOND, Nanos};
use lanecast_wire::net::{FrameWriter, Kind, StatusBody};

/// How often the round trip is measured along with other news.
const ECHO_INTERVAL: Nanos = 10 * MILLISECOND;

/// How often the sender hears of a receiver at the latest: many of these may get lost before it
/// gives the receiver up.
pub(super) fn interval(liveness: Nanos) -> Nanos {
    (liveness / 10).max(1)
}

/// What else the sender is told.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Told {
    /// How many datagrams were given up.
    pub(super) lost: u64,
    /// How many topics have numbers.
    pub(super) topics: u32,
    /// 0 if it is not known.
    pub(super) round_trip: Nanos,
}

/// How far the application has read, and what the sender knows of it.
#[derive(Debug)]
pub(super) struct Status {
    consumed: u64,
    told: u64,
    window: u32,
    /// After so many more datagrams read, the sender is told.
    step: i64,
    every: Nanos,
    /// When it is told at the latest.
    due: Nanos,
    /// It is told at once.
    urgent: bool,
    /// The sender waits until all is read.
    probed: bool,
    echo: Nanos,
    echo_due: Nanos,
    tag: u32,
}

impl Status {
    pub(super) const fn new(window: u32, tag: u32, every: Nanos) -> Self {
        Self {
            consumed: 0,
            told: 0,
            window,
            step: 1,
            every,
            due: 0,
            urgent: false,
            probed: false,
            echo: 0,
            echo_due: 0,
            tag,
        }
    }

    pub(super) fn begin(&mut self, start: u64, sender_window: u32) {
        (self.consumed, self.told, self.urgent) = (start, start, true);
        self.step = i64::from(self.window.min(sender_window) / 8).max(1);
    }

    pub(super) fn set_every(&mut self, every: Nanos) {
        self.every = every;
    }

    /// The sender asks.
    pub(super) fn probe(&mut self, head: u64) {
        self.urgent = true;
        self.probed = self.consumed != head;
    }

    /// Tells the status at the next opportunity.
    pub(super) const fn hurry(&mut self) {
        self.urgent = true;
    }

    /// Measures the round trip at the next opportunity.
    pub(super) const fn measure(&mut self) {
        (self.urgent, self.echo_due) = (true, 0);
    }

    /// The same, if the last time is long ago.
    pub(super) const fn measure_again(&mut self, now: Nanos) {
        self.urgent |= self.echo_due <= now;
    }

    /// The application has read everything so far.
    #[inline]
    pub(super) fn read_all(&mut self, tracker: &GapTracker) {
        self.read_to(tracker.expected());
        if self.probed && self.consumed == tracker.head() {
            (self.urgent, self.probed) = (true, false);
        }
    }

    /// The application has read everything before `mark`.
    #[inline]
    pub(super) fn read_to(&mut self, mark: u64) {
        if ahead(mark, self.consumed) > 0 {
            self.consumed = mark;
            self.urgent |= ahead(mark, self.told) >= self.step;
        }
    }

    pub(super) const fn next_due(&self) -> Nanos {
        if self.urgent { 0 } else { self.due }
    }

    /// The round trip that an echo of `echo` ends, if it answers the last question.
    pub(super) const fn take_echo(&mut self, echo: u64, now: Nanos) -> Option<Nanos> {
        if echo == 0 || echo != self.echo {
            return None;
        }
        self.echo = 0;
        Some(now.saturating_sub(echo))
    }

    /// Writes the status if it is due; gives the frame's length.
    pub(super) fn write(
        &mut self,
        tracker: &GapTracker,
        told: Told,
        now: Nanos,
        (session, receiver): (u64, u64),
        buffer: &mut [u8],
    ) -> Option<usize> {
        if self.next_due() > now {
            return None;
        }
        let echo = if self.echo_due <= now { now.max(1) } else { 0 };
        let body = StatusBody {
            receiver: receiver.into(),
            received: tracker.expected().into(),
            limit: self.consumed.wrapping_add(u64::from(self.window)).into(),
            echo: echo.into(),
            tag: self.tag.into(),
            lost: (told.lost as u32).into(),
            topics: told.topics.into(),
            round_trip: u32::try_from(told.round_trip).unwrap_or(u32::MAX).into(),
        };
        let mut writer = FrameWriter::new(buffer, Kind::Status, 0, session, self.consumed);
        if !writer.add(&body) {
            return None;
        }
        if echo != 0 {
            (self.echo, self.echo_due) = (echo, now.saturating_add(ECHO_INTERVAL));
        }
        (self.told, self.urgent) = (self.consumed, false);
        self.due = now.saturating_add(self.every);
        Some(writer.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanecast_wire::net::Frame;

    fn tell(status: &mut Status, tracker: &GapTracker, now: Nanos) -> Option<(u64, StatusBody)> {
        let mut buffer = [0; 128];
        let length = status.write(tracker, Told::default(), now, (1, 2), &mut buffer)?;
        let (frame, _) = Frame::split(&buffer[..length]).expect("a frame");
        Some((frame.sequence, *StatusBody::split(frame.body).expect("a body").0))
    }

    fn begun() -> (Status, GapTracker) {
        let (mut status, mut tracker) = (Status::new(80, 0, 1_000), GapTracker::new());
        tracker.begin(10, 80);
        status.begin(10, 800);
        assert!(tell(&mut status, &tracker, 5).is_some(), "the sender learns the limit at once");
        (status, tracker)
    }

    #[test]
    fn an_eighth_of_the_window_is_told_at_once() {
        let (mut status, mut tracker) = begun();
        for sequence in 10..20 {
            status.read_all(&tracker);
            assert!(tell(&mut status, &tracker, 6).is_none());
            assert!(tracker.take_next(sequence));
        }
        assert!(tell(&mut status, &tracker, 6).is_none(), "it has not been read");
        status.read_all(&tracker);
        let (sequence, body) = tell(&mut status, &tracker, 6).expect("a status");
        assert_eq!((sequence, body.received.get(), body.limit.get()), (20, 20, 100));
        assert!(tell(&mut status, &tracker, 1_005).is_none());
        assert!(tell(&mut status, &tracker, 1_006).is_some(), "at least this often");
    }

    #[test]
    fn a_probe_is_answered_now_and_when_all_is_read() {
        let (mut status, mut tracker) = begun();
        assert!(tracker.take_next(10));
        status.probe(tracker.head());
        assert_eq!(tell(&mut status, &tracker, 6).map(|(sequence, _)| sequence), Some(10));
        assert!(tell(&mut status, &tracker, 6).is_none());
        status.read_all(&tracker);
        assert_eq!(tell(&mut status, &tracker, 7).map(|(sequence, _)| sequence), Some(11));
    }

    #[test]
    fn only_the_echo_asked_for_counts() {
        let (mut status, _) = begun();
        assert_eq!(status.take_echo(4, 9), None);
        assert_eq!(status.take_echo(5, 9), Some(4));
        assert_eq!(status.take_echo(5, 9), None);
    }
}
