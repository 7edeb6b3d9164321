//! Lingering close of connections that the daemon has ended.
//!
//! Closing a socket with unread bytes resets the connection, and the reason written last is lost:
//! the daemon reads until the other side has closed too.

use lanecast_protocol::{Nanos, SECOND};
use lanecast_tls::ByteStream;
use std::io::ErrorKind;
use std::net::Shutdown;

/// Time that the other side has to close.
const LINGER: Nanos = SECOND;
/// The most connections that linger; further ones are closed at once.
const LINGERING_MAX: usize = 64;

/// Lingering connections, and the latest time to close each.
#[derive(Debug, Default)]
pub(crate) struct LingeringConnections(Vec<(Nanos, ByteStream)>);

impl LingeringConnections {
    /// Writes the last frame, as far as there is room, and starts to close.
    pub(crate) fn add(&mut self, now: Nanos, mut stream: ByteStream, frame: &[u8]) {
        // Once, without waiting: a peer that does not read loses the reason.
        let written = stream.write(frame);
        stream.close(Vec::new);
        if written.is_ok()
            // The peer sees the end after the frame, and closes its side.
            && stream.socket().shutdown(Shutdown::Write).is_ok()
            && self.0.len() < LINGERING_MAX
        {
            self.0.push((now.saturating_add(LINGER), stream));
        }
    }

    /// Discards what still comes, and closes connections whose time is over.
    pub(crate) fn poll(&mut self, now: Nanos, buffer: &mut [u8]) {
        self.0.retain_mut(|(until, stream)| {
            let is_open = match stream.read(buffer) {
                Ok(_) => true,
                // Nothing to read is a peer that has not closed yet.
                Err(error) => error.kind() == ErrorKind::WouldBlock,
            };
            is_open && now < *until
        });
    }

    /// Deadline of the next [`poll`](Self::poll).
    pub(crate) fn deadline(&self) -> Option<Nanos> {
        self.0.iter().map(|(until, _)| *until).min()
    }

    pub(crate) fn streams(&self) -> impl Iterator<Item = &ByteStream> {
        self.0.iter().map(|(_, stream)| stream)
    }
}
