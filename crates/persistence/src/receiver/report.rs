//! Reports of a receiver's consumption, and what the stores know of it.

use crate::Nanos;
use lanecast_wire::store::{Consumption, Registered, STORE_NUMBER_MAX, StoreFrame};

/// Reports of one stream's consumption.
#[derive(Clone, Debug)]
pub(super) struct Report {
    /// Sequence of the first message that is not consumed.
    pub(super) consumed: u64,
    /// The life of the receiver.
    pub(super) life: u64,
    /// The consumption that the stores were told last.
    pub(super) sent: Option<Consumption>,
    /// The answer of each store.
    pub(super) acknowledged: Vec<Option<Consumption>>,
    /// Sequence of the first message that may come again.
    pub(super) told: u64,
    /// When to tell the stores.
    pub(super) at: Nanos,
    /// The stores count the receiver no longer, and that was told.
    is_expired: bool,
}

impl Report {
    pub(super) fn new(consumed: u64, stores: usize) -> Self {
        let acknowledged = vec![None; stores];
        let (life, sent, told, at) = (0, None, 0, Nanos::MAX);
        Self { consumed, life, sent, acknowledged, told, at, is_expired: false }
    }

    /// The messages from `next` on are no part of the stream: they count as not consumed.
    pub(super) fn withdraw(&mut self, next: u64, now: Nanos) {
        if self.consumed > next {
            (self.consumed, self.told, self.at) = (next, self.told.min(next), now);
        }
        if self.sent.is_some_and(|sent| sent.next > next) {
            self.sent = None;
        }
    }

    /// The stores are told this: gives `send` the frame, for each store that does not know it.
    pub(super) fn send(
        &mut self,
        registered: Registered,
        mut send: impl FnMut(usize, &StoreFrame<'_>),
    ) {
        self.sent = Some(registered.consumption);
        let frame = StoreFrame::Consumed(Registered { life: self.life, ..registered });
        let stores = (0..self.acknowledged.len()).filter(|store| !self.knows(*store));
        stores.for_each(|store| send(store, &frame));
    }

    /// Whether it is news that the stores count the receiver no longer.
    pub(super) fn expires(&mut self, is_expired: bool) -> bool {
        let was_expired = std::mem::replace(&mut self.is_expired, is_expired);
        is_expired && !was_expired
    }

    /// Whether a store knows of what was sent.
    pub(super) fn knows(&self, store: usize) -> bool {
        let (Some(sent), Some(known)) = (&self.sent, &self.acknowledged[store]) else {
            return false;
        };
        !sent.is_after(known)
    }

    /// Sequence of the first message of which a store does not know that it was consumed.
    pub(super) fn known(&self, store: usize) -> u64 {
        let (Some(sent), Some(known)) = (&self.sent, &self.acknowledged[store]) else { return 0 };
        let is_of_this_run = sent.run.ballot == known.run.ballot;
        if self.knows(store) {
            sent.next
        } else if is_of_this_run {
            known.next
        } else {
            0
        }
    }

    /// Consumed messages that the stores were not told of.
    pub(super) fn unsent(&self) -> u64 {
        self.consumed.saturating_sub(self.sent.map_or(0, |sent| sent.next))
    }

    /// Whether a store that has told this knows less than was sent, or has it from an earlier life.
    pub(super) fn knows_less(&self, told: Option<Consumption>, life: u64) -> bool {
        let Some(sent) = &self.sent else { return false };
        told.is_none_or(|told| life < self.life || sent.is_after(&told))
    }

    /// A store knows the receiver in this life. One that this life did not hear of at its start is
    /// outlived, and all stores are told; a replay is part of it.
    pub(super) fn outlive(&mut self, life: u64, is_replay: bool, now: Nanos) {
        if life > self.life {
            self.life = if is_replay { life } else { later(life) };
            self.acknowledged.fill(None);
            self.at = now;
        }
    }
}

/// A life after this one. Behind the last number there is none: it was not a receiver's.
pub(super) const fn later(life: u64) -> u64 {
    if life < STORE_NUMBER_MAX { life + 1 } else { life }
}
