//! Acknowledgements of this member: when one is sent.

use super::lane::Lane;
use super::link::Link;
use crate::Nanos;
use crate::outlet::Outlet;

/// Received bytes of a sender after which an acknowledgement is sent, at most: half of the smallest
/// credit, so that its sender need not stop.
const BYTES: usize = 128 << 10;
/// Longest delay of an acknowledgement.
const DELAY: Nanos = 20_000_000;
/// Delay of one that a sender seems to miss, and of a retry after a refusal by the transport.
const SOON: Nanos = 1_000_000;

/// Schedule of this member's acknowledgements, each for all streams.
#[derive(Clone, Debug)]
pub(crate) struct AckSchedule {
    due: Nanos,
    /// The same while frames wait to be read: one acknowledgement for all of them is enough, unless
    /// a sender would run out of credit before.
    due_with_backlog: Nanos,
    bytes: usize,
    vector: Vec<u8>,
}

impl AckSchedule {
    pub(crate) const fn new() -> Self {
        Self { due: Nanos::MAX, due_with_backlog: Nanos::MAX, bytes: BYTES, vector: Vec::new() }
    }

    /// Begins a view in which a sender may have `share` bytes under way.
    pub(crate) fn reset(&mut self, share: usize) {
        self.set_due(Nanos::MAX);
        self.bytes = (share / 4).min(BYTES);
    }

    const fn set_due(&mut self, due: Nanos) {
        (self.due, self.due_with_backlog) = (due, due);
    }

    /// Time of the next one, if frames wait to be read or not.
    #[inline]
    pub(crate) const fn due(&self, has_backlog: bool) -> Nanos {
        if has_backlog { self.due_with_backlog } else { self.due }
    }

    /// A frame arrived, of a sender of which `unacknowledged` bytes have arrived since the last
    /// acknowledgement. After many the next one is due now: not at once, as the frames that wait
    /// to be read may be those of other senders, and one acknowledges all of them.
    #[inline]
    pub(crate) fn on_received<O>(&mut self, unacknowledged: usize, link: &mut Link<'_, O>) {
        let delay = |is_due: bool| if is_due { 0 } else { DELAY };
        let due = link.now.saturating_add(delay(unacknowledged >= self.bytes));
        if due < self.due {
            self.due = due;
            link.wake(due);
        }
        let is_late = unacknowledged >= 2 * self.bytes;
        self.due_with_backlog = self.due_with_backlog.min(link.now.saturating_add(delay(is_late)));
    }

    /// A sender seems to have missed an acknowledgement.
    pub(crate) fn hurry<O>(&mut self, link: &mut Link<'_, O>) {
        let soon = link.now.saturating_add(SOON);
        self.due = self.due.min(soon);
        self.due_with_backlog = self.due_with_backlog.min(soon);
        link.wake(self.due);
    }

    /// Acknowledges all streams; `holds`: whether this member keeps what it has received of one.
    pub(crate) fn send<O: Outlet>(
        &mut self,
        lanes: &mut [Lane],
        holds: impl Fn(usize) -> bool,
        link: &mut Link<'_, O>,
    ) {
        self.vector.clear();
        for (rank, lane) in lanes.iter().enumerate() {
            self.vector.extend_from_slice(&lane.acknowledged(holds(rank)).to_le_bytes());
        }
        if link.ack(lanes.len(), &self.vector) {
            lanes.iter_mut().for_each(|lane| lane.unacknowledged = 0);
            self.set_due(Nanos::MAX);
        } else {
            self.set_due(link.now.saturating_add(SOON));
            link.wake(self.due);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::GroupCounters;
    use crate::delivery::link::Envelope;
    use crate::view::MemberId;

    const SHARE: usize = 256 << 10;

    /// Time at which an acknowledgement is due without and with frames that wait, after frames of
    /// one sender with `unacknowledged` bytes and of others with less.
    fn due(schedule: &mut AckSchedule, now: Nanos, unacknowledged: usize) -> (Nanos, Nanos) {
        let (mut counters, mut due) = (GroupCounters::default(), Nanos::MAX);
        let envelope = Envelope { group: 1, sender: MemberId(1), epoch: 1 };
        let mut link = Link {
            now,
            envelope,
            members: &[],
            counters: &mut counters,
            due: &mut due,
            out: &mut (),
        };
        for bytes in [1_000, unacknowledged, 1_000] {
            schedule.on_received(bytes, &mut link);
        }
        (schedule.due, schedule.due_with_backlog)
    }

    #[test]
    fn one_acknowledgement_covers_all_that_waits_to_be_read() {
        let mut schedule = AckSchedule::new();
        schedule.reset(SHARE);
        assert_eq!(due(&mut schedule, 5, SHARE / 4 - 1_000), (5 + DELAY, 5 + DELAY));
        assert_eq!(due(&mut schedule, 6, SHARE / 4), (6, 5 + DELAY));
        assert_eq!((schedule.due(false), schedule.due(true)), (6, 5 + DELAY));
    }

    #[test]
    fn a_sender_that_runs_out_of_credit_is_acknowledged_before_all_is_read() {
        let mut schedule = AckSchedule::new();
        schedule.reset(SHARE);
        assert_eq!(due(&mut schedule, 7, SHARE / 2), (7, 7));
    }
}
