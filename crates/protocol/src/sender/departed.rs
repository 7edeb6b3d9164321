//! Receivers that died or were ejected, in case they come back.

use lanecast_transport::SubscriberId;
use std::collections::VecDeque;

/// Most receivers remembered; a forgotten one that comes back counts as another subscriber.
const DEPARTED_MAX: usize = 256;

/// A receiver that died or was ejected.
#[derive(Clone, Copy, Debug)]
pub(super) struct Departed {
    pub(super) receiver: u64,
    pub(super) subscriber: SubscriberId,
    /// Messages published without subscribers until then.
    pub(super) unsubscribed: u64,
    /// The receiver had reported a loss.
    pub(super) has_lost: bool,
}

/// Departed receivers, the oldest first.
#[derive(Debug, Default)]
pub(super) struct DepartedReceivers {
    departed: VecDeque<Departed>,
}

impl DepartedReceivers {
    pub(super) fn add(&mut self, departed: Departed) {
        // Bounded: receivers may come and go for as long as the session lives.
        if self.departed.len() >= DEPARTED_MAX {
            self.departed.pop_front();
        }
        self.departed.push_back(departed);
    }

    /// Removes a receiver that joins again.
    pub(super) fn take(&mut self, receiver: u64) -> Option<Departed> {
        let at = self.departed.iter().position(|known| known.receiver == receiver)?;
        self.departed.remove(at)
    }
}
