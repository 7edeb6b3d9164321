//! Connections that the daemon has ended: they are read until the other side has closed too, so
//! that the reason arrives. A socket that is closed with bytes unread throws away what was written.

use lanecast_protocol::{Nanos, SECOND};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};

/// The other side has this long.
const LINGER: Nanos = SECOND;
/// More are closed at once.
const CLOSING_MAX: usize = 64;

/// Such connections, and when each is closed at the latest.
#[derive(Debug, Default)]
pub(super) struct Closing(Vec<(Nanos, TcpStream)>);

impl Closing {
    /// Writes the last words, as far as there is room, and begins to close.
    pub(super) fn add(&mut self, now: Nanos, stream: TcpStream, words: &[u8]) {
        let told = (&stream).write(words);
        if told.is_ok() && stream.shutdown(Shutdown::Write).is_ok() && self.0.len() < CLOSING_MAX {
            self.0.push((now.saturating_add(LINGER), stream));
        }
    }

    /// Throws away what still comes; closes whose time is over.
    pub(super) fn turn(&mut self, now: Nanos, buffer: &mut [u8]) {
        self.0.retain(|(until, stream)| {
            let mut stream = stream;
            let is_open = match stream.read(buffer) {
                Ok(length) => length > 0,
                Err(error) => error.kind() == ErrorKind::WouldBlock,
            };
            is_open && now < *until
        });
    }

    /// When to look at the latest.
    pub(super) fn deadline(&self) -> Option<Nanos> {
        self.0.iter().map(|(until, _)| *until).min()
    }

    pub(super) fn streams(&self) -> impl Iterator<Item = &TcpStream> {
        self.0.iter().map(|(_, stream)| stream)
    }
}
