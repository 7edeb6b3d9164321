//! A subscriber's TCP connection to one publisher: connect, read frames, reconnect.
//!
//! Owned by its `ReceiveSession`. All calls are non-blocking.

#[cfg(test)]
mod tests;

use crate::context::NetContext;
use crate::frame_reassembler::FrameReassembler;
use crate::poller::Descriptor;
use crate::ready_streams::ReadyStreams;
use crate::settings::nanos;
use crate::telemetry::Telemetry;
use lanecast_os::tcp::{self, TcpOptions};
use lanecast_protocol::{MILLISECOND, Nanos};
use lanecast_tls::{ByteStream, TlsIdentity};
use lanecast_wire::net::Frame;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// The longest read; from a UDP socket a run of datagrams.
const READ_BYTES: usize = 320 << 10;
/// The most unsent bytes of control frames; further frames are dropped.
const UNSENT_MAX: usize = 64 << 10;
/// The first pause before a reconnect, and the longest.
const RETRY: Nanos = 10 * MILLISECOND;
const RETRY_MAX: Nanos = 1_000 * MILLISECOND;
/// A connect may take this part of the liveness. The kernel repeats its SYN ever more seldom:
/// several connects have to fit into the time for which the publisher keeps the receiver.
const CONNECT_PART: Nanos = 10;
/// The shortest limit of a connect.
const CONNECT_MIN: Nanos = 200 * MILLISECOND;
/// Interval at which delayed acknowledgements are requested: the kernel turns them off 40 ms after
/// the last request.
const DELAY_ACKS_INTERVAL: Nanos = 20 * MILLISECOND;

/// The longest read after which the next one peeks: a message or a few.
const PEEK_AFTER_MAX: usize = 4 << 10;

/// A buffer for the longest read.
pub(crate) fn read_buffer() -> Box<[u8]> {
    vec![0; READ_BYTES].into_boxed_slice()
}

/// The connection, its incomplete frames, and its reconnect timer.
#[derive(Debug)]
pub(crate) struct TcpReceiver {
    local: IpAddr,
    address: SocketAddr,
    options: TcpOptions,
    /// TLS of new connections, if they are encrypted.
    tls: Option<Arc<TlsIdentity>>,
    telemetry: Telemetry,
    stream: Option<ByteStream>,
    is_connected: bool,
    /// The connection is among those that the system names when they are readable.
    is_registered: bool,
    /// The publisher's host refused the last connect.
    is_refused: bool,
    incoming: FrameReassembler,
    /// Length of the last read.
    last_read: usize,
    /// Bytes that were read and are still in the socket.
    peeked: usize,
    unsent: Vec<u8>,
    retry_at: Option<Nanos>,
    connect_deadline: Nanos,
    /// Pause before the next reconnect.
    pause: Nanos,
    /// Time at which the connection was established.
    connected_at: Nanos,
    /// Time of the last request for delayed acknowledgements.
    acks_delayed_at: Nanos,
}

impl TcpReceiver {
    pub(crate) fn open(context: &NetContext, address: SocketAddr, now: Nanos) -> io::Result<Self> {
        let mut receiver = Self {
            local: context.address,
            address,
            options: context.tcp_options(),
            tls: context.tls.clone(),
            telemetry: context.telemetry.clone(),
            stream: None,
            is_connected: false,
            is_registered: false,
            is_refused: false,
            incoming: FrameReassembler::lenient(),
            last_read: 0,
            peeked: 0,
            unsent: Vec::new(),
            retry_at: None,
            connect_deadline: connect_deadline(now, nanos(context.settings.liveness)),
            pause: RETRY,
            connected_at: now,
            acks_delayed_at: 0,
        };
        receiver.stream = Some(receiver.connect()?);
        Ok(receiver)
    }

    /// Starts to connect.
    fn connect(&self) -> io::Result<ByteStream> {
        let stream = tcp::connect(Some(self.local), self.address)?;
        tcp::tune(&stream, &self.options)?;
        match &self.tls {
            None => Ok(ByteStream::plain(stream)),
            Some(tls) => tls.connect(stream, self.address.ip()),
        }
    }

    /// Reads once, behind the incomplete frame of the last read; `None` if nothing came, or only
    /// bytes of TLS's own, which are no sign of the publisher's life.
    ///
    /// A connection that only receives acknowledges every second short segment as it is taken off
    /// the socket, before the read returns: that costs as much as sending a message. Where messages
    /// come one by one, the subscriber `is_idle` before them, the read only looks at them, and
    /// [`finish_read`](Self::finish_read) takes them off once they are handled.
    ///
    /// # Errors
    /// If the connection has failed or ended.
    pub(crate) fn read<'a>(
        &mut self,
        now: Nanos,
        buffer: &'a mut [u8],
        is_idle: bool,
    ) -> io::Result<Option<&'a [u8]>> {
        if !self.is_connected && !self.poll_connected(now)? {
            return Ok(None);
        }
        self.discard_peeked()?;
        // Each read is a chance to write what found no room.
        if self.has_unsent() {
            self.write(&[]);
        }
        let Some(stream) = &mut self.stream else { return Ok(None) };
        let read = if is_idle && self.last_read <= PEEK_AFTER_MAX && stream.is_plain() {
            let peeked = self.incoming.peek(stream, buffer)?;
            peeked.map(|(bytes, length)| {
                self.peeked = length;
                bytes
            })
        } else {
            self.incoming.read(stream, buffer)?.filter(|bytes| !bytes.is_empty())
        };
        self.last_read = read.map_or(self.last_read, <[u8]>::len);
        if read.is_some() && now.wrapping_sub(self.acks_delayed_at) >= DELAY_ACKS_INTERVAL {
            self.acks_delayed_at = now;
            // A system that refuses acknowledges as it likes.
            drop(tcp::delay_acks(stream.socket()));
        }
        Ok(read)
    }

    /// Takes what the last read has only looked at off the socket, after it was handled. The next
    /// read does so as well, and notices a broken connection.
    #[inline]
    pub(crate) fn finish_read(&mut self) {
        drop(self.discard_peeked());
    }

    #[inline]
    fn discard_peeked(&mut self) -> io::Result<()> {
        while self.peeked > 0 {
            let Some(stream) = &mut self.stream else { break };
            match stream.discard(self.peeked) {
                // They have to be there: without them the loop would have no end.
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(length) => self.peeked = self.peeked.saturating_sub(length),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Calls `each` with the complete frames of `bytes`, and keeps the rest for the next read.
    ///
    /// # Errors
    /// If `bytes` does not continue with a frame.
    #[inline]
    pub(crate) fn split(
        &mut self,
        bytes: &[u8],
        mut each: impl FnMut(&Frame<'_>),
    ) -> io::Result<()> {
        let whole = |frame: &Frame<'_>| {
            each(frame);
            true
        };
        self.incoming.split(bytes, whole).map(drop)
    }

    /// Asks the system whether the connect has succeeded.
    #[cold]
    fn poll_connected(&mut self, now: Nanos) -> io::Result<bool> {
        let Some(stream) = &self.stream else { return Ok(false) };
        let connected = tcp::established(stream.socket());
        // Kept for the liveness: a host that refuses is up, and its publisher is gone.
        self.is_refused = connected.as_ref().is_err_and(is_refusal);
        self.is_connected = connected?;
        self.connected_at = now;
        Ok(self.is_connected)
    }

    /// Whether the publisher's host refused the last connect.
    pub(crate) const fn is_refused(&self) -> bool {
        self.is_refused
    }

    /// Whether the connection has to be read unasked: it is not registered, not established, or
    /// has something to write, which a read does as well.
    pub(crate) fn is_read_unasked(&self) -> bool {
        self.stream.is_some() && (!self.is_registered || self.has_unsent())
    }

    /// Whether control frames, or TLS, wait to be written.
    fn has_unsent(&self) -> bool {
        !self.unsent.is_empty() || self.stream.as_ref().is_some_and(ByteStream::has_unsent)
    }

    /// Has the system name the connection by `number` when it is readable, once it is established.
    pub(crate) fn register(&mut self, ready: &mut ReadyStreams, number: u64) {
        if !self.is_registered
            && let Some(stream) = self.stream.as_ref().filter(|_| self.is_connected)
        {
            self.is_registered = ready.add(stream, number);
        }
    }

    /// Writes a control frame, or keeps it until there is room.
    pub(crate) fn write(&mut self, frame: &[u8]) {
        // Whole frames only: a cut one would break the stream. A dropped one is repeated.
        if self.unsent.len() + frame.len() <= UNSENT_MAX {
            self.unsent.extend_from_slice(frame);
        }
        let Some(stream) = self.stream.as_mut().filter(|_| self.is_connected) else { return };
        while !self.unsent.is_empty() {
            match stream.write(&self.unsent) {
                Ok(length) => drop(self.unsent.drain(..length)),
                // The next read notices a broken connection.
                Err(_) => return,
            }
        }
        // As above.
        drop(stream.flush());
    }

    /// The connection, if it is established, and frames that it has not taken yet.
    pub(crate) fn into_stream(mut self) -> Option<(ByteStream, Vec<u8>)> {
        self.finish_read();
        let stream = self.stream.filter(|_| self.is_connected)?;
        Some((stream, self.unsent))
    }

    /// Tells why the connection has failed, closes it, and schedules a reconnect.
    #[cold]
    pub(crate) fn fail(&mut self, now: Nanos, error: &io::Error) {
        self.telemetry.stream_error(self.address.ip(), error);
        self.disconnect(now);
    }

    /// Closes the connection, and schedules a reconnect.
    pub(crate) fn disconnect(&mut self, now: Nanos) {
        // Only a connection that held resets the pause: a peer that accepts and closes at once
        // would otherwise be reconnected without end.
        if self.is_connected && now.saturating_sub(self.connected_at) >= RETRY_MAX {
            self.pause = RETRY;
        }
        // Closed with unread bytes, it would be reset.
        self.finish_read();
        self.stream = None;
        self.is_connected = false;
        self.is_registered = false;
        self.incoming.clear();
        (self.last_read, self.peeked) = (0, 0);
        // A new connection begins with a Join, not with the rest of an old frame.
        self.unsent.clear();
        self.retry_at = Some(now.saturating_add(self.pause));
        self.pause = (self.pause * 2).min(RETRY_MAX);
    }

    /// Whether the connect has taken too long.
    pub(crate) fn connect_timed_out(&mut self, now: Nanos) -> bool {
        self.stream.is_some()
            && !self.is_connected
            && self.connect_deadline <= now
            // After a suspension of the process the connect may have succeeded unnoticed.
            && !self.poll_connected(now).unwrap_or(false)
    }

    /// Whether bytes wait to be read.
    pub(crate) fn has_bytes(&self) -> bool {
        let stream = self.stream.as_ref().filter(|stream| self.is_connected && stream.is_open());
        // Zero bytes are the end of the connection, and no sign of life.
        stream.is_some_and(|stream| stream.socket().peek(&mut [0]).is_ok_and(|length| length > 0))
    }

    /// Reconnects when the pause is over; returns whether a connect was started.
    pub(crate) fn reconnect(&mut self, now: Nanos, liveness: Nanos) -> bool {
        if self.retry_at.is_none_or(|at| at > now) {
            return false;
        }
        match self.connect() {
            Ok(stream) => {
                self.stream = Some(stream);
                self.retry_at = None;
                self.connect_deadline = connect_deadline(now, liveness);
                true
            }
            Err(error) => {
                self.is_refused = is_refusal(&error);
                self.disconnect(now);
                false
            }
        }
    }

    pub(crate) fn next_deadline(&self) -> Option<Nanos> {
        let connecting = self.stream.is_some() && !self.is_connected;
        // Never both: a connect starts when the pause is over.
        self.retry_at.or(connecting.then_some(self.connect_deadline))
    }

    /// The socket, and whether to wait for room to write: a connect ends with that as well.
    pub(crate) fn descriptor(&self) -> Option<(Descriptor, bool)> {
        let writable = !self.is_connected || self.has_unsent();
        let stream = self.stream.as_ref()?;
        Some((stream.socket().clone() as Descriptor, writable))
    }
}

fn is_refusal(error: &io::Error) -> bool {
    error.kind() == ErrorKind::ConnectionRefused
}

/// The latest end of a connect that starts now.
fn connect_deadline(now: Nanos, liveness: Nanos) -> Nanos {
    now.saturating_add((liveness / CONNECT_PART).max(CONNECT_MIN))
}
