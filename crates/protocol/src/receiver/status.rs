//! Status reports to the sender: the application's progress, the receive window and losses.

use super::gap_tracker::GapTracker;
use crate::sequence::ahead;
use crate::{MILLISECOND, Nanos};
use lanecast_wire::net::{FrameWriter, Kind, StatusBody};

/// Shortest interval of round trip measurements.
const ECHO_INTERVAL: Nanos = 10 * MILLISECOND;

/// Longest interval of reports: several may be lost before the sender counts the receiver as dead.
pub(super) fn interval(liveness: Nanos) -> Nanos {
    (liveness / 10).max(1)
}

/// Contents of a report beside the progress.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StatusReport {
    /// Datagrams lost.
    pub(super) lost: u64,
    /// Topics whose begin is known.
    pub(super) topics: u32,
    /// 0 if unknown.
    pub(super) round_trip: Nanos,
}

/// Progress of the application, and the last report of it.
#[derive(Debug)]
pub(super) struct Status {
    consumed: u64,
    /// `consumed` as of the last report.
    reported: u64,
    window: u32,
    /// Progress that is reported at once, in datagrams.
    step: i64,
    interval: Nanos,
    /// Time of the next report without progress.
    due: Nanos,
    /// A report is due at once.
    urgent: bool,
    /// The sender has probed: report at once when everything is read.
    probed: bool,
    /// Clock in the last report that asked for an echo; 0 after the echo.
    echo: Nanos,
    echo_due: Nanos,
    tag: u32,
}

impl Status {
    pub(super) const fn new(window: u32, tag: u32, interval: Nanos) -> Self {
        Self {
            consumed: 0,
            reported: 0,
            window,
            step: 1,
            interval,
            due: 0,
            urgent: false,
            probed: false,
            echo: 0,
            echo_due: 0,
            tag,
        }
    }

    pub(super) fn begin(&mut self, start: u64, sender_window: u32) {
        // At once: the sender has to learn the limit, and that the start is known.
        (self.consumed, self.reported, self.urgent) = (start, start, true);
        // An eighth of the smaller window: the sender hears of room long before it runs out.
        self.step = i64::from(self.window.min(sender_window) / 8).max(1);
    }

    pub(super) fn set_interval(&mut self, interval: Nanos) {
        self.interval = interval;
    }

    /// The sender requests a report.
    pub(super) fn on_probe(&mut self, head: u64) {
        self.urgent = true;
        // Two answers: one now, and one when everything is read.
        self.probed = self.consumed != head;
    }

    /// Makes a report due at once.
    pub(super) const fn send_soon(&mut self) {
        self.urgent = true;
    }

    /// Measures the round trip with a report at once.
    pub(super) const fn measure_now(&mut self) {
        (self.urgent, self.echo_due) = (true, 0);
    }

    /// Measures the round trip if the last measurement is old.
    pub(super) const fn measure_if_old(&mut self, now: Nanos) {
        self.urgent |= self.echo_due <= now;
    }

    /// The application has read everything so far.
    #[inline]
    pub(super) fn consumed_all(&mut self, tracker: &GapTracker) {
        self.consumed_to(tracker.expected());
        // The head, not the expected one: with datagrams missing, there is more to read.
        if self.probed && self.consumed == tracker.head() {
            (self.urgent, self.probed) = (true, false);
        }
    }

    /// The application has read everything before `mark`.
    #[inline]
    pub(super) fn consumed_to(&mut self, mark: u64) {
        // Never back: marks may come out of order.
        if ahead(mark, self.consumed) > 0 {
            self.consumed = mark;
            self.urgent |= ahead(mark, self.reported) >= self.step;
        }
    }

    /// First sequence that the application has not read.
    pub(super) const fn consumed(&self) -> u64 {
        self.consumed
    }

    pub(super) const fn next_due(&self) -> Nanos {
        if self.urgent { 0 } else { self.due }
    }

    /// Round trip measured by an echo, if it answers the last report.
    pub(super) const fn on_echo(&mut self, echo: u64, now: Nanos) -> Option<Nanos> {
        // Only the last one counts: a late echo would measure the delay of another report.
        if echo == 0 || echo != self.echo {
            return None;
        }
        self.echo = 0;
        Some(now.saturating_sub(echo))
    }

    /// Writes a report if it is due; returns the frame's length.
    pub(super) fn write(
        &mut self,
        tracker: &GapTracker,
        report: StatusReport,
        now: Nanos,
        (session, receiver): (u64, u64),
        buffer: &mut [u8],
    ) -> Option<usize> {
        if self.next_due() > now {
            return None;
        }
        // Zero asks for no echo: most reports cost the sender no answer.
        let echo = if self.echo_due <= now { now.max(1) } else { 0 };
        let body = StatusBody {
            receiver: receiver.into(),
            received: tracker.expected().into(),
            limit: self.consumed.wrapping_add(u64::from(self.window)).into(),
            echo: echo.into(),
            tag: self.tag.into(),
            lost: (report.lost as u32).into(),
            topics: report.topics.into(),
            round_trip: u32::try_from(report.round_trip).unwrap_or(u32::MAX).into(),
        };
        // The sequence of the frame is the progress.
        let mut writer = FrameWriter::new(buffer, Kind::Status, 0, session, self.consumed);
        if !writer.add(&body) {
            return None;
        }
        if echo != 0 {
            (self.echo, self.echo_due) = (echo, now.saturating_add(ECHO_INTERVAL));
        }
        (self.reported, self.urgent) = (self.consumed, false);
        self.due = now.saturating_add(self.interval);
        Some(writer.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanecast_wire::net::Frame;

    fn report(status: &mut Status, tracker: &GapTracker, now: Nanos) -> Option<(u64, StatusBody)> {
        let mut buffer = [0; 128];
        let length = status.write(tracker, StatusReport::default(), now, (1, 2), &mut buffer)?;
        let (frame, _) = Frame::split(&buffer[..length]).expect("a frame");
        Some((frame.sequence, *StatusBody::split(frame.body).expect("a body").0))
    }

    fn begun() -> (Status, GapTracker) {
        let (mut status, mut tracker) = (Status::new(80, 0, 1_000), GapTracker::new());
        tracker.begin(10, 80);
        status.begin(10, 800);
        assert!(report(&mut status, &tracker, 5).is_some(), "the sender learns the limit at once");
        (status, tracker)
    }

    #[test]
    fn an_eighth_of_the_window_is_reported_at_once() {
        let (mut status, mut tracker) = begun();
        for sequence in 10..20 {
            status.consumed_all(&tracker);
            assert!(report(&mut status, &tracker, 6).is_none());
            assert!(tracker.take_next(sequence));
        }
        assert!(report(&mut status, &tracker, 6).is_none(), "it has not been read");
        status.consumed_all(&tracker);
        let (sequence, body) = report(&mut status, &tracker, 6).expect("a status");
        assert_eq!((sequence, body.received.get(), body.limit.get()), (20, 20, 100));
        assert!(report(&mut status, &tracker, 1_005).is_none());
        assert!(report(&mut status, &tracker, 1_006).is_some(), "at least this often");
    }

    #[test]
    fn a_probe_is_answered_at_once_and_when_all_is_read() {
        let (mut status, mut tracker) = begun();
        assert!(tracker.take_next(10));
        status.on_probe(tracker.head());
        assert_eq!(report(&mut status, &tracker, 6).map(|(sequence, _)| sequence), Some(10));
        assert!(report(&mut status, &tracker, 6).is_none());
        status.consumed_all(&tracker);
        assert_eq!(report(&mut status, &tracker, 7).map(|(sequence, _)| sequence), Some(11));
    }

    #[test]
    fn only_the_requested_echo_counts() {
        let (mut status, _) = begun();
        assert_eq!(status.on_echo(4, 9), None);
        assert_eq!(status.on_echo(5, 9), Some(4));
        assert_eq!(status.on_echo(5, 9), None);
    }
}
