//! A client's connection.

use crate::Nanos;
use crate::outbox::Outbox;
use crate::poller::Interest;
use crate::sheet::Sheets;
use crate::websocket::WebSocket;
use lanecast_os::direct;
use lanecast_wire::command::{LENGTH_BYTES, frame_bytes};
use std::io::{self, ErrorKind, IoSlice};
use std::net::TcpStream;

/// Reads at a time from one client, so that nobody keeps the others waiting.
const READS_MAX: usize = 4;

/// A socket, and how commands are told apart on it.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) stream: TcpStream,
    framing: Framing,
    /// When it came.
    pub(crate) since: Nanos,
    /// What the poller waits for.
    pub(crate) interest: Interest,
}

/// Frames with their lengths, or messages of a WebSocket.
#[derive(Debug)]
enum Framing {
    /// The beginning of a frame.
    Lengths(Vec<u8>),
    WebSocket(Box<WebSocket>),
}

impl Connection {
    /// A connection that carries frames, or the messages of a WebSocket if one is given.
    pub(crate) fn new(
        stream: TcpStream,
        websocket: Option<WebSocket>,
        since: Nanos,
    ) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        let framing = match websocket {
            Some(websocket) => Framing::WebSocket(Box::new(websocket)),
            None => Framing::Lengths(Vec::new()),
        };
        Ok(Self { stream, framing, since, interest: Interest::Read })
    }

    /// Whether commands can come: hands have been shaken.
    pub(crate) fn is_open(&self) -> bool {
        match &self.framing {
            Framing::Lengths(_) => true,
            Framing::WebSocket(socket) => socket.is_open(),
        }
    }

    /// Whether there is something to be sent that is in no outbox.
    pub(crate) fn has_unsent(&self) -> bool {
        match &self.framing {
            Framing::Lengths(_) => false,
            Framing::WebSocket(socket) => !socket.unsent().is_empty(),
        }
    }

    /// Hands over the payload of each frame that has come whole, until `each` says that this is
    /// enough: the rest waits for [`resume`](Self::resume).
    ///
    /// # Errors
    /// If the connection has ended, or a frame is longer than `limit`.
    pub(crate) fn read(
        &mut self,
        buffer: &mut [u8],
        limit: usize,
        mut each: impl FnMut(&[u8]) -> bool,
    ) -> io::Result<()> {
        for _ in 0..READS_MAX {
            let length = match direct::read(&self.stream, buffer) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let goes_on = self.framing.take(&buffer[..length], limit, &mut each)?;
            if !goes_on || length < buffer.len() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Hands over what has come already.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub(crate) fn resume(
        &mut self,
        limit: usize,
        mut each: impl FnMut(&[u8]) -> bool,
    ) -> io::Result<()> {
        self.framing.take(&[], limit, &mut each).map(drop)
    }

    /// Sends what waits; whether all of it is gone.
    ///
    /// # Errors
    /// If the connection has ended.
    pub(crate) fn send(&mut self, outbox: &mut Outbox, sheets: &Sheets) -> io::Result<bool> {
        let stream = &self.stream;
        let Framing::WebSocket(socket) = &mut self.framing else {
            return outbox.send(sheets, |slices| direct::write_vectored(stream, slices));
        };
        let is_empty = outbox.send(sheets, |slices| {
            let taken = put(socket, slices)?;
            flush(stream, socket).map(|_| taken)
        })?;
        Ok(flush(stream, socket)? && is_empty)
    }

    /// Sends what a client is told whose connection ends, as far as it can be at once.
    pub(crate) fn say_goodbye(&mut self) {
        if let Framing::WebSocket(socket) = &mut self.framing {
            // It ends in any case.
            drop(flush(&self.stream, socket));
        }
    }
}

/// Makes messages of frames, as many as may be ready at a time; how many bytes it took.
fn put(socket: &mut WebSocket, slices: &[IoSlice<'_>]) -> io::Result<usize> {
    let mut taken = 0;
    for slice in slices {
        match socket.put(slice) {
            Ok(count) if count == slice.len() => taken += count,
            Ok(count) => return Ok(taken + count),
            Err(_) if taken > 0 => return Ok(taken),
            Err(error) => return Err(error),
        }
    }
    Ok(taken)
}

/// Sends messages; whether all are gone.
fn flush(stream: &TcpStream, socket: &mut WebSocket) -> io::Result<bool> {
    while !socket.unsent().is_empty() {
        match direct::write(stream, socket.unsent()) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(count) => socket.sent(count),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

impl Framing {
    /// Takes in what came; whether more is wanted.
    fn take(
        &mut self,
        fresh: &[u8],
        limit: usize,
        each: &mut impl FnMut(&[u8]) -> bool,
    ) -> io::Result<bool> {
        let partial = match self {
            Self::WebSocket(socket) => return socket.take(fresh, each),
            Self::Lengths(partial) => partial,
        };
        if partial.is_empty() {
            let (used, goes_on) = frames(fresh, limit, each)?;
            partial.extend_from_slice(&fresh[used..]);
            Ok(goes_on)
        } else {
            partial.extend_from_slice(fresh);
            let (used, goes_on) = frames(partial, limit, each)?;
            partial.drain(..used);
            Ok(goes_on)
        }
    }
}

/// Hands over whole frames; how many bytes they took, and whether more are wanted.
fn frames(
    bytes: &[u8],
    limit: usize,
    each: &mut impl FnMut(&[u8]) -> bool,
) -> io::Result<(usize, bool)> {
    let (mut used, mut goes_on) = (0, true);
    while goes_on
        && let Some(total) =
            frame_bytes(&bytes[used..], limit).map_err(|_| ErrorKind::InvalidData)?
    {
        // One without content is a sign of life.
        if total > LENGTH_BYTES {
            goes_on = each(&bytes[used + LENGTH_BYTES..used + total]);
        }
        used += total;
    }
    Ok((used, goes_on))
}
