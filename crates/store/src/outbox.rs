//! Destination of a store's frames.

use crate::clients::Clients;
use crate::peers::Peers;
use crate::wakeup::Wakeup;
use lanecast_persistence::{Nanos, StoreOutlet};
use lanecast_transport::Transport;
use lanecast_wire::store::{StoreAddress, StoreFrame};

/// Sends what the machine wants to have sent.
pub(crate) struct Outbox<'a, T: Transport> {
    pub(crate) clients: &'a mut Clients<T>,
    pub(crate) peers: &'a mut Peers<T>,
    pub(crate) wakeup: &'a Wakeup,
    pub(crate) now: Nanos,
}

impl<T: Transport> StoreOutlet for Outbox<'_, T> {
    fn reply(&mut self, client: u64, topic: &str, source: u64, frame: &StoreFrame<'_>) {
        let mut bytes = Vec::new();
        frame.write(StoreAddress { client, source, topic }, &mut bytes);
        self.clients.reply(client, &bytes, self.now);
    }

    fn request(&mut self, store: &str, topic: &str, source: u64, frame: &StoreFrame<'_>) {
        let mut bytes = Vec::new();
        let client = self.peers.client();
        frame.write(StoreAddress { client, source, topic }, &mut bytes);
        self.peers.request(store, &bytes, self.wakeup, self.now);
    }
}
