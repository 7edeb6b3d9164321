//! Frames and events of one call of a machine.

use lanecast_persistence::{SourceEvent, SourceOutlet, StoreOutlet};
use lanecast_wire::store::{StoreAddress, StoreFrame};

pub(super) const TOPIC: &str = "orders";
pub(super) const SOURCE: u64 = 77;
/// Clients from this number on are publishers; those below are stores.
pub(super) const FIRST_SESSION: u64 = 1_000;

/// Frames and events of one call of a machine.
#[derive(Default)]
pub(super) struct Collected {
    /// From a publisher: by store's index.
    pub(super) requests: Vec<(usize, Vec<u8>)>,
    pub(super) events: Vec<SourceEvent>,
    /// From a store: by the client's id, and by another store's name.
    pub(super) replies: Vec<(u64, Vec<u8>)>,
    pub(super) others: Vec<(String, Vec<u8>)>,
    pub(super) client: u64,
}

fn bytes(client: u64, frame: &StoreFrame<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame.write(StoreAddress { client, source: SOURCE, topic: TOPIC }, &mut bytes);
    bytes
}

impl SourceOutlet for Collected {
    fn request(&mut self, store: usize, frame: &StoreFrame<'_>) {
        self.requests.push((store, bytes(self.client, frame)));
    }

    fn event(&mut self, event: SourceEvent) {
        self.events.push(event);
    }
}

impl StoreOutlet for Collected {
    fn reply(&mut self, client: u64, _: &str, _: u64, frame: &StoreFrame<'_>) {
        self.replies.push((client, bytes(client, frame)));
    }

    fn request(&mut self, store: &str, _: &str, _: u64, frame: &StoreFrame<'_>) {
        self.others.push((store.to_owned(), bytes(self.client, frame)));
    }
}
