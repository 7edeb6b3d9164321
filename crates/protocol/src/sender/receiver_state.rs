//! State of one joined receiver, as the sender knows it.

use super::heartbeat_timer::HeartbeatTimer;
use super::layout::Position;
use super::missing::MissingRanges;
use super::open_block::OpenBlock;
use crate::Nanos;
use crate::sequence::{before, later};
use lanecast_transport::SubscriberId;
use std::collections::BTreeSet;
use std::net::SocketAddr;

/// Most bytes of topic names remembered for a receiver that subscribed before they exist.
const AWAITED_BYTES_MAX: usize = 16 << 10;

/// Address of a receiver: UDP, or a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Peer {
    Address(SocketAddr),
    Connection(u64),
}

/// A subscribed topic, and the position at which it begins for the receiver.
#[derive(Clone, Copy, Debug)]
pub(super) struct Subscription {
    pub(super) topic: u32,
    pub(super) begin: Position,
}

/// Names of subscribed topics that the session does not have yet.
#[derive(Debug, Default)]
pub(super) struct AwaitedNames {
    names: BTreeSet<Box<str>>,
    bytes: usize,
}

impl AwaitedNames {
    /// Remembers a name if there is room.
    pub(super) fn add(&mut self, name: &str) {
        // Bounded: a Join may name any topics, and none of them need ever exist.
        if self.bytes + name.len() <= AWAITED_BYTES_MAX && self.names.insert(name.into()) {
            self.bytes += name.len();
        }
    }

    /// Removes a name; returns whether it was there.
    pub(super) fn take(&mut self, name: &str) -> bool {
        let was = self.names.remove(name);
        self.bytes -= if was { name.len() } else { 0 };
        was
    }
}

/// A joined receiver.
#[derive(Debug)]
pub(super) struct ReceiverState {
    pub(super) receiver: u64,
    /// Id for the publisher, from the first subscribed topic on.
    pub(super) subscriber: Option<SubscriberId>,
    pub(super) peer: Peer,
    pub(super) tag: u32,
    /// Receive window, in datagrams.
    pub(super) window: u32,
    /// Sorted by topic.
    pub(super) subscriptions: Vec<Subscription>,
    pub(super) awaited: AwaitedNames,
    /// Receiver's clock in its last Join.
    pub(super) echo: u64,
    /// First sequence of its stream; repeated in each Welcome until `confirmed`.
    pub(super) start: u64,
    /// A Status has shown that the receiver knows its start.
    pub(super) confirmed: bool,
    /// The receiver knows where each of its topics begins.
    pub(super) knows_topics: bool,
    /// The receiver has reported a loss.
    pub(super) has_lost: bool,
    /// First sequence that its application has not read.
    pub(super) consumed: u64,
    /// First sequence beyond its receive window.
    pub(super) limit: u64,
    /// Next sequence to send to it; unicast and streams only.
    pub(super) cursor: u64,
    /// Datagrams just before `cursor` that were skipped: none of its topics is in them.
    pub(super) skipped: u32,
    pub(super) heard_at: Nanos,
    /// Round trip, as reported by the receiver.
    pub(super) round_trip: Option<Nanos>,
    /// Time since which it has held the sender back.
    pub(super) blocking_since: Option<Nanos>,
    pub(super) missing: MissingRanges,
    /// Index into its topics from which the next Session frame reports positions.
    pub(super) next_report: usize,
    pub(super) heartbeat: HeartbeatTimer,
    /// The receiver rebuilds datagrams from parity.
    pub(super) has_fec: bool,
    /// Datagrams sent to it that have no parity yet; unicast only.
    pub(super) open_block: OpenBlock,
}

impl ReceiverState {
    pub(super) fn is_subscribed(&self, topic: u32) -> bool {
        // Fast path: a receiver subscribed to all topics, or to the first ones.
        match self.subscriptions.get(topic as usize) {
            Some(known) if known.topic == topic => true,
            _ => self.subscription(topic).is_some(),
        }
    }

    pub(super) fn subscription(&self, topic: u32) -> Option<&Subscription> {
        let at = self.subscriptions.binary_search_by_key(&topic, |known| known.topic).ok()?;
        self.subscriptions.get(at)
    }

    pub(super) fn subscribe(&mut self, new: Subscription) {
        if let Err(at) = self.subscriptions.binary_search_by_key(&new.topic, |known| known.topic) {
            self.subscriptions.insert(at, new);
            // Until a Status counts as many topics as the session has told it.
            self.knows_topics = false;
        }
    }

    /// Whether the receiver counts for flow control: it is subscribed to a topic.
    pub(super) const fn counts(&self) -> bool {
        !self.subscriptions.is_empty()
    }

    /// Advances `consumed` over skipped datagrams, once the receiver has read all before them.
    pub(super) fn consume_skipped(&mut self) {
        let sent = self.cursor.wrapping_sub(u64::from(self.skipped));
        // Only when all before them is read: `consumed` has no holes.
        if !before(self.consumed, sent) && before(self.consumed, self.cursor) {
            self.consumed = self.cursor;
            self.limit = later(self.limit, self.cursor.wrapping_add(u64::from(self.window)));
        }
    }

    /// Skips the datagram at the cursor: none of the receiver's topics is in it.
    pub(super) fn skip(&mut self) {
        self.cursor = self.cursor.wrapping_add(1);
        self.skipped = self.skipped.saturating_add(1);
        self.consume_skipped();
    }

    /// Moves the cursor behind datagrams that were sent.
    pub(super) const fn advance(&mut self, cursor: u64) {
        self.cursor = cursor;
        self.skipped = 0;
    }
}
