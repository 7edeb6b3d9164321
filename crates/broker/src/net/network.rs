//! The sockets of a server: listeners, connections and the poller, with the limits that apply
//! before a logon and to incomplete frames. The server owns it, and connects it to the engine.

use crate::config::server_config::ServerConfig;
use crate::ids::ClientId;
use crate::net::connection::{Connection, Connections};
use crate::net::listeners::{Framing, Listeners};
use crate::net::pending::PendingConnections;
use crate::net::poller::{Interest, Poller};
use crate::net::source::Source;
use crate::net::websocket::{CloseReason, Origins, WebSocket};
use crate::time::Nanos;
use lanecast_tls::{ByteStream, TlsAcceptor, TlsSession};
use std::io;
use std::net::TcpStream;
use std::time::Duration;

/// The longest frame before the logon.
const UNAUTHENTICATED_FRAME_MAX: usize = 16 << 10;

/// A connection that was accepted, before it is a client.
#[derive(Debug)]
pub(crate) struct Accepted {
    pub(crate) stream: ByteStream,
    pub(crate) source: Source,
    pub(crate) framing: Framing,
}

/// All sockets.
#[derive(Debug)]
pub(crate) struct Network {
    pub(crate) listeners: Listeners,
    pub(crate) poller: Poller,
    pub(crate) connections: Connections,
    pub(crate) pending: PendingConnections,
    /// TLS for new connections.
    pub(crate) tls: Option<TlsAcceptor>,
    origins: Origins,
    handshake_ns: Nanos,
    pending_max: usize,
    pending_per_source_max: usize,
    frame_bytes_max: usize,
    frame_timeout: Duration,
    partial_bytes_max: usize,
}

impl Network {
    pub(crate) fn new(
        config: &ServerConfig,
        poller: Poller,
        listeners: Listeners,
        tls: Option<TlsAcceptor>,
    ) -> Self {
        Self {
            listeners,
            poller,
            connections: Connections::default(),
            pending: PendingConnections::default(),
            tls,
            origins: Origins(config.origins.as_slice().into()),
            handshake_ns: u64::try_from(config.handshake.as_nanos()).unwrap_or(u64::MAX),
            pending_max: config.pending_max,
            pending_per_source_max: config.pending_per_address_max,
            frame_bytes_max: config.frame_bytes_max,
            frame_timeout: config.frame_timeout,
            // A limit below one frame would close every connection with a long one.
            partial_bytes_max: config.partial_frame_bytes_max.max(config.frame_bytes_max),
        }
    }

    /// Accepts the next connection.
    pub(crate) fn accept(&mut self, now: Nanos) -> Option<Accepted> {
        loop {
            let (stream, peer, framing) = self.listeners.accept(now, &self.poller)?;
            // Drops the connection if TLS cannot be set up.
            if let Ok(stream) = self.byte_stream(stream) {
                return Some(Accepted { stream, source: Source::of(peer.ip()), framing });
            }
        }
    }

    fn byte_stream(&self, stream: TcpStream) -> io::Result<ByteStream> {
        stream.set_nonblocking(true)?;
        // The server gathers messages itself; Nagle's algorithm would only delay them.
        stream.set_nodelay(true)?;
        match &self.tls {
            None => Ok(ByteStream::plain(stream)),
            Some(tls) => TlsSession::accept(tls).map(|tls| ByteStream::encrypted(stream, tls)),
        }
    }

    /// The source that must lose a pending connection before one more from `source` is accepted.
    pub(crate) fn source_over_limit(&self, source: Source) -> Option<Source> {
        self.pending.source_over_limit(source, self.pending_per_source_max, self.pending_max)
    }

    /// Adds an accepted connection as that client's, and polls it.
    ///
    /// # Errors
    /// If it cannot be polled; it is added all the same.
    pub(crate) fn insert(
        &mut self,
        now: Nanos,
        id: ClientId,
        accepted: Accepted,
        is_authenticated: bool,
        is_pending: bool,
    ) -> io::Result<()> {
        let Accepted { stream, source, framing } = accepted;
        let limit = self.frame_limit(is_authenticated);
        let websocket =
            (framing == Framing::WebSocket).then(|| WebSocket::new(self.origins.clone(), limit));
        let mut connection = Connection::new(stream, websocket, source, limit);
        connection.is_pending = is_pending;
        if is_pending {
            self.pending.add(id, source, self.handshake_deadline(now));
        }
        // The connection is stored even on failure: the caller closes it like any other.
        let added = self.poller.add(&connection.stream, id.0.into());
        self.connections.insert(id, connection);
        added
    }

    /// Closes a connection, after telling the client why if there is a reason.
    pub(crate) fn remove(&mut self, id: ClientId, reason: Option<CloseReason>) {
        let Some(mut connection) = self.connections.remove(id) else { return };
        if let Some(reason) = reason {
            connection.close(reason);
        }
        if connection.is_pending {
            self.pending.remove(id);
        }
    }

    /// The longest frame of a client.
    pub(crate) fn frame_limit(&self, is_authenticated: bool) -> usize {
        match is_authenticated {
            true => self.frame_bytes_max,
            false => self.frame_bytes_max.min(UNAUTHENTICATED_FRAME_MAX),
        }
    }

    /// Handshake deadline of a connection accepted at `since`.
    pub(crate) fn handshake_deadline(&self, since: Nanos) -> Nanos {
        since.saturating_add(self.handshake_ns)
    }

    /// Updates a pending connection: pauses its deadline while its password is checked, and ends it
    /// once TLS, WebSocket and logon are complete.
    pub(crate) fn update_handshake(
        &mut self,
        id: ClientId,
        is_checking_password: bool,
        is_authenticated: bool,
    ) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        if !connection.is_pending {
            return;
        }
        if is_checking_password {
            self.pending.pause_deadline(id);
        } else if connection.is_open() && is_authenticated {
            connection.is_pending = false;
            // The limit so far is that from before the logon.
            connection.set_frame_limit(self.frame_bytes_max);
            self.pending.remove(id);
        }
    }

    /// The connections whose frame is incomplete for too long.
    pub(crate) fn expired_partials(
        &mut self,
        now: Nanos,
        is_paused: impl Fn(ClientId) -> bool,
    ) -> Vec<ClientId> {
        self.connections.expired_partials(now, self.frame_timeout, is_paused)
    }

    /// A connection to close because incomplete frames take too much memory.
    pub(crate) fn partial_over_limit(
        &self,
        is_waiting: impl Fn(ClientId) -> bool,
    ) -> Option<ClientId> {
        // Most reads end here; the search for a victim walks all connections.
        let is_over = self.connections.partial_bytes() > self.partial_bytes_max;
        if is_over { self.connections.oldest_partial(is_waiting) } else { None }
    }

    /// Stops accepting and reading: from now on the poller only reports connections that
    /// [`poll_write`](Self::poll_write) added.
    pub(crate) fn stop_reading(&mut self) {
        self.listeners.close(&self.poller);
        for connection in self.connections.iter_mut() {
            // A failure means that it is not registered, which is the aim.
            drop(self.poller.remove(&connection.stream));
        }
    }

    /// While draining: polls a connection for writing, or not at all once everything is sent.
    pub(crate) fn poll_write(&mut self, id: ClientId, is_empty: bool) {
        let Some(connection) = self.connections.get(id) else { return };
        let (stream, token) = (&connection.stream, id.0.into());
        if is_empty {
            drop(self.poller.remove(stream));
        } else {
            // Already registered if the last write was partial, too.
            drop(self.poller.add(stream, token));
            drop(self.poller.change(stream, token, Interest::Write));
        }
    }
}
