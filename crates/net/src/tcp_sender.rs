//! A publisher's TCP connections, one for each receiver.
//!
//! Owned by the publisher's `SendSession`. All connections share the session's window: each keeps
//! its own position in it, so a message is encoded once for all receivers.

#[cfg(test)]
mod tests;

use crate::frame_reassembler::{BUFFER_BYTES_MIN, FrameReassembler, is_transient};
use crate::handshakes::{
    HandshakeAdmission, HandshakeLimiter, HandshakeShare, OVER_RATE, gives_way,
};
use crate::poller::Descriptor;
use crate::ready_streams::ReadyStreams;
use crate::telemetry::Telemetry;
use lanecast_os::PausingListener;
use lanecast_os::tcp::{self, TcpOptions};
use lanecast_protocol::sender::{Sender, UNJOINED_MAX};
use lanecast_protocol::{MICROSECOND, MILLISECOND, Nanos};
use lanecast_tls::{ByteStream, TlsIdentity};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Instant;

/// The most connections that are accepted at a time.
const ACCEPTS_MAX: usize = 16;
/// Shortest interval between two calls of accept while the publisher is busy.
const ACCEPT_INTERVAL: Nanos = MILLISECOND;
/// Shortest interval between two reads of all connections while the publisher is busy.
const READ_INTERVAL: Nanos = 20 * MICROSECOND;
/// Buffer of reads.
pub(crate) const READ_BYTES: usize = BUFFER_BYTES_MIN.next_multiple_of(64 << 10);
/// The listener's number among the connections.
const LISTENER: u64 = 0;

/// The connection of one receiver.
#[derive(Debug)]
struct Connection {
    number: u64,
    from: IpAddr,
    stream: ByteStream,
    incoming: FrameReassembler,
    /// The last write found no room, or TLS has something to write.
    is_full: bool,
    /// A write has failed: what has come before is still read.
    is_broken: bool,
    /// The system names the connection when it is readable.
    is_registered: bool,
}

/// All connections, and the listening socket.
#[derive(Debug)]
pub(crate) struct TcpSender {
    listener: PausingListener,
    options: TcpOptions,
    /// TLS of new connections, if they are encrypted.
    tls: Option<Arc<TlsIdentity>>,
    handshakes: Box<HandshakeLimiter>,
    /// Connections that are readable, and whose handshakes wait for their turn.
    waiting: Vec<(u64, IpAddr)>,
    connections: Vec<Connection>,
    connections_max: usize,
    /// Registered connections with something to read, and the listener, once there are several.
    ready_streams: ReadyStreams,
    has_registered_listener: bool,
    last_number: u64,
    last_accept: Nanos,
    last_read: Nanos,
    telemetry: Telemetry,
}

impl TcpSender {
    /// A sender to at most `receivers`.
    pub(crate) fn new(
        listener: TcpListener,
        options: TcpOptions,
        tls: Option<Arc<TlsIdentity>>,
        receivers: usize,
        telemetry: Telemetry,
    ) -> Self {
        Self {
            listener: PausingListener::new(listener),
            options,
            tls,
            handshakes: Box::new(HandshakeLimiter::new(HandshakeShare::Tenth, telemetry.clone())),
            waiting: Vec::new(),
            connections: Vec::new(),
            connections_max: receivers + UNJOINED_MAX,
            ready_streams: ReadyStreams::default(),
            has_registered_listener: false,
            last_number: LISTENER,
            last_accept: 0,
            last_read: 0,
            telemetry,
        }
    }

    /// Accepts connections and reads control frames.
    pub(crate) fn receive(&mut self, sender: &mut Sender, now: Nanos, buffer: &mut [u8]) {
        // Without a connection there is nothing to delay: the first receiver is accepted at once.
        let is_accept_due =
            now.wrapping_sub(self.last_accept) >= ACCEPT_INTERVAL || self.connections.is_empty();
        if is_accept_due && !self.has_registered_listener {
            self.last_accept = now;
            self.accept(sender, now);
        }
        if now.wrapping_sub(self.last_read) < READ_INTERVAL {
            return;
        }
        self.last_read = now;
        self.waiting.clear();
        if self.connections.len() < 2 && !self.has_registered_listener {
            self.read_where(sender, now, buffer, |_| true);
        } else {
            self.read_ready(sender, now, buffer, is_accept_due);
        }
        self.shake_hands(sender, now, buffer);
    }

    /// Reads the connections that the system names, and accepts if it names the listener.
    fn read_ready(
        &mut self,
        sender: &mut Sender,
        now: Nanos,
        buffer: &mut [u8],
        is_accept_due: bool,
    ) {
        self.register();
        self.ready_streams.look();
        let mut is_called = false;
        while let Some(number) = self.ready_streams.next() {
            is_called |= number == LISTENER;
            self.read_where(sender, now, buffer, |it| it.number == number);
        }
        if self.connections.iter().any(|it| !it.is_registered) {
            self.read_where(sender, now, buffer, |it| !it.is_registered);
        }
        if is_accept_due && self.has_registered_listener {
            self.last_accept = now;
            self.close_overdue(sender, now);
            // After a pause, too.
            if is_called || self.listener.paused_until().is_some() {
                self.accept(sender, now);
            }
        }
    }

    /// Reads each of these connections once, and removes those that have ended. Handshakes wait
    /// for [`shake_hands`](Self::shake_hands).
    fn read_where(
        &mut self,
        sender: &mut Sender,
        now: Nanos,
        buffer: &mut [u8],
        is_one: impl Fn(&Connection) -> bool,
    ) {
        self.connections.retain_mut(|connection| {
            if !is_one(connection) {
                return true;
            }
            if !connection.stream.is_open() {
                self.waiting.push((connection.number, connection.from));
                return true;
            }
            connection.read(sender, now, buffer).map_or_else(
                |error| {
                    self.telemetry.stream_error(connection.from, &error);
                    sender.disconnect(connection.number);
                    false
                },
                |_| true,
            )
        });
    }

    /// Takes one step of one handshake, if it is time for one. Whatever waits for its turn is named
    /// again, or read unasked.
    fn shake_hands(&mut self, sender: &mut Sender, now: Nanos, buffer: &mut [u8]) {
        if self.waiting.is_empty() || !self.handshakes.is_due(now) {
            return;
        }
        self.handshakes.sort(&mut self.waiting);
        for (number, from) in std::mem::take(&mut self.waiting) {
            let Some(at) = self.connections.iter().position(|it| it.number == number) else {
                continue;
            };
            let start = Instant::now();
            let connection = &mut self.connections[at];
            match connection.read(sender, now, buffer) {
                // Nothing has come: the next one's turn.
                Ok(false) => continue,
                Ok(true) => {
                    let is_open = connection.stream.is_open();
                    self.handshakes.on_step(now, from, start.elapsed(), is_open);
                }
                Err(error) => {
                    self.handshakes.on_step(now, from, start.elapsed(), false);
                    self.telemetry.stream_error(from, &error);
                    self.close(sender, number);
                }
            }
            return;
        }
    }

    /// Has the system name the listener and all connections when they are readable.
    fn register(&mut self) {
        let ready = &mut self.ready_streams;
        if !self.has_registered_listener {
            self.has_registered_listener = ready.add(self.listener.socket(), LISTENER);
        }
        for connection in self.connections.iter_mut().filter(|it| !it.is_registered) {
            connection.is_registered = ready.add(&connection.stream, connection.number);
        }
    }

    /// Closes connections that no receiver has joined by in time; returns their number.
    fn close_overdue(&mut self, sender: &mut Sender, now: Nanos) -> usize {
        let mut closed = 0;
        while let Some(number) = sender.overdue_connection(now) {
            self.close(sender, number);
            closed += 1;
        }
        closed
    }

    fn accept(&mut self, sender: &mut Sender, now: Nanos) {
        // First, as each closed connection makes room for a new one.
        let mut handled = self.close_overdue(sender, now);
        while handled < ACCEPTS_MAX
            && let Some((stream, from)) = self.listener.accept(now)
        {
            handled += 1;
            if tcp::tune(&stream, &self.options).is_err() {
                continue;
            }
            let Some(stream) = self.begin(stream, now, from.ip()) else { continue };
            self.make_room(sender, from.ip());
            // Never used again: a late call for a closed connection meets no other one.
            self.last_number += 1;
            sender.connect(now, self.last_number, from);
            self.connections.push(Connection {
                number: self.last_number,
                from: from.ip(),
                stream,
                incoming: FrameReassembler::lenient(),
                is_full: false,
                is_broken: false,
                is_registered: false,
            });
        }
    }

    /// The stream of an accepted connection, unless its address begins too many handshakes.
    fn begin(&mut self, stream: TcpStream, now: Nanos, from: IpAddr) -> Option<ByteStream> {
        let Some(tls) = &self.tls else { return Some(ByteStream::plain(stream)) };
        match self.handshakes.admit(now, from) {
            HandshakeAdmission::Admitted => tls.accept(stream).ok(),
            HandshakeAdmission::Refused { is_first } => {
                // A receiver tries again after a reset, and tells nothing of it.
                drop(tcp::reset_on_close(&stream));
                if is_first {
                    self.telemetry.error(&format!("{from} {OVER_RATE}"));
                }
                None
            }
        }
    }

    /// Closes the oldest connection without a receiver, preferably one from `from`, if there are
    /// too many. Silent connections cannot keep receivers out.
    fn make_room(&mut self, sender: &mut Sender, from: IpAddr) {
        // Only connections without a receiver: a joined one is never closed for a newcomer.
        let from_of = |number| self.connections.iter().find(|it| it.number == number);
        let unjoined = sender
            .unjoined_connections()
            .filter_map(|number| from_of(number).map(|it| (number, it.from)));
        let is_crowded = |unjoined: usize| {
            unjoined >= UNJOINED_MAX || self.connections.len() >= self.connections_max
        };
        let Some(oldest) = gives_way(unjoined, from, is_crowded) else { return };
        if let Some(it) = self.connections.iter().find(|it| it.number == oldest) {
            drop(tcp::reset_on_close(it.stream.socket()));
        }
        self.handshakes.displaced();
        self.close(sender, oldest);
    }

    fn close(&mut self, sender: &mut Sender, number: u64) {
        sender.disconnect(number);
        self.connections.retain(|connection| connection.number != number);
    }

    /// Writes to each receiver as much as it can take.
    pub(crate) fn transmit(&mut self, sender: &mut Sender, now: Nanos) {
        // Under a data rate the first connections would take all of it: each is first in turn.
        let first = self.connections.len().min(1);
        self.connections.rotate_left(first);
        for connection in &mut self.connections {
            // Its last frames may be unread, a Leave among them: the read that finds the end behind
            // them removes the connection.
            if !connection.is_broken && connection.write(sender, now).is_err() {
                (connection.is_broken, connection.is_full) = (true, false);
                // A refusal means that it has ended already.
                drop(connection.stream.socket().shutdown(Shutdown::Both));
            }
        }
    }

    /// Time at which a handshake waits for its turn, or a pause of the listener ends.
    pub(crate) fn next_deadline(&self) -> Option<Nanos> {
        let handshake = (!self.waiting.is_empty()).then(|| self.handshakes.next_step());
        handshake.into_iter().chain(self.listener.paused_until()).min()
    }

    /// Adds the sockets to sleep on, and whether to wait for room to write.
    pub(crate) fn descriptors(&self, into: &mut Vec<(Descriptor, bool)>) {
        into.extend(self.listener.waited_for().map(|it| (Arc::clone(it) as Descriptor, false)));
        for connection in &self.connections {
            // Readable without being read: it would end every sleep until its turn has come.
            if self.waiting.iter().any(|(number, _)| *number == connection.number) {
                continue;
            }
            let socket = connection.stream.socket().clone();
            into.push((socket as Descriptor, connection.is_full));
        }
    }
}

impl Connection {
    /// Reads once; whether something came.
    fn read(&mut self, sender: &mut Sender, now: Nanos, buffer: &mut [u8]) -> io::Result<bool> {
        let Some(bytes) = self.incoming.read(&mut self.stream, buffer)? else { return Ok(false) };
        let number = self.number;
        self.incoming.split(bytes, |frame| {
            sender.on_stream_frame(now, number, frame);
            true
        })?;
        Ok(true)
    }

    /// Writes until the socket is full or nothing is left.
    fn write(&mut self, sender: &mut Sender, now: Nanos) -> io::Result<()> {
        // Records that found no room come first.
        self.is_full = !self.stream.flush()?;
        if self.is_full {
            return Ok(());
        }
        loop {
            let bytes = sender.stream_bytes(now, self.number);
            if bytes.is_empty() {
                self.is_full = self.stream.has_unsent();
                return Ok(());
            }
            match self.stream.write(bytes) {
                // Never for bytes of a stream socket; taken as broken rather than tried without
                // end.
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(length) => sender.stream_written(now, self.number, length),
                Err(error) if is_transient(&error) => {
                    // An interrupted write may be tried again without waiting for room.
                    self.is_full = error.kind() == ErrorKind::WouldBlock;
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
    }
}
