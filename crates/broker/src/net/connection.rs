//! A client's connection.

use crate::Nanos;
use crate::client::ClientId;
use crate::command::acknowledgement as reply;
use crate::engine::Engine;
use crate::net::byte_stream::ByteStream;
use crate::net::poller::Interest;
use crate::net::source::Source;
use crate::net::websocket::{CloseReason, NO_TLS, WebSocket};
use lanecast_wire::command::{LENGTH_BYTES, frame_bytes};
use std::io::{self, ErrorKind, IoSlice};

/// Reads at a time from one client, so that nobody keeps the others waiting.
const READS_MAX: usize = 4;
/// What is kept for the next frame that comes in parts; a longer one's memory is given back.
const PARTIAL_KEPT: usize = 1 << 20;

/// What carries bytes, and how commands are told apart on it.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) channel: ByteStream,
    framing: FrameDecoder,
    pub(crate) source: Source,
    /// Whether it has not come in yet.
    pub(crate) is_pending: bool,
    /// How much of a frame that has begun is here, and since when.
    pub(crate) partial: usize,
    pub(crate) partial_since: Nanos,
    /// What the poller waits for.
    pub(crate) interest: Interest,
}

/// Frames with their lengths, or messages of a WebSocket.
#[derive(Debug)]
enum FrameDecoder {
    /// The beginning of a frame, and whether one before it has ended since that was last asked.
    Lengths {
        partial: Vec<u8>,
        has_ended: bool,
    },
    WebSocket(Box<WebSocket>),
}

impl Connection {
    /// A connection that carries frames, or the messages of a WebSocket if one is given.
    pub(crate) fn new(channel: ByteStream, websocket: Option<WebSocket>, source: Source) -> Self {
        let framing = match websocket {
            Some(websocket) => FrameDecoder::WebSocket(Box::new(websocket)),
            None => FrameDecoder::Lengths { partial: Vec::new(), has_ended: false },
        };
        Self {
            channel,
            framing,
            source,
            is_pending: false,
            partial: 0,
            partial_since: 0,
            interest: Interest::Read,
        }
    }

    /// Whether commands can come: hands have been shaken.
    pub(crate) fn is_open(&self) -> bool {
        let is_open = match &self.framing {
            FrameDecoder::Lengths { .. } => true,
            FrameDecoder::WebSocket(socket) => socket.is_open(),
        };
        is_open && self.channel.is_open()
    }

    pub(crate) fn is_websocket(&self) -> bool {
        matches!(self.framing, FrameDecoder::WebSocket(_))
    }

    /// Whether there is something to be sent that is in no outbox.
    pub(crate) fn has_unsent(&self) -> bool {
        let has_unsent = match &self.framing {
            FrameDecoder::Lengths { .. } => false,
            FrameDecoder::WebSocket(socket) => !socket.unsent().is_empty(),
        };
        has_unsent || self.channel.has_unsent()
    }

    /// Whether answers wait, in no outbox, and so many that nothing more is to be read before they
    /// have left.
    pub(crate) fn has_unread_answers(&self) -> bool {
        match &self.framing {
            FrameDecoder::Lengths { .. } => false,
            FrameDecoder::WebSocket(socket) => socket.has_unread_answers(),
        }
    }

    /// From now on a message of a WebSocket may be so long; of others each read is told.
    pub(crate) fn set_limit(&mut self, frame_bytes_max: usize) {
        if let FrameDecoder::WebSocket(socket) = &mut self.framing {
            socket.set_limit(frame_bytes_max);
        }
    }

    /// Looks what is here of a frame that has begun; how much it was before.
    pub(crate) fn note_partial(&mut self, now: Nanos) -> usize {
        let (partial, has_ended) = match &mut self.framing {
            FrameDecoder::Lengths { partial, has_ended } => {
                (partial.len(), std::mem::take(has_ended))
            }
            FrameDecoder::WebSocket(socket) => socket.partial(),
        };
        if has_ended || self.partial == 0 {
            self.partial_since = now;
        }
        std::mem::replace(&mut self.partial, partial)
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
            let (length, is_all) = match self.channel.read(buffer) {
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let goes_on = self.framing.take(&buffer[..length], limit, &mut each)?;
            if !goes_on || is_all {
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

    /// Sends what waits for a client, this is whose; whether all of it is gone.
    ///
    /// # Errors
    /// If the connection has ended.
    pub(crate) fn send(&mut self, hub: &mut Engine, id: ClientId) -> io::Result<bool> {
        let Self { channel, framing, .. } = self;
        let is_empty = match framing {
            FrameDecoder::Lengths { .. } => hub.send(id, |slices| channel.write(slices))?,
            FrameDecoder::WebSocket(socket) => {
                let is_empty = hub.send(id, |slices| {
                    let taken = put(socket, slices)?;
                    flush(channel, socket).map(|_| taken)
                })?;
                flush(channel, socket)? && is_empty
            }
        };
        Ok(channel.flush()? && is_empty)
    }

    /// Tells a client that its connection ends, as far as that can be done at once.
    pub(crate) fn say_goodbye(&mut self, why: CloseReason) {
        let Self { channel, framing, .. } = self;
        match framing {
            FrameDecoder::Lengths { .. } => channel.end(reply::no_tls),
            FrameDecoder::WebSocket(socket) => {
                socket.close(why);
                // It ends in any case.
                drop(flush(channel, socket));
                channel.end(|| NO_TLS.as_bytes().to_vec());
            }
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

/// Sends messages; whether all are gone from here.
fn flush(channel: &mut ByteStream, socket: &mut WebSocket) -> io::Result<bool> {
    while !socket.unsent().is_empty() {
        match channel.write(&[IoSlice::new(socket.unsent())]) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(count) => socket.sent(count),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

impl FrameDecoder {
    /// Takes in what came; whether more is wanted.
    fn take(
        &mut self,
        fresh: &[u8],
        limit: usize,
        each: &mut impl FnMut(&[u8]) -> bool,
    ) -> io::Result<bool> {
        let (partial, has_ended) = match self {
            Self::WebSocket(socket) => return socket.take(fresh, each),
            Self::Lengths { partial, has_ended } => (partial, has_ended),
        };
        let is_fresh = partial.is_empty();
        if !is_fresh {
            partial.extend_from_slice(fresh);
        }
        let bytes = if is_fresh { fresh } else { &partial[..] };
        let (used, goes_on) = frames(bytes, limit, each)?;
        *has_ended |= used > 0;
        if is_fresh {
            partial.extend_from_slice(&fresh[used..]);
        } else {
            partial.drain(..used);
        }
        if partial.len() <= PARTIAL_KEPT {
            partial.shrink_to(PARTIAL_KEPT);
        }
        Ok(goes_on)
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
