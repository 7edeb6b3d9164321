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

/// The most connections of sessions that linger.
const CLOSING_MAX: usize = 256;

/// Lingering connections, and the latest time to close each.
#[derive(Debug)]
pub(crate) struct LingeringConnections {
    connections: Vec<(Nanos, ByteStream)>,
    most: usize,
}

impl LingeringConnections {
    /// At most so many; further ones are closed at once.
    pub(crate) const fn new(most: usize) -> Self {
        Self { connections: Vec::new(), most }
    }

    /// Writes the last frames, as far as there is room, and starts to close: the other side has to
    /// close by `until`. Returns whether the connection lingers.
    pub(crate) fn add(&mut self, until: Nanos, mut stream: ByteStream, frames: &[u8]) -> bool {
        // Once, without waiting: a peer that does not read loses them.
        let is_written = frames.is_empty() || stream.write(frames).is_ok();
        stream.close(Vec::new);
        let lingers = is_written
            // The peer sees the end after the frames, and closes its side.
            && stream.socket().shutdown(Shutdown::Write).is_ok()
            && self.connections.len() < self.most;
        if lingers {
            self.connections.push((until, stream));
        }
        lingers
    }

    /// Discards what still comes, and closes connections whose time is over; returns their number.
    pub(crate) fn poll(&mut self, now: Nanos, buffer: &mut [u8]) -> usize {
        let before = self.connections.len();
        self.connections.retain_mut(|(until, stream)| {
            let is_open = match stream.read(buffer) {
                Ok(_) => true,
                // Nothing to read is a peer that has not closed yet.
                Err(error) => error.kind() == ErrorKind::WouldBlock,
            };
            is_open && now < *until
        });
        before - self.connections.len()
    }

    /// Deadline of the next [`poll`](Self::poll).
    pub(crate) fn deadline(&self) -> Option<Nanos> {
        self.connections.iter().map(|(until, _)| *until).min()
    }

    pub(crate) fn streams(&self) -> impl Iterator<Item = &ByteStream> {
        self.connections.iter().map(|(_, stream)| stream)
    }
}

/// Connections of sessions that subscribers have left or read to the end, until their publishers
/// know it. A publisher that did not hear of it would wait until the subscriber counts as dead.
#[derive(Debug)]
pub(crate) struct ClosingConnections {
    connections: Mutex<LingeringConnections>,
    /// The longest time that one lingers.
    linger: Nanos,
    lingering: Arc<Lingering>,
}

impl ClosingConnections {
    /// Connections of subscribers that count as dead after this silence.
    /// `lingering` counts them.
    pub(crate) fn new(liveness: Nanos, lingering: Arc<Lingering>) -> Self {
        let connections = Mutex::new(LingeringConnections::new(CLOSING_MAX));
        Self { connections, linger: liveness, lingering }
    }

    fn connections(&self) -> MutexGuard<'_, LingeringConnections> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes over a connection with its last frames; called by any thread that drives the session.
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
        if connections.connections.is_empty() {
            return Nanos::MAX;
        }
        let closed = connections.poll(now, &mut [0; READ_BYTES_MIN]);
        (0..closed).for_each(|_| self.lingering.remove());
        let sockets = connections.streams().map(|it| it.socket().clone() as Descriptor);
        descriptors.extend(sockets.map(|socket| (socket, false)));
        connections.deadline().unwrap_or(Nanos::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{Ipv4Addr, TcpListener, TcpStream};
    use std::time::{Duration, Instant};

    const LIVENESS: Nanos = 5;
    const PATIENCE: Duration = Duration::from_secs(60);

    /// Both ends of a connection; this side's does not block.
    fn pair() -> (ByteStream, TcpStream) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        near.set_nonblocking(true).unwrap();
        (ByteStream::plain(near), listener.accept().unwrap().0)
    }

    #[test]
    fn a_connection_with_unread_bytes_stays_until_the_other_side_has_read_the_last_frames() {
        let closing = ClosingConnections::new(LIVENESS, Arc::default());
        let (near, mut far) = pair();
        far.write_all(&[1; 1_000]).unwrap();
        closing.add(10, near, &[2; 3]);
        let mut descriptors = Vec::new();
        assert_eq!((closing.poll(11, &mut descriptors), descriptors.len()), (10 + LIVENESS, 1));
        let mut last = Vec::new();
        far.read_to_end(&mut last).unwrap();
        assert_eq!(last, [2; 3]);
        drop(far);
        let start = Instant::now();
        while closing.poll(12, &mut Vec::new()) != Nanos::MAX {
            assert!(start.elapsed() < PATIENCE, "the other side has closed");
        }
        closing.lingering.wait_until_finished(PATIENCE);
        assert!(start.elapsed() < PATIENCE, "nothing is left to wait for");
    }

    #[test]
    fn one_that_the_other_side_keeps_open_ends_with_the_liveness_and_too_many_end_at_once() {
        let closing = ClosingConnections::new(LIVENESS, Arc::default());
        let far: Vec<TcpStream> = (0..=CLOSING_MAX)
            .map(|_| {
                let (near, far) = pair();
                closing.add(10, near, &[]);
                far
            })
            .collect();
        let mut descriptors = Vec::new();
        closing.poll(9 + LIVENESS, &mut descriptors);
        assert_eq!(descriptors.len(), CLOSING_MAX);
        assert_eq!(closing.poll(10 + LIVENESS, &mut Vec::new()), Nanos::MAX);
        let start = Instant::now();
        closing.lingering.wait_until_finished(PATIENCE);
        assert!(start.elapsed() < PATIENCE, "nothing is left to wait for");
        drop(far);
    }
}
