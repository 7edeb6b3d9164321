//! Byte stream of a connection: plain TCP or TLS. No call blocks.

use lanecast_os::raw_io;
use rustls::{ServerConfig as TlsConfig, ServerConnection};
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

/// The longest TLS record, of which the beginning may have been read before.
const RECORD_BYTES_MAX: usize = 32 << 10;
/// The first byte of a TLS handshake. As the first byte of a frame it would announce 352 MiB, so
/// the two cannot be confused.
const HANDSHAKE: u8 = 0x16;

/// A socket, and its TLS session if TLS is configured.
#[derive(Debug)]
pub(crate) struct ByteStream {
    stream: TcpStream,
    tls: Option<Box<TlsState>>,
}

#[derive(Debug)]
struct TlsState {
    session: ServerConnection,
    start: Start,
    /// The peer closed its side.
    has_peer_closed: bool,
}

/// Whether the client speaks TLS, known from its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    Unknown,
    Encrypted,
    Plain,
}

impl ByteStream {
    /// Wraps a socket; with `config` it requires TLS.
    pub(crate) fn new(stream: TcpStream, config: Option<&Arc<TlsConfig>>) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        // The server gathers messages itself; Nagle's algorithm would only delay them.
        stream.set_nodelay(true)?;
        let session = config.map(|config| ServerConnection::new(Arc::clone(config)));
        let session = session.transpose().map_err(io::Error::other)?;
        let tls = session.map(|session| TlsState {
            session,
            start: Start::Unknown,
            has_peer_closed: false,
        });
        Ok(Self { stream, tls: tls.map(Box::new) })
    }

    /// Whether the TLS handshake is complete, or none is needed.
    pub(crate) fn is_open(&self) -> bool {
        self.tls.as_ref().is_none_or(|tls| !tls.session.is_handshaking())
    }

    /// Whether accepted bytes wait in the TLS session.
    pub(crate) fn has_unsent(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.session.wants_write())
    }

    /// Reads into the beginning of `buffer`; returns the length, and whether the socket is empty.
    ///
    /// # Errors
    /// `WouldBlock` if nothing has arrived; others if the connection ended or broke the protocol.
    #[inline]
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<(usize, bool)> {
        if let Some(tls) = &mut self.tls {
            return tls.read(&self.stream, buffer);
        }
        match raw_io::read(&self.stream, buffer)? {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            length => Ok((length, length < buffer.len())),
        }
    }

    /// Writes as much as the socket accepts; returns how much.
    ///
    /// # Errors
    /// `WouldBlock` if it accepts nothing; others if the connection ended.
    #[inline]
    pub(crate) fn write(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match &mut self.tls {
            None => raw_io::write_vectored(&self.stream, slices),
            Some(tls) => tls.write(&self.stream, slices),
        }
    }

    /// Sends accepted bytes; whether none are left.
    ///
    /// # Errors
    /// If the connection ended.
    #[inline]
    pub(crate) fn flush(&mut self) -> io::Result<bool> {
        match &mut self.tls {
            None => Ok(true),
            Some(tls) => tls.flush(&self.stream),
        }
    }

    /// Sends the close notification of TLS, or `plain` to a client that did not encrypt, as far as
    /// the socket accepts it at once. The connection ends in any case.
    pub(crate) fn close(&mut self, plain: impl FnOnce() -> Vec<u8>) {
        let Some(tls) = &mut self.tls else { return };
        if tls.start == Start::Plain {
            // In plain text, since this client cannot read a TLS alert.
            drop(raw_io::write(&self.stream, &plain()));
        } else {
            // TLS requires the notification: without it the peer must suspect a truncated stream.
            tls.session.send_close_notify();
            drop(tls.flush(&self.stream));
        }
    }
}

impl AsFd for ByteStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl TlsState {
    /// Reads ciphertext into the end of `buffer` and decrypts it into the beginning. Plaintext is
    /// never longer than ciphertext, except by the end of a record that began in the last read.
    fn read(&mut self, stream: &TcpStream, buffer: &mut [u8]) -> io::Result<(usize, bool)> {
        if self.has_peer_closed {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        // One buffer for both: the plaintext part is larger by the longest record.
        let half = (buffer.len() + RECORD_BYTES_MAX) / 2;
        let (plain, cipher) = buffer.split_at_mut(half);
        let count = raw_io::read(stream, cipher)?;
        let mut rest = &cipher[..count];
        let Some(first) = rest.first() else { return Err(ErrorKind::UnexpectedEof.into()) };
        if self.start == Start::Unknown {
            // Decided by the first byte alone; every TLS connection begins with a handshake record.
            self.start = if *first == HANDSHAKE { Start::Encrypted } else { Start::Plain };
        }
        if self.start == Start::Plain {
            // rustls would fail, too, but its alert means nothing to a client without TLS.
            return Err(ErrorKind::InvalidData.into());
        }
        let mut length = 0;
        // Bytes after the peer's close notification are not part of the stream.
        while !rest.is_empty() && !self.has_peer_closed {
            length += self.decrypt(&mut rest, &mut plain[length..])?;
        }
        // The poller reports when the rest of a handshake reply can be sent.
        self.flush(stream)?;
        Ok((length, count < cipher.len() && !self.has_peer_closed))
    }

    /// Decrypts some of `rest`; returns the length of the plaintext.
    fn decrypt(&mut self, rest: &mut &[u8], plain: &mut [u8]) -> io::Result<usize> {
        self.session.read_tls(rest)?;
        let state = self
            .session
            .process_new_packets()
            .map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
        self.has_peer_closed = state.peer_has_closed();
        let length = state.plaintext_bytes_to_read();
        let plain = plain.get_mut(..length).ok_or(ErrorKind::InvalidData)?;
        self.session.reader().read_exact(plain)?;
        Ok(length)
    }

    fn write(&mut self, stream: &TcpStream, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        // Old ciphertext first: otherwise the session's buffer would grow with each write.
        if !self.flush(stream)? {
            return Err(ErrorKind::WouldBlock.into());
        }
        let taken = self.session.writer().write_vectored(slices)?;
        self.flush(stream)?;
        Ok(taken)
    }

    fn flush(&mut self, stream: &TcpStream) -> io::Result<bool> {
        while self.session.wants_write() {
            match self.session.write_tls(&mut Socket(stream)) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}

/// Lets rustls write to the shared socket.
struct Socket<'a>(&'a TcpStream);

impl Write for Socket<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        raw_io::write(self.0, bytes)
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        raw_io::write_vectored(self.0, slices)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
