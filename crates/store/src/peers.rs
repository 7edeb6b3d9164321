//! Other stores, which this one copies from.

use crate::link::Link;
use crate::name;
use crate::wakeup::Wakeup;
use lanecast_persistence::Nanos;
use lanecast_transport::{Event, Subscribe, Transport};
use lanecast_wire::store::STORES_MAX;
use std::collections::BTreeMap;

/// Time without a request or an answer after which the ways to a store are closed: copies ask
/// several times a second.
const IDLE: Nanos = 5_000_000_000;

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
    /// Time of the last request or answer.
    used: Nanos,
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
    pub(crate) fn request(&mut self, store: &str, frame: &[u8], wakeup: &Wakeup, now: Nanos) {
        if !self.peers.contains_key(store) {
            // The name came in a frame.
            if self.peers.len() >= STORES_MAX || name::check_store(store).is_err() {
                return;
            }
            let Some(peer) = self.open(store, wakeup, now) else { return };
            self.peers.insert(store.to_owned(), peer);
        }
        if let Some(peer) = self.peers.get_mut(store) {
            peer.requests.send(frame);
            peer.used = now;
        }
    }

    /// `None` if the transport has no room now: requests are repeated.
    fn open(&self, store: &str, wakeup: &Wakeup, now: Nanos) -> Option<Peer<T>> {
        let replies = name::replies(store, self.client);
        let mut replies = self.transport.subscriber(&[&replies]).ok()?;
        wakeup.add(&mut replies).ok()?;
        let requests = self.transport.publisher(&name::requests(store)).ok()?;
        Some(Peer { replies, requests: Link::new(requests), used: now })
    }

    /// Reads at most `limit` frames of each store, and closes the ways to those that are not needed
    /// any more; returns the amount of work.
    pub(crate) fn poll(
        &mut self,
        limit: usize,
        now: Nanos,
        mut handler: impl FnMut(&[u8]),
    ) -> usize {
        let mut work = 0;
        self.peers.retain(|_, peer| {
            work += peer.requests.flush();
            work += peer.replies.poll(limit, |event| {
                if let Event::Message(message) = event {
                    peer.used = now;
                    handler(message.bytes());
                }
            });
            now.saturating_sub(peer.used) < IDLE
        });
        work
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanecast_os::event::ArmedEvent;
    use lanecast_shm::{Domain, DomainSettings, Visibility};
    use std::sync::Arc;

    #[test]
    fn peers_that_are_not_needed_give_way_to_others() {
        let directory = tempfile::tempdir().expect("a directory");
        let settings = DomainSettings {
            visibility: Visibility::Process,
            directory: directory.path().to_owned(),
            window_bytes: 64 << 10,
            ..DomainSettings::default()
        };
        let domain = Domain::open(settings).expect("a domain");
        let written = Arc::new(ArmedEvent::new().expect("a descriptor"));
        let wakeup = Wakeup::new(written).expect("descriptors");
        let mut peers = Peers::new(domain, 1);
        for number in 0..STORES_MAX + 1 {
            peers.request(&format!("store-{number}"), b"frame", &wakeup, 0);
        }
        assert_eq!(peers.peers.len(), STORES_MAX);
        peers.request("store-3", b"frame", &wakeup, IDLE / 2);
        peers.poll(1, IDLE, |_| {});
        assert_eq!(peers.peers.keys().collect::<Vec<_>>(), ["store-3"]);
        peers.request("another", b"frame", &wakeup, IDLE);
        assert!(peers.peers.contains_key("another"));
    }
}
