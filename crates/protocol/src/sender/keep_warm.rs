//! Keep-warm frames: short Session frames in silence, so that the next message finds the way to a
//! receiver in the caches of the CPUs at both ends.
//!
//! One frame leaves per interval, to the group or to one receiver in turn: the traffic of a session
//! does not grow with the number of its receivers. Data takes the place of a frame, and without a
//! subscribed receiver none leaves.

use super::session::Session;
use crate::Nanos;

/// Timer of the keep-warm frames of one session.
#[derive(Debug)]
pub(super) struct KeepWarm {
    /// Time between two frames; `None`: there are none.
    interval: Option<Nanos>,
    /// Earliest time of the next frame.
    due: Nanos,
    /// Receiver that has its turn next; not in a group.
    turn: usize,
    /// None leaves meanwhile.
    pub(super) is_suspended: bool,
}

impl KeepWarm {
    pub(super) const fn new(interval: Option<Nanos>) -> Self {
        Self { interval, due: 0, turn: 0, is_suspended: false }
    }

    /// Time of the next frame.
    pub(super) fn due(&self, session: &Session) -> Option<Nanos> {
        let interval = self.interval?;
        // The end has announcements of its own, and needs no haste.
        if self.is_suspended || session.closed || session.receiver_count() == 0 {
            return None;
        }
        Some(self.due.max(session.data_sent_at.saturating_add(interval)))
    }

    /// Begins the next interval if a frame is due; returns whether it is.
    pub(super) fn is_due(&mut self, session: &Session, now: Nanos) -> bool {
        let is_due = self.due(session).is_some_and(|due| due <= now);
        if is_due {
            self.due = now.saturating_add(self.interval.unwrap_or_default());
        }
        is_due
    }

    /// Index of the receiver that has its turn, unless frames to it wait already: those that a full
    /// socket refuses must not gather.
    pub(super) fn next_receiver(&mut self, session: &mut Session) -> Option<usize> {
        let count = session.receivers.len();
        let order = (0..count).map(|step| (self.turn + step) % count);
        let at = order.into_iter().find(|at| session.receivers[*at].counts())?;
        self.turn = at + 1;
        session.has_room_at_once(at).then_some(at)
    }
}
