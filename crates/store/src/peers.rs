//! Other stores, which this one copies from.

use crate::link::Link;
use crate::name;
use crate::wakeup::Wakeup;
use lanecast_transport::{Event, Subscribe, Transport};
use lanecast_wire::store::STORES_MAX;
use std::collections::BTreeMap;

/// Links to other stores, opened when they are first needed.
pub(crate) struct Peers<T: Transport> {
    transport: T,
    /// This store among the clients of others.
    client: u64,
    peers: BTreeMap<String, Peer<T>>,
}

struct Peer<T: Transport> {
    // Before the link: a subscriber that is dropped first holds up no publisher.
    replies: T::Subscriber,
    requests: Link<T::Publisher>,
}

impl<T: Transport> Peers<T> {
    pub(crate) const fn new(transport: T, client: u64) -> Self {
        Self { transport, client, peers: BTreeMap::new() }
    }

    /// This store's id among the clients of others.
    pub(crate) const fn client(&self) -> u64 {
        self.client
    }

    /// Sends a request to the store with this name.
    pub(crate) fn request(&mut self, store: &str, frame: &[u8], wakeup: &Wakeup) {
        if !self.peers.contains_key(store) {
            // The name came in a frame.
            if self.peers.len() >= STORES_MAX || name::check_store(store).is_err() {
                return;
            }
            let Some(peer) = self.open(store, wakeup) else { return };
            self.peers.insert(store.to_owned(), peer);
        }
        if let Some(peer) = self.peers.get_mut(store) {
            peer.requests.send(frame);
        }
    }

    /// `None` if the transport has no room now: requests are repeated.
    fn open(&self, store: &str, wakeup: &Wakeup) -> Option<Peer<T>> {
        let replies = name::replies(store, self.client);
        let mut replies = self.transport.subscriber(&[&replies]).ok()?;
        wakeup.add(&mut replies).ok()?;
        let requests = self.transport.publisher(&name::requests(store)).ok()?;
        Some(Peer { replies, requests: Link::new(requests) })
    }

    /// Reads at most `limit` frames of each store; returns the amount of work.
    pub(crate) fn poll(&mut self, limit: usize, mut handler: impl FnMut(&[u8])) -> usize {
        let mut work = 0;
        for peer in self.peers.values_mut() {
            work += peer.requests.flush();
            work += peer.replies.poll(limit, |event| {
                if let Event::Message(message) = event {
                    handler(message.bytes());
                }
            });
        }
        work
    }
}
