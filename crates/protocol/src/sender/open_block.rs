//! Open block: datagrams that were sent last, to the group or to one receiver, and that the next
//! parity protects.

use super::window::Run;
use crate::Nanos;
use crate::fec::{FecBlock, FecSettings, SPAN};

/// Datagrams that were sent, and whose parity was not.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OpenBlock {
    pub(super) block: FecBlock,
    /// Datagrams before the first one that were skipped.
    pub(super) skipped: u32,
    /// Time of the first datagram.
    pub(super) begun: Nanos,
    /// Parity frames that were sent.
    pub(super) row: u8,
}

impl OpenBlock {
    /// Adds datagrams that were sent.
    pub(super) fn add(&mut self, run: &Run, skipped: u32, now: Nanos) {
        if self.block.is_empty() {
            (self.skipped, self.begun) = (skipped, now);
        }
        (0..run.count as u64).for_each(|at| self.block.add(run.first.wrapping_add(at)));
    }

    /// Number of datagrams from `next` on that the block takes.
    pub(super) fn room(&self, next: u64, settings: FecSettings) -> u64 {
        // All of its rows are of the same datagrams.
        if self.row > 0 {
            return 0;
        }
        let left = u64::from(settings.data).saturating_sub(self.block.count() as u64);
        // A block that spans too much without being full is closed before the next datagram.
        let span = if self.block.is_empty() {
            SPAN
        } else {
            SPAN.saturating_sub(next.wrapping_sub(self.block.first))
        };
        left.min(span)
    }

    /// Whether it ends before the datagram `next`.
    pub(super) fn is_full(&self, next: u64, settings: FecSettings) -> bool {
        !self.block.is_empty() && self.room(next, settings) == 0
    }

    /// Time at which it ends, full or not; `None` if it is empty.
    pub(super) fn due(&self, settings: FecSettings) -> Option<Nanos> {
        (!self.block.is_empty()).then(|| self.begun.saturating_add(settings.delay))
    }
}
