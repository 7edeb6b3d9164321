//! Reports of a receiver's consumption, and what the stores know of it.

use super::incoming::Incoming;
use super::known_store::{KnownStore, member};
use super::settings::ReceiverSettings;
use crate::Nanos;
use crate::outlet::ReceiverOutlet;
use crate::receiver_event::ReceiverEvent;
use lanecast_wire::store::{
    Consumption, Registered, STORE_NUMBER_MAX, StoreFrame, StoreOffer, StoreRefusal,
};

/// Consumed messages that are reported at once: a receiver-paced publisher may wait for them.
const REPORT_MESSAGES: u64 = 1_024;

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
    acknowledged: Vec<Option<Consumption>>,
    /// The refusal of each store, as it was told.
    refused: Vec<Option<StoreRefusal>>,
    /// Sequence of the first message that may come again.
    pub(super) told: u64,
    /// When to tell the stores.
    pub(super) at: Nanos,
    /// The stores count the receiver no longer, and that was told.
    is_expired: bool,
}

impl Report {
    pub(super) fn new(consumed: u64, stores: usize) -> Self {
        let (acknowledged, refused) = (vec![None; stores], vec![None; stores]);
        let (life, sent, told, at) = (0, None, 0, Nanos::MAX);
        Self { consumed, life, sent, acknowledged, refused, told, at, is_expired: false }
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

    /// The connection to a store has ended: what it said before may be void.
    pub(super) fn on_disconnected(&mut self, store: usize) {
        self.acknowledged[store] = None;
    }

    /// Tells the stores now what was consumed: gives `send` the frame, for each store that does not
    /// know it.
    pub(super) fn tell(
        &mut self,
        incoming: &Incoming,
        (settings, receiver): (&ReceiverSettings, u64),
        now: Nanos,
        send: impl FnMut(usize, &StoreFrame<'_>),
    ) {
        let registered = Registered::new(receiver, incoming.consumption(self.consumed));
        self.at = now + settings.retry;
        self.send(Registered { is_non_blocking: settings.is_non_blocking, ..registered }, send);
    }

    /// The stores are told this: gives `send` the frame, for each store that does not know it.
    fn send(&mut self, registered: Registered, mut send: impl FnMut(usize, &StoreFrame<'_>)) {
        self.sent = Some(registered.consumption);
        let frame = StoreFrame::Consumed(Registered { life: self.life, ..registered });
        let stores = (0..self.acknowledged.len()).filter(|store| !self.knows(*store));
        stores.for_each(|store| send(store, &frame));
    }

    /// A store knows of this.
    pub(super) fn on_acknowledged(&mut self, store: usize, consumption: Consumption) {
        self.acknowledged[store] = Some(consumption);
        self.refused[store] = None;
    }

    /// A store does not register the receiver in the stream of `source`, which is told if it is
    /// news.
    pub(super) fn on_refused(
        &mut self,
        (store, name): (usize, &str),
        source: u64,
        refusal: StoreRefusal,
        out: &mut dyn ReceiverOutlet,
    ) {
        if self.refused[store].replace(refusal) != Some(refusal) {
            let store = name.to_owned();
            out.event(ReceiverEvent::Refused { source, store, refusal });
        }
    }

    /// Tells what enough members of the stream know, if that is news; when they know all, nothing
    /// is left to report.
    pub(super) fn settle(
        &mut self,
        stores: &[KnownStore],
        source: u64,
        incoming: &Incoming,
        out: &mut dyn ReceiverOutlet,
    ) {
        let Some(sent) = self.sent else { return };
        let Some(members) = incoming.offers.members() else { return };
        let store = |name: &str, incarnation| member(stores, name, incarnation);
        let next = members.reached(|name, it| store(name, it).map_or(0, |it| self.known(it)));
        let has_all = members.is_write_quorum(|name, incarnation| {
            store(name, incarnation).is_some_and(|store| self.knows(store))
        });
        if has_all && !incoming.consumption(self.consumed).is_after(&sent) {
            self.at = Nanos::MAX;
        }
        if next > self.told {
            self.told = next;
            out.event(ReceiverEvent::Acknowledged { source, next });
        }
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

    /// Messages were consumed: the stores are told after `pause`, of many at once. That is not held
    /// up by the answer to the report before: it comes from a disk.
    pub(super) fn hurry(&mut self, pause: Nanos, now: Nanos) {
        let pause = if self.unsent() < REPORT_MESSAGES { pause } else { 0 };
        self.at = self.at.min(now + pause);
    }

    /// Consumed messages that the stores were not told of.
    pub(super) fn unsent(&self) -> u64 {
        self.consumed.saturating_sub(self.sent.map_or(0, |sent| sent.next))
    }

    /// A store that lost its data, or was away, learns how far this receiver has come.
    pub(super) fn compare(
        &mut self,
        store: usize,
        offer: &StoreOffer,
        is_replay: bool,
        now: Nanos,
    ) {
        if offer.consumption.is_some() {
            self.outlive(offer.life, is_replay, now);
        }
        let knows_less = self.knows_less(offer.consumption, offer.life) || offer.is_expired;
        if knows_less && self.at == Nanos::MAX {
            self.acknowledged[store] = None;
            self.at = now;
        }
    }

    /// Whether a store that has told this knows less than was sent, or has it from an earlier life.
    fn knows_less(&self, told: Option<Consumption>, life: u64) -> bool {
        let Some(sent) = &self.sent else { return false };
        told.is_none_or(|told| life < self.life || sent.is_after(&told))
    }

    /// A store knows the receiver in this life. One that this life did not hear of at its start is
    /// outlived, and all stores are told; a replay is part of it.
    fn outlive(&mut self, life: u64, is_replay: bool, now: Nanos) {
        if life > self.life {
            self.life = if is_replay { life } else { later(life) };
            self.acknowledged.fill(None);
            self.at = now;
        }
    }
}

/// Whether a store refuses to register this receiver.
pub(super) fn concerns(refusal: &StoreRefusal, id: u64) -> bool {
    match refusal {
        StoreRefusal::Receivers { receiver, .. } => *receiver == id,
        StoreRefusal::Log => true,
        _ => false,
    }
}

/// A life after this one. Behind the last number there is none: it was not a receiver's.
pub(super) const fn later(life: u64) -> u64 {
    if life < STORE_NUMBER_MAX { life + 1 } else { life }
}
