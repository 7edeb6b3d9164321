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
    pub(crate) due: Nanos,
    bytes: usize,
    vector: Vec<u8>,
}

impl AckSchedule {
    pub(crate) const fn new() -> Self {
        Self { due: Nanos::MAX, bytes: BYTES, vector: Vec::new() }
    }

    /// Begins a view in which a sender may have `share` bytes under way.
    pub(crate) fn reset(&mut self, share: usize) {
        (self.due, self.bytes) = (Nanos::MAX, (share / 4).min(BYTES));
    }

    /// A frame arrived, of a sender of which `unacknowledged` bytes have arrived since the last
    /// acknowledgement. After many the next one is due now: not at once, as the frames that wait
    /// to be read may be those of other senders, and one acknowledges all of them.
    #[inline]
    pub(crate) fn on_received<O>(&mut self, unacknowledged: usize, link: &mut Link<'_, O>) {
        let delay = if unacknowledged >= self.bytes { 0 } else { DELAY };
        let due = link.now.saturating_add(delay);
        if due < self.due {
            self.due = due;
            link.wake(due);
        }
    }

    /// A sender seems to have missed an acknowledgement.
    pub(crate) fn hurry<O>(&mut self, link: &mut Link<'_, O>) {
        self.due = self.due.min(link.now.saturating_add(SOON));
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
            self.due = Nanos::MAX;
        } else {
            self.due = link.now.saturating_add(SOON);
            link.wake(self.due);
        }
    }
}
