//! Connections of a session that sends by streams: control frames to write, and the run being
//! written.

use super::window::Run;
use crate::Nanos;
use std::net::SocketAddr;

/// Most bytes of control frames queued for a connection.
const PENDING_MAX: usize = 1 << 18;

/// Connections allowed without a joined receiver, in addition to one per receiver.
pub const UNJOINED_MAX: usize = 64;

/// One connection, named by its owner's number.
#[derive(Debug)]
pub(super) struct Connection {
    number: u64,
    pub(super) from: SocketAddr,
    /// Time since which the connection has had no joined receiver.
    unjoined: Option<Nanos>,
    /// Rest of a partly written frame, then control frames.
    pending: Vec<u8>,
    written: usize,
    /// Run handed out by the last call of `stream_bytes`.
    pub(super) planned: Option<Run>,
    /// An Eject was queued; the receiver closes the connection after reading it.
    pub(super) is_rejected: bool,
}

/// All connections of a session.
#[derive(Debug, Default)]
pub(super) struct Connections {
    all: Vec<Connection>,
}

impl Connections {
    pub(super) fn get(&mut self, number: u64) -> Option<&mut Connection> {
        self.all.iter_mut().find(|known| known.number == number)
    }

    /// Adds a connection unless `most` are open.
    pub(super) fn add(&mut self, now: Nanos, (number, from): (u64, SocketAddr), most: usize) {
        // Bounded: connections take memory before any receiver has proved itself.
        if self.get(number).is_none() && self.all.len() < most {
            self.all.push(Connection {
                number,
                from,
                unjoined: Some(now),
                pending: Vec::new(),
                written: 0,
                planned: None,
                is_rejected: false,
            });
        }
    }

    pub(super) fn remove(&mut self, number: u64) {
        self.all.retain(|known| known.number != number);
    }

    /// Queues a frame; false if the connection is gone or its queue is full.
    pub(super) fn push(&mut self, number: u64, frame: &[u8]) -> bool {
        let Some(connection) = self.get(number) else { return false };
        let room = connection.pending.len() + frame.len() <= PENDING_MAX;
        // All or nothing: part of a frame would break the stream.
        if room {
            connection.pending.extend_from_slice(frame);
        }
        room
    }

    /// A receiver has joined by this connection.
    pub(super) fn join(&mut self, number: u64) {
        self.get(number).into_iter().for_each(|known| known.unjoined = None);
    }

    /// The receiver is removed, or has joined by another connection.
    pub(super) fn unjoin(&mut self, number: u64, now: Nanos) {
        // The first time counts: repeated calls must not extend it.
        self.get(number).into_iter().for_each(|known| _ = known.unjoined.get_or_insert(now));
    }

    /// The connection longest without a receiver, and since when.
    pub(super) fn longest_unjoined(&self) -> Option<(u64, Nanos)> {
        let unjoined = self.all.iter().filter_map(|known| Some((known.number, known.unjoined?)));
        unjoined.min_by_key(|(_, since)| *since)
    }

    /// Connections without a receiver, the oldest first.
    pub(super) fn unjoined(&self) -> impl Iterator<Item = u64> {
        let unjoined = self.all.iter().filter(|known| known.unjoined.is_some());
        unjoined.map(|known| known.number)
    }

    /// Whether a connection with a rejected receiver is still open.
    pub(super) fn has_rejected(&self) -> bool {
        self.all.iter().any(|known| known.is_rejected)
    }
}

impl Connection {
    /// Queued bytes that were not written yet.
    pub(super) fn rest(&self) -> &[u8] {
        &self.pending[self.written..]
    }

    /// Queues the rest of a partly written frame.
    pub(super) fn keep(&mut self, rest: &[u8]) {
        self.pending.extend_from_slice(rest);
    }

    /// Removes `bytes` written from the queue.
    pub(super) fn advance(&mut self, bytes: usize) {
        self.written = (self.written + bytes).min(self.pending.len());
        // Cleared only when all is written: moving the rest forward would cost a copy at each
        // write.
        if self.written == self.pending.len() {
            self.pending.clear();
            self.written = 0;
        }
    }
}
