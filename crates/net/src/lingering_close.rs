//! Lingering close of connections that this side ends.
//!
//! Closing a socket with unread bytes resets the connection, and the frames written last are lost
//! unless they have arrived: this side reads until the other one has closed too.

use crate::lingering::Lingering;
use crate::poller::Descriptor;
use lanecast_protocol::Nanos;
use lanecast_tls::{ByteStream, READ_BYTES_MIN};
use std::io::ErrorKind;
use std::net::Shutdown;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most connections that linger; further ones are closed at once.
const LINGERING_MAX: usize = 64;

/// Lingering connections, and the latest time to close each.
#[derive(Debug, Default)]
pub(crate) struct LingeringConnections(Vec<(Nanos, ByteStream)>);

impl LingeringConnections {
    /// Writes the last frames, as far as there is room, and starts to close: the other side has to
    /// close by `until`. Returns whether the connection lingers.
    pub(crate) fn add(&mut self, until: Nanos, mut stream: ByteStream, frames: &[u8]) -> bool {
        // Once, without waiting: a peer that does not read loses them.
        let is_written = frames.is_empty() || stream.write(frames).is_ok();
        stream.close(Vec::new);
        let lingers = is_written
            // The peer sees the end after the frames, and closes its side.
            && stream.socket().shutdown(Shutdown::Write).is_ok()
            && self.0.len() < LINGERING_MAX;
        if lingers {
            self.0.push((until, stream));
        }
        lingers
    }

    /// Discards what still comes, and closes connections whose time is over; returns their number.
    pub(crate) fn poll(&mut self, now: Nanos, buffer: &mut [u8]) -> usize {
        let before = self.0.len();
        self.0.retain_mut(|(until, stream)| {
            let is_open = match stream.read(buffer) {
                Ok(_) => true,
                // Nothing to read is a peer that has not closed yet.
                Err(error) => error.kind() == ErrorKind::WouldBlock,
            };
            is_open && now < *until
        });
        before - self.0.len()
    }

    /// Deadline of the next [`poll`](Self::poll).
    pub(crate) fn deadline(&self) -> Option<Nanos> {
        self.0.iter().map(|(until, _)| *until).min()
    }

    pub(crate) fn streams(&self) -> impl Iterator<Item = &ByteStream> {
        self.0.iter().map(|(_, stream)| stream)
    }
}

/// Connections of subscribers that have left, until their publishers know it. A publisher that did
/// not hear of it would wait for the subscriber until it counts as dead.
#[derive(Debug)]
pub(crate) struct ClosingConnections {
    connections: Mutex<LingeringConnections>,
    /// The longest time that one lingers.
    linger: Nanos,
    lingering: Arc<Lingering>,
}

impl ClosingConnections {
    /// Connections of subscribers that count as dead after this silence.
    pub(crate) fn new(liveness: Nanos) -> Self {
        Self { connections: Mutex::default(), linger: liveness, lingering: Arc::default() }
    }

    pub(crate) const fn lingering(&self) -> &Arc<Lingering> {
        &self.lingering
    }

    fn connections(&self) -> MutexGuard<'_, LingeringConnections> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes over a connection with its last frames; called by the thread that leaves, which then
    /// wakes the conductor.
    pub(crate) fn add(&self, now: Nanos, stream: ByteStream, frames: &[u8]) {
        let mut connections = self.connections();
        // Counted under the lock, which the conductor needs to close it.
        if connections.add(now.saturating_add(self.linger), stream, frames) {
            self.lingering.add();
        }
    }

    /// Called by the conductor in each duty cycle: closes connections whose time is over, adds the
    /// others' sockets to `descriptors`, and returns the time of the next call.
    pub(crate) fn poll(&self, now: Nanos, descriptors: &mut Vec<(Descriptor, bool)>) -> Nanos {
        let mut connections = self.connections();
        if connections.0.is_empty() {
            return Nanos::MAX;
        }
        let closed = connections.poll(now, &mut [0; READ_BYTES_MIN]);
        (0..closed).for_each(|_| self.lingering.remove());
        let sockets = connections.streams().map(|it| it.socket().clone() as Descriptor);
        descriptors.extend(sockets.map(|socket| (socket, false)));
        connections.deadline().unwrap_or(Nanos::MAX)
    }
}
