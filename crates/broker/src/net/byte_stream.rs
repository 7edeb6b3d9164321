//! What carries a connection's bytes: a socket, which may be encrypted. Nothing here waits.

use lanecast_os::raw_io;
use rustls::{ServerConfig, ServerConnection};
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

/// What a record, of which the beginning may have come before, takes at most.
const RECORD_BYTES_MAX: usize = 32 << 10;
/// The first byte of whoever speaks TLS. As that of a frame it would mean one of 352 MiB.
const HANDSHAKE: u8 = 0x16;

/// A socket, and what encrypts it.
#[derive(Debug)]
pub(crate) struct ByteStream {
    stream: TcpStream,
    secret: Option<Box<TlsState>>,
}

#[derive(Debug)]
struct TlsState {
    session: ServerConnection,
    start: Start,
    /// The other has said that nothing more comes.
    is_over: bool,
}

/// What the first byte tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    Awaited,
    Encrypted,
    Plain,
}

impl ByteStream {
    /// A socket, encrypted if that is configured.
    pub(crate) fn new(stream: TcpStream, config: Option<&Arc<ServerConfig>>) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        let session = config.map(|config| ServerConnection::new(Arc::clone(config)));
        let session = session.transpose().map_err(io::Error::other)?;
        let secret =
            session.map(|session| TlsState { session, start: Start::Awaited, is_over: false });
        Ok(Self { stream, secret: secret.map(Box::new) })
    }

    /// Whether hands have been shaken, where that is needed.
    pub(crate) fn is_open(&self) -> bool {
        self.secret.as_ref().is_none_or(|secret| !secret.session.is_handshaking())
    }

    /// Whether something that it took still waits to be sent.
    pub(crate) fn has_unsent(&self) -> bool {
        self.secret.as_ref().is_some_and(|secret| secret.session.wants_write())
    }

    /// Reads into the beginning of `buffer`: how much, and whether that is all there is for now.
    ///
    /// # Errors
    /// `WouldBlock` if nothing has come; others if it has ended, or what came makes no sense.
    #[inline]
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<(usize, bool)> {
        if let Some(secret) = &mut self.secret {
            return secret.read(&self.stream, buffer);
        }
        match raw_io::read(&self.stream, buffer)? {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            length => Ok((length, length < buffer.len())),
        }
    }

    /// Takes as much as it can; how much that is.
    ///
    /// # Errors
    /// `WouldBlock` if that is nothing; others if the connection has ended.
    #[inline]
    pub(crate) fn write(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match &mut self.secret {
            None => raw_io::write_vectored(&self.stream, slices),
            Some(secret) => secret.write(&self.stream, slices),
        }
    }

    /// Sends what it took; whether all of it is gone.
    ///
    /// # Errors
    /// If the connection has ended.
    #[inline]
    pub(crate) fn flush(&mut self) -> io::Result<bool> {
        match &mut self.secret {
            None => Ok(true),
            Some(secret) => secret.flush(&self.stream),
        }
    }

    /// Says that nothing more comes; to one that did not encrypt, in `plain` words. It is sent as
    /// far as it can be at once: the connection ends in any case.
    pub(crate) fn end(&mut self, plain: impl FnOnce() -> Vec<u8>) {
        let Some(secret) = &mut self.secret else { return };
        if secret.start == Start::Plain {
            drop(raw_io::write(&self.stream, &plain()));
        } else {
            secret.session.send_close_notify();
            drop(secret.flush(&self.stream));
        }
    }
}

impl AsFd for ByteStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl TlsState {
    /// What came is read into the end of `buffer`, and what it says is put into the beginning:
    /// that is never longer, but for the end of a record that began before.
    fn read(&mut self, stream: &TcpStream, buffer: &mut [u8]) -> io::Result<(usize, bool)> {
        if self.is_over {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let half = (buffer.len() + RECORD_BYTES_MAX) / 2;
        let (plain, came) = buffer.split_at_mut(half);
        let count = raw_io::read(stream, came)?;
        let mut rest = &came[..count];
        let Some(first) = rest.first() else { return Err(ErrorKind::UnexpectedEof.into()) };
        if self.start == Start::Awaited {
            self.start = if *first == HANDSHAKE { Start::Encrypted } else { Start::Plain };
        }
        if self.start == Start::Plain {
            return Err(ErrorKind::InvalidData.into());
        }
        let mut length = 0;
        while !rest.is_empty() && !self.is_over {
            length += self.decrypt(&mut rest, &mut plain[length..])?;
        }
        // What is left after this, the poller sees to.
        self.flush(stream)?;
        Ok((length, count < came.len() && !self.is_over))
    }

    /// Takes some of `rest`; how much it says.
    fn decrypt(&mut self, rest: &mut &[u8], plain: &mut [u8]) -> io::Result<usize> {
        self.session.read_tls(rest)?;
        let state = self
            .session
            .process_new_packets()
            .map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
        self.is_over = state.peer_has_closed();
        let length = state.plaintext_bytes_to_read();
        let plain = plain.get_mut(..length).ok_or(ErrorKind::InvalidData)?;
        self.session.reader().read_exact(plain)?;
        Ok(length)
    }

    fn write(&mut self, stream: &TcpStream, slices: &[IoSlice<'_>]) -> io::Result<usize> {
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

/// A socket to write to.
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
