//! A receiver, as the sender knows it.

use super::heartbeat::Heartbeat;
use super::packer::Numbers;
use super::repair::Missing;
use crate::Nanos;
use crate::sequence::{before, later};
use std::collections::BTreeSet;
use std::net::SocketAddr;

/// How much is remembered of what a receiver would want, in bytes of names.
const HOPES_BYTES_MAX: usize = 16 << 10;

/// Where a receiver is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Peer {
    Address(SocketAddr),
    Link(u64),
}

/// The numbers with which a topic began for a receiver.
#[derive(Clone, Copy, Debug)]
pub(super) struct Want {
    pub(super) topic: u32,
    pub(super) begin: Numbers,
}

/// Names of topics that there may be one day.
#[derive(Debug, Default)]
pub(super) struct Hopes {
    names: BTreeSet<Box<str>>,
    bytes: usize,
}

impl Hopes {
    /// Remembers a name, if there is room.
    pub(super) fn add(&mut self, name: &str) {
        if self.bytes + name.len() <= HOPES_BYTES_MAX && self.names.insert(name.into()) {
            self.bytes += name.len();
        }
    }

    /// Whether the name was among them; it is not any more.
    pub(super) fn take(&mut self, name: &str) -> bool {
        let was = self.names.remove(name);
        self.bytes -= if was { name.len() } else { 0 };
        was
    }
}

/// A receiver that was let in.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) receiver: u64,
    pub(super) peer: Peer,
    pub(super) tag: u32,
    pub(super) window: u32,
    /// Sorted by topic.
    pub(super) wants: Vec<Want>,
    /// What else it would want, if there were such topics.
    pub(super) hopes: Hopes,
    /// The clock of its last Join.
    pub(super) echo: u64,
    /// The first sequence that it gets, until it shows that it knows.
    pub(super) start: u64,
    pub(super) confirmed: bool,
    /// It knows where each of its topics begins.
    pub(super) is_told: bool,
    /// It has missed something for good.
    pub(super) has_lost: bool,
    /// The first sequence that its application has not read.
    pub(super) consumed: u64,
    /// The first sequence that it cannot take.
    pub(super) limit: u64,
    /// The next sequence for it, if it is sent to alone.
    pub(super) cursor: u64,
    /// How many datagrams before `cursor` it was not sent because it wants nothing in them.
    pub(super) skipped: u32,
    pub(super) heard: Nanos,
    /// How long a frame takes to it and back, once it has told.
    pub(super) round_trip: Option<Nanos>,
    /// Since when it has held the sender up.
    pub(super) holds_since: Option<Nanos>,
    pub(super) missing: Missing,
    /// Up to which of its topics it was told how far they are; as many again each time around.
    pub(super) heads_told: usize,
    pub(super) beat: Heartbeat,
}

impl Member {
    /// Whether it wants the topic.
    pub(super) fn wants(&self, topic: u32) -> bool {
        // A receiver that wants all topics, or the first ones, is the usual case.
        match self.wants.get(topic as usize) {
            Some(want) if want.topic == topic => true,
            _ => self.want(topic).is_some(),
        }
    }

    pub(super) fn want(&self, topic: u32) -> Option<&Want> {
        let at = self.wants.binary_search_by_key(&topic, |want| want.topic).ok()?;
        self.wants.get(at)
    }

    pub(super) fn add_want(&mut self, want: Want) {
        if let Err(at) = self.wants.binary_search_by_key(&want.topic, |want| want.topic) {
            self.wants.insert(at, want);
            self.is_told = false;
        }
    }

    /// Whether it counts: it wants something.
    pub(super) const fn counts(&self) -> bool {
        !self.wants.is_empty()
    }

    /// What is not sent to it needs no reading: once it has read what it was sent, its marks pass
    /// over that.
    pub(super) fn settle(&mut self) {
        let sent = self.cursor.wrapping_sub(u64::from(self.skipped));
        if !before(self.consumed, sent) && before(self.consumed, self.cursor) {
            self.consumed = self.cursor;
            self.limit = later(self.limit, self.cursor.wrapping_add(u64::from(self.window)));
        }
    }

    /// The datagram at the cursor is nothing for it.
    pub(super) fn skip(&mut self) {
        self.cursor = self.cursor.wrapping_add(1);
        self.skipped = self.skipped.saturating_add(1);
        self.settle();
    }

    /// Datagrams up to `cursor` are on their way to it.
    pub(super) const fn pass(&mut self, cursor: u64) {
        self.cursor = cursor;
        self.skipped = 0;
    }
}
