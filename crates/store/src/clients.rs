//! Links to the clients of a store: publishers, receivers, and other stores that copy from it.

use crate::link::{Link, WAITING_MAX};
use crate::name;
use lanecast_persistence::Nanos;
use lanecast_transport::Transport;
use std::collections::BTreeMap;

/// Most clients that are answered at the same time.
const CLIENTS_MAX: usize = 1_024;
/// Most bytes of frames that wait for one client while those of all are below [`SHARED_MAX`]: a
/// receiver of a topic with many publishers is offered all streams in one answer.
const LONG_WAITING_MAX: usize = 32 << 20;
/// Bytes of frames that wait for all clients, beyond which each has [`WAITING_MAX`] only.
const SHARED_MAX: usize = 64 << 20;
/// Interval at which clients are looked at that no frame waits for.
const LOOK: Nanos = 10_000_000;
/// Time without a receiver after which a link is closed.
const IDLE: Nanos = 5_000_000_000;

/// Links by client.
pub(crate) struct Clients<T: Transport> {
    transport: T,
    store: String,
    links: BTreeMap<u64, ClientLink<T>>,
    /// Bytes of frames that wait for all clients.
    waiting_bytes: usize,
    /// Time of the next look at all clients.
    look_at: Nanos,
    /// Answers that no link could be opened for.
    refused: u64,
    /// Bytes of all replies so far, sent or not.
    replied_bytes: u64,
}

struct ClientLink<T: Transport> {
    link: Link<T::Publisher>,
    /// When it last had a receiver, or was opened.
    used: Nanos,
}

impl<T: Transport> Clients<T> {
    pub(crate) fn new(transport: T, store: &str) -> Self {
        let (store, links) = (store.to_owned(), BTreeMap::new());
        let (waiting_bytes, look_at) = (0, 0);
        Self { transport, store, links, waiting_bytes, look_at, refused: 0, replied_bytes: 0 }
    }

    /// Sends a reply; the link is opened with the first one.
    pub(crate) fn reply(&mut self, client: u64, frame: &[u8], now: Nanos) {
        self.replied_bytes += frame.len() as u64;
        if !self.links.contains_key(&client) && !self.open(client, now) {
            self.refused += 1;
            return;
        }
        if let Some(it) = self.links.get_mut(&client) {
            let before = it.link.waiting_bytes();
            // Those of other clients that wait are not given up for this one, nor its own.
            let is_crowded = self.waiting_bytes + frame.len() > SHARED_MAX;
            if is_crowded && before + frame.len() > WAITING_MAX {
                self.refused += 1;
                return;
            }
            it.link.send_within(frame, LONG_WAITING_MAX);
            self.waiting_bytes = self.waiting_bytes + it.link.waiting_bytes() - before;
        }
    }

    #[cold]
    fn open(&mut self, client: u64, now: Nanos) -> bool {
        if self.links.len() >= CLIENTS_MAX {
            // One without a receiver gives way; clients that are there keep their places.
            let idle = self
                .links
                .iter_mut()
                .filter_map(|(id, it)| (!it.link.has_receiver()).then_some((it.used, *id)));
            let Some((_, oldest)) = idle.min() else {
                return false;
            };
            let removed = self.links.remove(&oldest);
            self.waiting_bytes -= removed.map_or(0, |it| it.link.waiting_bytes());
        }
        // Out of descriptors or memory now, perhaps: the client asks again.
        let topic = name::replies(&self.store, client);
        let Ok(publisher) = self.transport.publisher(&topic) else { return false };
        self.links.insert(client, ClientLink { link: Link::new(publisher), used: now });
        true
    }

    /// Sends what waits, and closes links without receivers; returns the amount of work.
    pub(crate) fn poll(&mut self, now: Nanos) -> usize {
        if !self.are_waiting() && now < self.look_at {
            return 0;
        }
        self.look_at = now + LOOK;
        let (mut work, mut waiting_bytes) = (0, 0);
        self.links.retain(|_, it| {
            if it.link.has_receiver() {
                it.used = now;
                work += it.link.flush();
            }
            let is_used = now.saturating_sub(it.used) < IDLE;
            waiting_bytes += if is_used { it.link.waiting_bytes() } else { 0 };
            is_used
        });
        self.waiting_bytes = waiting_bytes;
        work
    }

    /// Whether many bytes wait for this client.
    pub(crate) fn is_behind(&self, client: u64) -> bool {
        self.links.get(&client).is_some_and(|it| it.link.waiting_bytes() > WAITING_MAX)
    }

    /// Whether replies wait for a client to join, or for room: no descriptor tells of either.
    pub(crate) const fn are_waiting(&self) -> bool {
        // No frame is empty.
        self.waiting_bytes > 0
    }

    /// Clients with a receiver.
    pub(crate) fn count(&self) -> usize {
        self.links.values().filter(|it| it.link.had_receiver()).count()
    }

    /// Bytes of all replies so far, sent or not.
    pub(crate) const fn replied_bytes(&self) -> u64 {
        self.replied_bytes
    }

    pub(crate) const fn refused(&self) -> u64 {
        self.refused
    }
}
