//! Byte stream of a connection: plain TCP or TLS. No call blocks.

use crate::session::{TLS_REQUIRED, TlsSession};
use lanecast_os::raw_io;
use std::io::{self, ErrorKind, IoSlice, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

/// A non-blocking socket, and its TLS session if it is encrypted.
///
/// Dropping it sends the close notification of TLS, as far as the socket takes it at once.
#[derive(Debug)]
pub struct ByteStream {
    /// Shared with those that wait for it: the descriptor stays valid while they do.
    socket: Arc<TcpStream>,
    tls: Option<Box<TlsSession>>,
}

impl ByteStream {
    /// A stream that is not encrypted.
    pub fn plain(socket: TcpStream) -> Self {
        Self { socket: Arc::new(socket), tls: None }
    }

    /// A stream under TLS; the handshake goes on with each call.
    pub fn encrypted(socket: TcpStream, session: TlsSession) -> Self {
        Self { socket: Arc::new(socket), tls: Some(Box::new(session)) }
    }

    /// The socket, for waiting and for its state; reading it would break the stream.
    pub const fn socket(&self) -> &Arc<TcpStream> {
        &self.socket
    }

    /// Whether the TLS handshake is complete, or none is needed.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.tls.as_ref().is_none_or(|tls| tls.is_open())
    }

    /// Whether accepted bytes wait in the TLS session.
    #[inline]
    pub fn has_unsent(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.has_unsent())
    }

    /// Reads into the beginning of `buffer`, which has at least
    /// [`READ_BYTES_MIN`](crate::READ_BYTES_MIN) bytes under TLS. Returns the length, 0 if the
    /// bytes were TLS's own, and whether the socket is empty.
    ///
    /// # Errors
    /// `WouldBlock` if nothing has arrived. `UnexpectedEof` if the connection ended, with a
    /// [`TlsRefusal`](crate::TlsRefusal) if TLS did not announce it. Others if it broke the
    /// protocol.
    #[inline]
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<(usize, bool)> {
        if let Some(tls) = &mut self.tls {
            return read_encrypted(tls, &self.socket, buffer);
        }
        let length = some(raw_io::read(&self.socket, buffer)?)?;
        Ok((length, length < buffer.len()))
    }

    /// Whether the socket's bytes are the stream's own, without TLS.
    #[inline]
    pub const fn is_plain(&self) -> bool {
        self.tls.is_none()
    }

    /// Same as [`read`](Self::read) of a [plain](Self::is_plain) stream, but the bytes stay in the
    /// socket until they are [discarded](Self::discard). Returns the length.
    ///
    /// # Errors
    /// As [`read`](Self::read); `InvalidInput` under TLS.
    #[inline]
    pub fn peek(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.expect_plain()?;
        some(raw_io::peek(&self.socket, buffer)?)
    }

    /// Takes up to `length` bytes off the socket of a plain stream, which go nowhere; returns their
    /// number.
    ///
    /// # Errors
    /// As [`peek`](Self::peek).
    #[inline]
    pub fn discard(&mut self, length: usize) -> io::Result<usize> {
        self.expect_plain()?;
        some(raw_io::discard(&self.socket, length)?)
    }

    fn expect_plain(&self) -> io::Result<()> {
        if self.is_plain() { Ok(()) } else { Err(ErrorKind::InvalidInput.into()) }
    }

    /// Writes as much as the socket, or TLS, accepts; returns how much.
    ///
    /// # Errors
    /// `WouldBlock` if it accepts nothing; others if the connection ended.
    #[inline]
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.tls {
            None => raw_io::write(&self.socket, bytes),
            Some(tls) => write_encrypted(tls, &self.socket, &[IoSlice::new(bytes)]),
        }
    }

    /// The same of several pieces.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    #[inline]
    pub fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match &mut self.tls {
            None => raw_io::write_vectored(&self.socket, slices),
            Some(tls) => write_encrypted(tls, &self.socket, slices),
        }
    }

    /// Sends accepted bytes; whether none are left.
    ///
    /// # Errors
    /// If the connection ended.
    #[inline]
    pub fn flush(&mut self) -> io::Result<bool> {
        match &mut self.tls {
            None => Ok(true),
            Some(tls) => tls.write_to(&mut Socket(&self.socket)),
        }
    }

    /// Sends the close notification of TLS, or `plain` to a client that did not encrypt, as far as
    /// the socket accepts it at once. The connection ends in any case.
    pub fn close(&mut self, plain: impl FnOnce() -> Vec<u8>) {
        let Some(tls) = self.tls.as_mut().filter(|tls| !tls.is_closed()) else { return };
        tls.close();
        if tls.is_plain() {
            // In plain text, since this client cannot read a TLS alert.
            drop(raw_io::write(&self.socket, &plain()));
        } else {
            drop(tls.write_to(&mut Socket(&self.socket)));
        }
    }
}

impl AsFd for ByteStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for ByteStream {
    fn drop(&mut self) {
        self.close(|| TLS_REQUIRED.to_vec());
    }
}

/// No bytes are the end of a connection.
#[inline]
fn some(length: usize) -> io::Result<usize> {
    if length > 0 { Ok(length) } else { Err(ErrorKind::UnexpectedEof.into()) }
}

/// Reads encrypted bytes into the end of `buffer`, and decrypts them into its beginning.
fn read_encrypted(
    tls: &mut TlsSession,
    socket: &TcpStream,
    buffer: &mut [u8],
) -> io::Result<(usize, bool)> {
    if tls.has_peer_closed() {
        return Err(tls.end());
    }
    let room = TlsSession::cipher_room(buffer.len());
    // A read of no bytes would look like the end.
    if room == 0 {
        return Err(ErrorKind::InvalidInput.into());
    }
    let (plain, cipher) = buffer.split_at_mut(buffer.len() - room);
    let count = raw_io::read(socket, cipher)?;
    if count == 0 {
        return Err(tls.end());
    }
    let decrypted = tls.decrypt(&cipher[..count], plain);
    if !tls.is_plain() {
        // An answer of the handshake, or the alert that says why it fails; the poller reports when
        // the rest of them can be sent. If the peer has gone it may have left bytes to read.
        drop(tls.write_to(&mut Socket(socket)));
    }
    let length = decrypted?;
    Ok((length, count < room && !tls.has_peer_closed()))
}

fn write_encrypted(
    tls: &mut TlsSession,
    socket: &TcpStream,
    slices: &[IoSlice<'_>],
) -> io::Result<usize> {
    // Old bytes first: otherwise the session's buffer would grow with each write.
    if !tls.write_to(&mut Socket(socket))? {
        return Err(ErrorKind::WouldBlock.into());
    }
    let taken = tls.encrypt(slices)?;
    tls.write_to(&mut Socket(socket))?;
    Ok(taken)
}

/// Lets TLS write to the shared socket.
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
