//! Liveness of the sender, the state of the connection, and the goodbye at the end.

use super::config::ReceiverSettings;
use super::gap_tracker::GapTracker;
use super::status::{Status, StatusReport};
use crate::{MILLISECOND, Nanos};
use lanecast_transport::CloseReason;
use lanecast_wire::net::{FrameWriter, Kind, LeaveBody};

/// Frames left to send after the session is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Goodbye {
    None,
    /// A status, then Leave.
    Status,
    /// This many Leave frames.
    Leave(u8),
}

/// Number of Leave frames: no answer confirms one, and a sender that misses them waits for the
/// liveness timeout.
pub(super) const LEAVES: u8 = 3;

/// Shortest polling interval, however short the sender's liveness.
const POLL_MIN: Nanos = MILLISECOND;

/// Liveness of one session.
#[derive(Debug)]
pub(super) struct Liveness {
    heard_at: Nanos,
    /// Time at which the connection was made or last brought bytes.
    pub(super) bytes_at: Nanos,
    polled_at: Nanos,
    pub(super) timeout: Nanos,
    /// Minimum silence of a stream before its sender counts as dead: time to reconnect. 0 for
    /// datagrams.
    reconnection: Nanos,
    pub(super) is_disconnected: bool,
    /// The sender's host is reachable and has refused the last connection.
    pub(super) is_refused: bool,
    /// Sequence after the last one, once the sender has closed.
    pub(super) end: Option<u64>,
    /// Time since which nothing before `end` is missing.
    pub(super) drained_at: Option<Nanos>,
    /// Start of a receiver that begins with history: a gap from there on is from before it joined.
    pub(super) history_from: Option<u64>,
    pub(super) goodbye: Goodbye,
    pub(super) close_reason: Option<CloseReason>,
}

impl Liveness {
    pub(super) const fn new(settings: &ReceiverSettings, now: Nanos) -> Self {
        Self {
            heard_at: now,
            bytes_at: now,
            polled_at: now,
            timeout: settings.liveness,
            reconnection: if settings.stream { settings.recovery } else { 0 },
            is_disconnected: false,
            is_refused: false,
            end: None,
            drained_at: None,
            history_from: None,
            goodbye: Goodbye::None,
            close_reason: None,
        }
    }

    /// A frame of the sender has come.
    #[inline]
    pub(super) fn on_heard(&mut self, now: Nanos) {
        // Never back: one caller may have read its clock before another did.
        self.heard_at = self.heard_at.max(now);
    }

    /// Time at which a silent connection counts as broken: after half the liveness, which is longer
    /// than the pauses between heartbeats and leaves the other half to reconnect.
    pub(super) fn connection_timeout_at(&self) -> Nanos {
        self.heard_at.max(self.bytes_at).saturating_add(self.timeout / 2)
    }

    /// Records a poll; returns for how long this process did not run. A pause of more than half the
    /// liveness is this side's absence, not the sender's silence.
    pub(super) fn poll(&mut self, now: Nanos) -> Nanos {
        let pause = now.saturating_sub(self.polled_at);
        self.polled_at = self.polled_at.max(now);
        // Polls come every quarter of the timeout: half of it is no normal pause.
        let absence = pause.saturating_sub(self.timeout / 2);
        self.extend(absence, now);
        absence
    }

    /// Moves the deadlines along by the time since the last poll, in which this side has read
    /// nothing; returns that time.
    pub(super) fn excuse(&mut self, now: Nanos) -> Nanos {
        let pause = now.saturating_sub(self.polled_at);
        self.polled_at = self.polled_at.max(now);
        self.extend(pause, now);
        pause
    }

    /// At most to the present: an absence does not count as a frame from the future.
    fn extend(&mut self, absence: Nanos, now: Nanos) {
        self.heard_at = self.heard_at.saturating_add(absence).min(self.heard_at.max(now));
        self.bytes_at = self.bytes_at.saturating_add(absence).min(self.bytes_at.max(now));
    }

    pub(super) const fn heard_at(&self) -> Nanos {
        self.heard_at
    }

    pub(super) fn set_timeout(&mut self, timeout: Nanos) {
        // Zero would declare the sender dead at once.
        self.timeout = timeout.max(1);
    }

    #[inline]
    pub(super) const fn is_closing(&self) -> bool {
        self.end.is_some()
    }

    /// Time of the next poll: the timeout, or earlier, so that `poll` can detect an absence.
    pub(super) fn next_due(&self) -> Option<Nanos> {
        let poll = self.polled_at.saturating_add((self.timeout / 4).max(POLL_MIN));
        let silent = self.dead_at().min(poll);
        Some(self.drained_at.map_or(silent, |at| silent.min(at.saturating_add(self.timeout))))
    }

    /// Time at which a silent sender counts as dead. A network failure gets time to heal; a host
    /// that refuses connections is reachable, and its process is gone.
    fn dead_at(&self) -> Nanos {
        let reconnection = if self.is_refused { 0 } else { self.reconnection };
        self.heard_at.saturating_add(self.timeout.max(reconnection))
    }

    pub(super) fn is_dead(&self, now: Nanos) -> bool {
        now >= self.dead_at()
    }

    /// Whether no goodbye is left to send.
    pub(super) fn has_left(&self) -> bool {
        self.goodbye == Goodbye::None
    }

    /// Writes the next frame of the goodbye.
    pub(super) fn write_goodbye(
        &mut self,
        status: &mut Status,
        tracker: &GapTracker,
        report: StatusReport,
        ids: (u64, u64),
        buffer: &mut [u8],
    ) -> Option<usize> {
        match self.goodbye {
            Goodbye::None => None,
            // The last Status says how far the application is.
            Goodbye::Status => {
                self.goodbye = Goodbye::Leave(LEAVES);
                status.send_soon();
                status.write(tracker, report, self.heard_at, ids, buffer)
            }
            Goodbye::Leave(left) => {
                let rest = Goodbye::Leave(left - 1);
                // Repeated: no answer comes to a Leave.
                self.goodbye = if left > 1 { rest } else { Goodbye::None };
                let mut writer = FrameWriter::new(buffer, Kind::Leave, 0, ids.0, status.consumed());
                writer.add(&LeaveBody { receiver: ids.1.into() }).then(|| writer.finish())
            }
        }
    }
}
