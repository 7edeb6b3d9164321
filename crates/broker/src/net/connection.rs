//! A client's connection: splits the bytes of a stream into frames, and writes the bytes of a send
//! queue to it. The server owns one for each client.

use crate::net::byte_stream::ByteStream;
use crate::net::poller::Interest;
use crate::net::rejection;
use crate::net::source::Source;
use crate::net::websocket::{CloseReason, TLS_REQUIRED, WebSocket};
use crate::time::Nanos;
use lanecast_wire::command::{LENGTH_BYTES, frame_bytes};
use std::io::{self, ErrorKind, IoSlice};

/// Reads from one client before others get their turn.
const READS_MAX: usize = 4;
/// The most memory kept for the next incomplete frame.
const PARTIAL_KEPT_BYTES: usize = 1 << 20;

/// A connection and its state.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) stream: ByteStream,
    decoder: FrameDecoder,
    pub(crate) source: Source,
    /// Whether TLS, WebSocket or logon are incomplete.
    pub(crate) is_pending: bool,
    /// Bytes of the incomplete frame, and when it began.
    pub(crate) partial_bytes: usize,
    pub(crate) partial_since: Nanos,
    /// Events registered with the poller.
    pub(crate) interest: Interest,
}

/// Splits incoming bytes into frames.
#[derive(Debug)]
enum FrameDecoder {
    /// Frames with a length prefix: the incomplete frame, and whether another one was completed
    /// since [`Connection::update_partial`].
    LengthPrefixed {
        partial: Vec<u8>,
        has_completed: bool,
    },
    WebSocket(Box<WebSocket>),
}

impl Connection {
    /// A connection for length-prefixed frames, or for a WebSocket if one is given.
    pub(crate) fn new(stream: ByteStream, websocket: Option<WebSocket>, source: Source) -> Self {
        let decoder = match websocket {
            Some(websocket) => FrameDecoder::WebSocket(Box::new(websocket)),
            None => FrameDecoder::LengthPrefixed { partial: Vec::new(), has_completed: false },
        };
        Self {
            stream,
            decoder,
            source,
            is_pending: false,
            partial_bytes: 0,
            partial_since: 0,
            interest: Interest::Read,
        }
    }

    /// Whether the handshakes of TLS and WebSocket are complete.
    pub(crate) fn is_open(&self) -> bool {
        let is_open = match &self.decoder {
            FrameDecoder::LengthPrefixed { .. } => true,
            FrameDecoder::WebSocket(socket) => socket.is_open(),
        };
        is_open && self.stream.is_open()
    }

    pub(crate) fn is_websocket(&self) -> bool {
        matches!(self.decoder, FrameDecoder::WebSocket(_))
    }

    /// Whether bytes wait in the WebSocket or TLS layer, behind the send queue.
    pub(crate) fn has_unsent(&self) -> bool {
        let has_unsent = match &self.decoder {
            FrameDecoder::LengthPrefixed { .. } => false,
            FrameDecoder::WebSocket(socket) => !socket.unsent().is_empty(),
        };
        has_unsent || self.stream.has_unsent()
    }

    /// Whether the client leaves too many pongs unread.
    pub(crate) fn has_unread_pongs(&self) -> bool {
        match &self.decoder {
            FrameDecoder::LengthPrefixed { .. } => false,
            FrameDecoder::WebSocket(socket) => socket.has_unread_pongs(),
        }
    }

    /// Sets the longest WebSocket message. Length-prefixed frames have the limit of each read.
    pub(crate) fn set_frame_limit(&mut self, frame_bytes_max: usize) {
        if let FrameDecoder::WebSocket(socket) = &mut self.decoder {
            socket.set_frame_limit(frame_bytes_max);
        }
    }

    /// Updates the size and age of the incomplete frame; returns its previous size.
    pub(crate) fn update_partial(&mut self, now: Nanos) -> usize {
        let (partial, has_completed) = match &mut self.decoder {
            FrameDecoder::LengthPrefixed { partial, has_completed } => {
                (partial.len(), std::mem::take(has_completed))
            }
            FrameDecoder::WebSocket(socket) => socket.take_partial(),
        };
        // After a complete frame the rest belongs to a new one, whose age starts now.
        if has_completed || self.partial_bytes == 0 {
            self.partial_since = now;
        }
        std::mem::replace(&mut self.partial_bytes, partial)
    }

    /// Reads, and passes the payload of each complete frame to `on_frame` until that returns false;
    /// later frames wait for [`resume`](Self::resume).
    ///
    /// # Errors
    /// If the connection ended, or a frame is longer than `limit`.
    pub(crate) fn read(
        &mut self,
        buffer: &mut [u8],
        limit: usize,
        mut on_frame: impl FnMut(&[u8]) -> bool,
    ) -> io::Result<()> {
        for _ in 0..READS_MAX {
            let (length, is_drained) = match self.stream.read(buffer) {
                Ok(read) => read,
                // The socket is empty: the poller reports the next bytes.
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let continues = self.decoder.decode(&buffer[..length], limit, &mut on_frame)?;
            // A short read emptied the socket: another read would only say `WouldBlock`.
            if !continues || is_drained {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Passes on frames that were read before.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub(crate) fn resume(
        &mut self,
        limit: usize,
        mut on_frame: impl FnMut(&[u8]) -> bool,
    ) -> io::Result<()> {
        self.decoder.decode(&[], limit, &mut on_frame).map(drop)
    }

    /// Writes slices of encoded frames; returns how many bytes were accepted.
    ///
    /// # Errors
    /// `WouldBlock` if none can be accepted now; others if the connection ended.
    #[inline]
    pub(crate) fn write(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match &mut self.decoder {
            FrameDecoder::LengthPrefixed { .. } => self.stream.write(slices),
            FrameDecoder::WebSocket(socket) => {
                // Accepted means encoded: the WebSocket keeps them until the socket takes them.
                let accepted = put_frames(socket, slices)?;
                send_messages(&mut self.stream, socket).map(|_| accepted)
            }
        }
    }

    /// Flushes the WebSocket and TLS layers; whether both are empty.
    ///
    /// # Errors
    /// If the connection ended.
    #[inline]
    pub(crate) fn flush(&mut self) -> io::Result<bool> {
        let is_empty = match &mut self.decoder {
            FrameDecoder::LengthPrefixed { .. } => true,
            FrameDecoder::WebSocket(socket) => send_messages(&mut self.stream, socket)?,
        };
        Ok(self.stream.flush()? && is_empty)
    }

    /// Tells the client why the connection ends, as far as the socket accepts it at once.
    pub(crate) fn close(&mut self, reason: CloseReason) {
        match &mut self.decoder {
            FrameDecoder::LengthPrefixed { .. } => self.stream.close(rejection::tls_required),
            FrameDecoder::WebSocket(socket) => {
                socket.close(reason);
                // The connection ends whether or not this succeeds.
                drop(send_messages(&mut self.stream, socket));
                self.stream.close(|| TLS_REQUIRED.as_bytes().to_vec());
            }
        }
    }
}

/// Converts frames to WebSocket messages until its buffer is full; returns the bytes converted.
fn put_frames(socket: &mut WebSocket, slices: &[IoSlice<'_>]) -> io::Result<usize> {
    let mut accepted = 0;
    for slice in slices {
        match socket.put(slice) {
            Ok(count) if count == slice.len() => accepted += count,
            Ok(count) => return Ok(accepted + count),
            // The bytes taken before the error must be reported, or they would be sent twice.
            Err(_) if accepted > 0 => return Ok(accepted),
            Err(error) => return Err(error),
        }
    }
    Ok(accepted)
}

/// Sends WebSocket messages; whether all are sent.
fn send_messages(stream: &mut ByteStream, socket: &mut WebSocket) -> io::Result<bool> {
    while !socket.unsent().is_empty() {
        match stream.write(&[IoSlice::new(socket.unsent())]) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(count) => socket.advance(count),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

impl FrameDecoder {
    /// Decodes new bytes; whether `on_frame` accepts more frames.
    fn decode(
        &mut self,
        fresh: &[u8],
        limit: usize,
        on_frame: &mut impl FnMut(&[u8]) -> bool,
    ) -> io::Result<bool> {
        let (partial, has_completed) = match self {
            Self::WebSocket(socket) => return socket.receive(fresh, on_frame),
            Self::LengthPrefixed { partial, has_completed } => (partial, has_completed),
        };
        // Usually nothing is left from the last read, and frames are passed on without a copy.
        let is_fresh = partial.is_empty();
        if !is_fresh {
            partial.extend_from_slice(fresh);
        }
        let bytes = if is_fresh { fresh } else { &partial[..] };
        let (used, continues) = pass_frames(bytes, limit, on_frame)?;
        *has_completed |= used > 0;
        if is_fresh {
            partial.extend_from_slice(&fresh[used..]);
        } else {
            partial.drain(..used);
        }
        // One long frame is no reason to keep its memory.
        if partial.len() <= PARTIAL_KEPT_BYTES {
            partial.shrink_to(PARTIAL_KEPT_BYTES);
        }
        Ok(continues)
    }
}

/// Passes on complete frames; returns the bytes they took, and whether more are accepted.
fn pass_frames(
    bytes: &[u8],
    limit: usize,
    on_frame: &mut impl FnMut(&[u8]) -> bool,
) -> io::Result<(usize, bool)> {
    let (mut used, mut continues) = (0, true);
    while continues
        && let Some(total) =
            frame_bytes(&bytes[used..], limit).map_err(|_| ErrorKind::InvalidData)?
    {
        // An empty frame is a heartbeat.
        if total > LENGTH_BYTES {
            continues = on_frame(&bytes[used + LENGTH_BYTES..used + total]);
        }
        used += total;
    }
    Ok((used, continues))
}
