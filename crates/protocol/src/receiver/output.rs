//! Output of a topic's reassembly: deliveries, counters and budgets.

use super::block::{Block, ByteBudget};
use super::counters::ReceiverCounters;
use super::delivery::Delivery;
use lanecast_transport::LossReason;

/// Position of a topic before the datagram at `sequence`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) sequence: u64,
    pub(super) fragment: u64,
    pub(super) message: u64,
}

impl Head {
    /// Position at which a block begins.
    pub(super) const fn of(block: &Block<'_>) -> Self {
        Self { sequence: block.sequence, fragment: block.fragment, message: block.message }
    }
}

/// Destination of a topic's deliveries, and the budgets.
pub(super) struct Output<'a> {
    pub(super) slot: u32,
    pub(super) out: &'a mut Vec<Delivery>,
    pub(super) reorder: &'a mut ByteBudget,
    /// Budget of messages being reassembled.
    pub(super) assemblies: &'a mut ByteBudget,
    pub(super) counters: &'a mut ReceiverCounters,
    /// Reason of losses noticed now.
    pub(super) loss_reason: LossReason,
    pub(super) longest: usize,
}

/// Result of taking a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockResult {
    Done,
    /// Queued.
    Queued,
    /// The reorder buffer has no room for it.
    NoRoom,
}

/// Messages of a batch that continues in a later datagram: delivered together, at its end.
#[derive(Debug, Default)]
pub(super) struct HeldBatch {
    deliveries: Vec<Delivery>,
    /// Reserved bytes of each delivery.
    bytes: Vec<usize>,
}

impl HeldBatch {
    pub(super) const fn is_empty(&self) -> bool {
        self.deliveries.is_empty()
    }

    /// Holds a delivery until its batch ends; without room, delivers all of it at once.
    pub(super) fn hold_back(&mut self, delivery: Delivery, bytes: usize, output: &mut Output<'_>) {
        if output.reorder.reserve(bytes) {
            self.deliveries.push(delivery);
            self.bytes.push(bytes);
        } else {
            // No room: a batch in pieces is better than a batch lost.
            self.flush(output);
            output.out.push(delivery);
        }
    }

    /// Delivers the held messages.
    pub(super) fn flush(&mut self, output: &mut Output<'_>) {
        // All at once, in order: the batch is complete, or can no longer be.
        output.out.append(&mut self.deliveries);
        self.bytes.drain(..).for_each(|bytes| output.reorder.release(bytes));
    }
}

/// A message being reassembled.
#[derive(Debug)]
pub(super) struct Assembly {
    pub(super) bytes: Vec<u8>,
    pub(super) total: usize,
}
