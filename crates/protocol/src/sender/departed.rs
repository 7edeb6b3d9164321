//! Receivers that died or were ejected, in case they come back.

use crate::Nanos;
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
    /// Time until which a closed session waits for it; 0 if it was ejected.
    pub(super) awaited_until: Nanos,
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

    /// Time until which a closed session waits for the receivers that died: a receiver whose frames
    /// are lost may still hear the sender. 0 if there are none.
    pub(super) fn awaited_until(&self) -> Nanos {
        self.departed.iter().map(|known| known.awaited_until).max().unwrap_or(0)
    }

    /// Removes a receiver that joins again.
    pub(super) fn take(&mut self, receiver: u64) -> Option<Departed> {
        let at = self.departed.iter().position(|known| known.receiver == receiver)?;
        self.departed.remove(at)
    }
}
