//! TLS of one connection without its socket: encrypted bytes in, plain bytes out, and the other way
//! round.

use crate::files::{TlsAcceptor, TlsConnector};
use crate::peer_name::PeerName;
use crate::refusal::TlsRefusal;
use rustls::{ClientConnection, Connection, Reader, ServerConnection};
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::sync::Arc;

/// The longest TLS record, of which the beginning may have come before.
const RECORD_BYTES_MAX: usize = 18_437;
/// The smallest buffer of a read, in bytes: room for what is left of two records.
pub const READ_BYTES_MIN: usize = 2 * RECORD_BYTES_MAX;

/// The first two bytes of a handshake's record, and of an alert's.
const HANDSHAKE: [u8; 2] = [22, 3];
const ALERT: [u8; 2] = [21, 3];
/// A record that tells a program without TLS that TLS is required, as far as it knows TLS: the
/// fatal alert `protocol_version`.
pub const TLS_REQUIRED: [u8; 7] = [21, 3, 3, 0, 2, 2, 70];

/// Whether a stream that begins with `bytes` is one of TLS.
pub fn is_tls(bytes: &[u8]) -> bool {
    bytes.starts_with(&HANDSHAKE) || bytes.starts_with(&ALERT)
}

/// One end of a TLS connection.
///
/// Encrypted bytes that leave are kept until [`write_to`](Self::write_to) takes them; after each
/// other call there may be some.
#[derive(Debug)]
pub struct TlsSession {
    connection: Connection,
    /// The other side has sent something that TLS begins with.
    has_begun: bool,
    /// The other side does not speak TLS.
    is_plain: bool,
    is_closed: bool,
    has_peer_closed: bool,
}

impl TlsSession {
    /// The accepting end.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub fn accept(acceptor: &TlsAcceptor) -> io::Result<Self> {
        let connection =
            ServerConnection::new(Arc::clone(&acceptor.0)).map_err(io::Error::other)?;
        Ok(Self::new(Connection::Server(connection)))
    }

    /// The opening end; the certificate of the other one has to be for `name`.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub fn connect(connector: &TlsConnector, name: PeerName) -> io::Result<Self> {
        let connection = ClientConnection::new(Arc::clone(&connector.0), name.0);
        Ok(Self::new(Connection::Client(connection.map_err(io::Error::other)?)))
    }

    const fn new(connection: Connection) -> Self {
        Self {
            connection,
            has_begun: false,
            is_plain: false,
            is_closed: false,
            has_peer_closed: false,
        }
    }

    /// Whether the handshake is complete.
    pub fn is_open(&self) -> bool {
        !self.connection.is_handshaking()
    }

    /// Whether encrypted bytes wait to be written.
    pub fn has_unsent(&self) -> bool {
        self.connection.wants_write()
    }

    /// Whether the other side began without TLS: it cannot read an alert under a key.
    pub const fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// Whether the other side has sent its close notification: what follows is not of the stream.
    pub const fn has_peer_closed(&self) -> bool {
        self.has_peer_closed
    }

    /// The longest piece of encrypted bytes that is decrypted within `length` bytes: in one half of
    /// a buffer they come, in the other the plain ones fit, with a record that began before.
    pub(crate) const fn cipher_room(length: usize) -> usize {
        length.saturating_sub(RECORD_BYTES_MAX) / 2
    }

    /// Decrypts `cipher` into the beginning of `plain`; returns the length, 0 as long as it is of
    /// the handshake.
    ///
    /// # Errors
    /// With a [`TlsRefusal`] if one side does not accept the other, or the bytes are not those of
    /// TLS; of [`ErrorKind::InvalidInput`] if `plain` has no room.
    pub fn decrypt(&mut self, cipher: &[u8], plain: &mut [u8]) -> io::Result<usize> {
        let mut length = 0;
        self.each_piece(cipher, |reader, bytes| {
            let room = plain.get_mut(length..length + bytes).ok_or(ErrorKind::InvalidInput)?;
            length += bytes;
            reader.read_exact(room)
        })?;
        Ok(length)
    }

    /// Decrypts `cipher` behind the end of `plain`, which grows as far as it has to.
    ///
    /// # Errors
    /// As [`decrypt`](Self::decrypt), but for the room.
    pub fn decrypt_to(&mut self, cipher: &[u8], plain: &mut Vec<u8>) -> io::Result<()> {
        self.each_piece(cipher, |reader, bytes| {
            let start = plain.len();
            plain.resize(start + bytes, 0);
            reader.read_exact(&mut plain[start..])
        })
    }

    /// Takes `cipher`, and calls `each` with decrypted bytes and their number, as they come.
    fn each_piece(
        &mut self,
        mut cipher: &[u8],
        mut each: impl FnMut(&mut Reader<'_>, usize) -> io::Result<()>,
    ) -> io::Result<()> {
        let Some(&first) = cipher.first() else { return Ok(()) };
        // By the first byte alone: rustls would fail too, but with words for clients of TLS.
        let begins = first == HANDSHAKE[0] || first == ALERT[0];
        if !std::mem::replace(&mut self.has_begun, true) && !begins {
            self.is_plain = true;
            return Err(TlsRefusal::PLAIN.into_error(ErrorKind::InvalidData));
        }
        while !cipher.is_empty() && !self.has_peer_closed {
            self.connection.read_tls(&mut cipher)?;
            let state = self
                .connection
                .process_new_packets()
                .map_err(|error| TlsRefusal::of(&error).into_error(ErrorKind::InvalidData))?;
            self.has_peer_closed = state.peer_has_closed();
            each(&mut self.connection.reader(), state.plaintext_bytes_to_read())?;
        }
        Ok(())
    }

    /// The error of a connection whose bytes have ended: of [`ErrorKind::UnexpectedEof`], with a
    /// [`TlsRefusal`] unless the other side has announced it.
    pub fn end(&self) -> io::Error {
        let is_client = matches!(self.connection, Connection::Client(_));
        match (self.has_peer_closed, self.is_open()) {
            (false, true) => TlsRefusal::TRUNCATED.into_error(ErrorKind::UnexpectedEof),
            // The accepting side says nothing: any scanner of ports does so.
            (false, false) if is_client => TlsRefusal::CLOSED.into_error(ErrorKind::UnexpectedEof),
            _ => ErrorKind::UnexpectedEof.into(),
        }
    }

    /// Encrypts as much of `slices` as there is room for, at most 64 KiB; returns how much. Until
    /// the handshake is complete they wait for its end.
    ///
    /// # Errors
    /// `WouldBlock` if there is no room.
    pub fn encrypt(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let taken = self.connection.writer().write_vectored(slices)?;
        let is_refused = taken == 0 && slices.iter().any(|slice| !slice.is_empty());
        if is_refused { Err(ErrorKind::WouldBlock.into()) } else { Ok(taken) }
    }

    /// Writes encrypted bytes to `out` as far as it takes them; whether none are left.
    ///
    /// # Errors
    /// Errors of `out`, except `WouldBlock` and `Interrupted`.
    pub fn write_to(&mut self, out: &mut dyn Write) -> io::Result<bool> {
        while self.connection.wants_write() {
            match self.connection.write_tls(out) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Adds the close notification, without which the other side has to take the stream for
    /// truncated. Once, and not behind a fatal alert.
    pub fn close(&mut self) {
        self.is_closed = true;
        self.connection.send_close_notify();
    }

    /// Whether [`close`](Self::close) was called.
    pub const fn is_closed(&self) -> bool {
        self.is_closed
    }
}
