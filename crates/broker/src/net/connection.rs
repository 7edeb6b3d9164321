//! Connections of clients: each splits the bytes of a stream into frames, and writes the bytes of a
//! send queue to it. The network owns their table, with memory and time of incomplete frames.

use crate::ids::ClientId;
use crate::net::poller::{Interest, Poller};
use crate::net::rejection;
use crate::net::source::Source;
use crate::net::websocket::{CloseReason, TLS_REQUIRED, WebSocket};
use crate::time::Nanos;
use foldhash::HashMap;
use lanecast_tls::ByteStream;
use lanecast_wire::command::{LENGTH_BYTES, frame_bytes};
use std::io::{self, ErrorKind, IoSlice};
use std::net::Shutdown;
use std::time::Duration;

/// Reads from one client before others get their turn.
const READS_MAX: usize = 4;
/// The most memory kept for the next incomplete frame.
const PARTIAL_KEPT_BYTES: usize = 1 << 20;
/// Incomplete frames are checked this often: an eighth of their timeout, within these bounds.
const CHECK_SHORTEST: Duration = Duration::from_millis(10);
const CHECK_LONGEST: Duration = Duration::from_secs(1);

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
    interest: Interest,
    /// The longest frame, which grows with the logon.
    frame_bytes_max: usize,
    /// Writing failed: what is written is discarded, what has arrived is read.
    is_broken: bool,
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
    pub(crate) fn new(
        stream: ByteStream,
        websocket: Option<WebSocket>,
        source: Source,
        frame_bytes_max: usize,
    ) -> Self {
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
            frame_bytes_max,
            is_broken: false,
        }
    }

    /// Whether nothing can be written any more.
    pub(crate) fn is_broken(&self) -> bool {
        self.is_broken
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
        has_unsent || self.stream.has_unsent() && !self.is_broken
    }

    /// Whether the client leaves too many pongs unread.
    pub(crate) fn has_unread_pongs(&self) -> bool {
        match &self.decoder {
            FrameDecoder::LengthPrefixed { .. } => false,
            FrameDecoder::WebSocket(socket) => socket.has_unread_pongs(),
        }
    }

    /// Polls for what the connection waits for.
    ///
    /// # Errors
    /// The system's error.
    pub(crate) fn set_interest(
        &mut self,
        poller: &Poller,
        id: ClientId,
        is_paused: bool,
        is_empty: bool,
    ) -> io::Result<()> {
        let interest = match (is_paused, is_empty) {
            (false, true) => Interest::Read,
            (false, false) => Interest::Both,
            (true, true) => Interest::Neither,
            (true, false) => Interest::Write,
        };
        // Costs a system call only when it changes, which is rare.
        if self.interest == interest {
            return Ok(());
        }
        self.interest = interest;
        poller.change(&self.stream, id.0.into(), interest)
    }

    /// Sets the longest frame of later reads.
    pub(crate) fn set_frame_limit(&mut self, frame_bytes_max: usize) {
        self.frame_bytes_max = frame_bytes_max;
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
    /// If the connection ended, or a frame is too long.
    pub(crate) fn read(
        &mut self,
        buffer: &mut [u8],
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
            let continues =
                self.decoder.decode(&buffer[..length], self.frame_bytes_max, &mut on_frame)?;
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
    pub(crate) fn resume(&mut self, mut on_frame: impl FnMut(&[u8]) -> bool) -> io::Result<()> {
        self.decoder.decode(&[], self.frame_bytes_max, &mut on_frame).map(drop)
    }

    /// Writes slices of encoded frames; returns how many bytes were accepted. A broken connection
    /// accepts all, and discards them.
    ///
    /// # Errors
    /// `WouldBlock` if none can be accepted now, `Interrupted`.
    #[inline]
    pub(crate) fn write(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let written = if self.is_broken { Ok(0) } else { self.write_slices(slices) };
        match written {
            // The slices are not empty, so zero bytes mean that the peer is gone.
            Ok(count) if count > 0 => Ok(count),
            Err(error) if is_temporary(&error) => Err(error),
            _ => {
                self.break_off();
                Ok(slices.iter().map(|slice| slice.len()).sum())
            }
        }
    }

    fn write_slices(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match &mut self.decoder {
            FrameDecoder::LengthPrefixed { .. } => self.stream.write_vectored(slices),
            FrameDecoder::WebSocket(socket) => {
                // Accepted means encoded: the WebSocket keeps them until the socket takes them.
                let accepted = put_frames(socket, slices)?;
                send_messages(&mut self.stream, socket).map(|_| accepted)
            }
        }
    }

    /// Flushes the WebSocket and TLS layers; whether both are empty.
    #[inline]
    pub(crate) fn flush(&mut self) -> bool {
        let flushed = if self.is_broken { Ok(false) } else { self.flush_layers() };
        match flushed {
            Ok(is_empty) if !self.is_broken => is_empty,
            Err(error) if is_temporary(&error) => false,
            _ => {
                self.break_off();
                true
            }
        }
    }

    fn flush_layers(&mut self) -> io::Result<bool> {
        let is_empty = match &mut self.decoder {
            FrameDecoder::LengthPrefixed { .. } => true,
            FrameDecoder::WebSocket(socket) => send_messages(&mut self.stream, socket)?,
        };
        Ok(self.stream.flush()? && is_empty)
    }

    /// Discards what waits to be written, for good. Shut down, the socket gives what has arrived,
    /// and then its end, whichever way the writing failed.
    #[cold]
    fn break_off(&mut self) {
        if !std::mem::replace(&mut self.is_broken, true) {
            // Fails if the peer has reset the connection, which ends it as well.
            drop(self.stream.socket().shutdown(Shutdown::Both));
        }
        if let FrameDecoder::WebSocket(socket) = &mut self.decoder {
            socket.advance(socket.unsent().len());
        }
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

/// Whether the same write may succeed later.
fn is_temporary(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
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
        match stream.write(socket.unsent()) {
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

/// All connections, by client.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    entries: Vec<Option<Connection>>,
    /// Bytes of incomplete frames on all connections.
    partial_bytes: usize,
    /// When incomplete frames are checked next.
    partial_check_at: Nanos,
}

impl Connections {
    #[inline]
    pub(crate) fn get(&self, id: ClientId) -> Option<&Connection> {
        self.entries.get(id.index())?.as_ref()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: ClientId) -> Option<&mut Connection> {
        self.entries.get_mut(id.index())?.as_mut()
    }

    pub(crate) fn insert(&mut self, id: ClientId, connection: Connection) {
        if self.entries.len() <= id.index() {
            self.entries.resize_with(id.index() + 1, || None);
        }
        self.entries[id.index()] = Some(connection);
    }

    pub(crate) fn remove(&mut self, id: ClientId) -> Option<Connection> {
        let connection = self.entries.get_mut(id.index())?.take()?;
        self.partial_bytes -= connection.partial_bytes;
        Some(connection)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Connection> {
        self.entries.iter_mut().flatten()
    }

    /// Identifiers up to the last one in use.
    pub(crate) fn ids(&self) -> impl Iterator<Item = ClientId> + use<> {
        (0..self.entries.len()).map(ClientId::from_index)
    }

    /// Updates the size of a client's incomplete frame after a read.
    pub(crate) fn update_partial(&mut self, now: Nanos, id: ClientId) {
        if let Some(Some(connection)) = self.entries.get_mut(id.index()) {
            let before = connection.update_partial(now);
            // Kept as a sum, so that no read walks all connections.
            self.partial_bytes = self.partial_bytes - before + connection.partial_bytes;
        }
    }

    /// Bytes of incomplete frames on all connections.
    pub(crate) fn partial_bytes(&self) -> usize {
        self.partial_bytes
    }

    /// When incomplete frames are checked next, if there are any.
    pub(crate) fn partial_check_at(&self) -> Option<Nanos> {
        (self.partial_bytes > 0).then_some(self.partial_check_at)
    }

    /// The connections whose frame is incomplete for longer than `timeout`, if a check is due. The
    /// age does not count for clients that the server does not read from.
    pub(crate) fn expired_partials(
        &mut self,
        now: Nanos,
        timeout: Duration,
        is_paused: impl Fn(ClientId) -> bool,
    ) -> Vec<ClientId> {
        if self.partial_check_at().is_none_or(|due| now < due) {
            return Vec::new();
        }
        let every = (timeout / 8).clamp(CHECK_SHORTEST, CHECK_LONGEST).as_nanos() as u64;
        self.partial_check_at = now.saturating_add(every);
        let timeout = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        let mut expired = Vec::new();
        for (index, connection) in self.entries.iter_mut().enumerate() {
            let (id, Some(connection)) = (ClientId::from_index(index), connection) else {
                continue;
            };
            if is_paused(id) {
                // The server itself causes the delay: the clock starts anew.
                connection.partial_since = now;
            }
            let age = now.saturating_sub(connection.partial_since);
            if connection.partial_bytes > 0 && age > timeout {
                expired.push(id);
            }
        }
        expired
    }

    /// The oldest incomplete frame from the address with the most bytes of such frames, among
    /// clients that are not waiting for the server itself.
    pub(crate) fn oldest_partial(&self, is_waiting: impl Fn(ClientId) -> bool) -> Option<ClientId> {
        let all = self.ids().zip(&self.entries);
        let partials = all.filter_map(|(id, connection)| {
            let connection = connection.as_ref().filter(|one| one.partial_bytes > 0)?;
            (!is_waiting(id)).then_some((id, connection))
        });
        let partials: Vec<_> = partials.collect();
        let mut by_source = HashMap::<Source, usize>::default();
        for (_, connection) in &partials {
            *by_source.entry(connection.source).or_default() += connection.partial_bytes;
        }
        // The address with most bytes loses one, so one attacker cannot displace all others.
        let (fullest, _) = by_source.into_iter().max_by_key(|(_, bytes)| *bytes)?;
        let its = partials.iter().filter(|(_, connection)| connection.source == fullest);
        its.min_by_key(|(_, connection)| connection.partial_since).map(|(id, _)| *id)
    }
}
