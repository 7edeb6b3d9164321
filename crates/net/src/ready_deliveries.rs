//! Deliveries that a background thread has received for a subscriber's owner.
//!
//! Owned by `ReceiveSessions`. Their weight tells how far the owner is behind, and bounds what a
//! background thread receives for it.

use crate::delivery_queue::QueuedDelivery;
use std::collections::VecDeque;

/// The most unread deliveries: so many windows for each session, and so many sessions at most.
/// Copies of short messages take more memory than their datagrams.
const UNREAD_WINDOWS: usize = 2;
const UNREAD_SESSIONS_MAX: usize = 16;

/// Deliveries for the owner, and the weight of those that it has not consumed.
#[derive(Debug, Default)]
pub(crate) struct ReadyDeliveries {
    deliveries: VecDeque<QueuedDelivery>,
    weight: u64,
    /// Weight of the deliveries that a receive thread has handed over, and of those that the owner
    /// has consumed of them.
    handed_over: u64,
    consumed: u64,
}

impl ReadyDeliveries {
    pub(crate) fn is_empty(&self) -> bool {
        self.deliveries.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.deliveries.len()
    }

    /// Copies deliveries out of `buffer`.
    pub(crate) fn add(&mut self, queued: &mut VecDeque<QueuedDelivery>, buffer: &[u8]) {
        for delivery in queued.drain(..) {
            let delivery = delivery.into_owned(buffer);
            self.weight += delivery.weight();
            self.deliveries.push_back(delivery);
        }
    }

    /// Moves all to the owner's queue.
    pub(crate) fn move_to(&mut self, queue: &mut VecDeque<QueuedDelivery>) {
        queue.append(&mut self.deliveries);
        self.weight = 0;
    }

    /// Hands all over; returns their number.
    pub(crate) fn hand_over(&mut self, mut to: impl FnMut(QueuedDelivery)) -> usize {
        let count = self.deliveries.len();
        self.handed_over += std::mem::take(&mut self.weight);
        self.deliveries.drain(..).for_each(&mut to);
        count
    }

    /// Weight of the deliveries handed over so far.
    pub(crate) const fn handed_over(&self) -> u64 {
        self.handed_over
    }

    /// The owner has consumed so much of what was handed over.
    pub(crate) const fn set_consumed(&mut self, consumed: u64) {
        self.consumed = consumed;
    }

    /// Weight of what the owner has not taken, or not consumed of what was handed over.
    pub(crate) const fn unread(&self) -> u64 {
        self.handed_over.saturating_sub(self.consumed) + self.weight
    }

    /// Whether the owner has left more unread than `sessions` with this window may bring.
    pub(crate) fn is_full(&self, window_bytes: usize, sessions: usize) -> bool {
        let windows = UNREAD_WINDOWS * sessions.clamp(1, UNREAD_SESSIONS_MAX);
        self.unread() >= (window_bytes as u64).saturating_mul(windows as u64)
    }
}
