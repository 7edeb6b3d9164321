//! Frames and events of one call of a machine.

use lanecast_persistence::{
    DurableLoss, ReceiverEvent, ReceiverOutlet, SourceEvent, SourceOutlet, StoreOutlet,
};
use lanecast_wire::store::{StoreAddress, StoreFrame};

pub(super) const TOPIC: &str = "orders";
pub(super) const SOURCE: u64 = 77;
/// Clients from this number on are publishers; those below are stores.
pub(super) const FIRST_SESSION: u64 = 1_000;
/// Clients from this number on are receivers: each life has another.
pub(super) const FIRST_RECEIVER: u64 = 1_000_000;
/// Lives of a receiver that its clients' numbers can tell apart.
pub(super) const LIVES: u64 = 1_000;

/// An event of a receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Told {
    Started {
        next: u64,
        is_resumed: bool,
    },
    Message {
        sequence: u64,
        bytes: Vec<u8>,
    },
    Lost {
        first: u64,
        count: u64,
        why: DurableLoss,
    },
    Left {
        next: u64,
    },
    Discarded {
        first: u64,
        count: u64,
    },
    Ended {
        next: u64,
    },
    CaughtUp,
    Acknowledged {
        next: u64,
    },
    Unkept,
    StoreLost {
        name: String,
    },
    /// The lifetime of its registration is over, as the stores tell.
    Expired,
    StoreBack {
        name: String,
    },
}

/// Frames and events of one call of a machine.
#[derive(Default)]
pub(super) struct Collected {
    /// Requests of a publisher, by store's index.
    pub(super) requests: Vec<(usize, Vec<u8>)>,
    pub(super) events: Vec<SourceEvent>,
    /// Events of a receiver.
    pub(super) told: Vec<Told>,
    /// Replies of a store, by the client's id, and frames by another store's name.
    pub(super) replies: Vec<(u64, Vec<u8>)>,
    pub(super) others: Vec<(String, Vec<u8>)>,
    pub(super) client: u64,
}

fn bytes(client: u64, source: u64, frame: &StoreFrame<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame.write(StoreAddress { client, source, topic: TOPIC }, &mut bytes);
    bytes
}

impl SourceOutlet for Collected {
    fn request(&mut self, store: usize, frame: &StoreFrame<'_>) {
        self.requests.push((store, bytes(self.client, SOURCE, frame)));
    }

    fn event(&mut self, event: SourceEvent) {
        self.events.push(event);
    }
}

impl StoreOutlet for Collected {
    fn reply(&mut self, client: u64, _: &str, source: u64, frame: &StoreFrame<'_>) {
        self.replies.push((client, bytes(client, source, frame)));
    }

    fn request(&mut self, store: &str, _: &str, _: u64, frame: &StoreFrame<'_>) {
        self.others.push((store.to_owned(), bytes(self.client, SOURCE, frame)));
    }
}

impl ReceiverOutlet for Collected {
    fn request(&mut self, store: usize, source: u64, frame: &StoreFrame<'_>) {
        self.requests.push((store, bytes(self.client, source, frame)));
    }

    fn event(&mut self, event: ReceiverEvent<'_>) {
        self.told.push(match event {
            ReceiverEvent::Joined { next, is_resumed, .. } => Told::Started { next, is_resumed },
            ReceiverEvent::Message(message) => {
                Told::Message { sequence: message.sequence(), bytes: message.bytes().to_vec() }
            }
            ReceiverEvent::Lost { first, count, why, .. } => Told::Lost { first, count, why },
            ReceiverEvent::Left { next, .. } => Told::Left { next },
            ReceiverEvent::Discarded { first, count, .. } => Told::Discarded { first, count },
            ReceiverEvent::Ended { next, .. } => Told::Ended { next },
            ReceiverEvent::Recovered { .. } => Told::CaughtUp,
            ReceiverEvent::Acknowledged { next, .. } => Told::Acknowledged { next },
            ReceiverEvent::Unkept { .. } | ReceiverEvent::UnkeptLost { .. } => Told::Unkept,
            ReceiverEvent::StoreLost { store } => Told::StoreLost { name: store },
            ReceiverEvent::Expired { .. } => Told::Expired,
            ReceiverEvent::StoreBack { store } => Told::StoreBack { name: store },
            _ => return,
        });
    }
}
