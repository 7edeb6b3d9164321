//! The server: an engine with its sockets. One thread calls [`Server::turn`] in a loop: it waits
//! for sockets, reads commands, executes them, and sends what they wrote into send queues.

mod limits;
#[cfg(test)]
mod tests;

use crate::auth::password_worker::PasswordWorker;
use crate::auth::users::Users;
use crate::clients::DisconnectReason;
use crate::config::offline::OfflineSettings;
use crate::config::server_config::ServerConfig;
use crate::config::storage::OnFailure;
use crate::engine::Engine;
use crate::ids::ClientId;
use crate::net::connection::Connection;
use crate::net::listeners::{Framing, LISTENER_EVENT, Listeners};
use crate::net::network::{Accepted, Network};
use crate::net::poller::{Poller, Ready};
use crate::net::rejection;
use crate::net::websocket::CloseReason;
use crate::open_error::OpenError;
use crate::queue::disk_ring::DiskRing;
use crate::stats::counters::Counters;
use crate::stats::latency::{Latency, LatencyRecorder};
use crate::time::{Nanos, Now};
use lanecast_base::clock::Clock;
use lanecast_tls::TlsFiles;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Poller token of the password worker. Clients' tokens are below.
const PASSWORD_EVENT: u64 = 1 << 32;
/// Poller token of the durable store.
const STORE_EVENT: u64 = PASSWORD_EVENT + 1;
/// Bytes of a read, and of a read before the logon: a TLS record and its plaintext.
const READ_BYTES: usize = 256 << 10;
const UNAUTHENTICATED_READ_BYTES: usize = 64 << 10;
/// Connections accepted in a turn, so that a flood of them does not hold up clients.
const ACCEPTS_MAX: usize = 32;
/// Interval of checks whether all send queues are empty while the server drains.
const DRAIN_POLL: Duration = Duration::from_millis(10);

/// A content server. Call [`turn`](Self::turn) until it should end, then [`drain`](Self::drain).
#[derive(Debug)]
pub struct Server {
    engine: Engine,
    network: Network,
    ready: Vec<Ready>,
    buffer: Box<[u8]>,
    clock: Clock,
    /// Work can continue at once: the next turn does not wait.
    has_work: bool,
    /// Checks passwords, if users are configured.
    password_worker: Option<PasswordWorker>,
    latency: LatencyRecorder,
    /// When the first bytes of this round were read.
    round_start: Option<Nanos>,
}

impl Server {
    /// Creates the topics, and listens.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(config: ServerConfig) -> Result<Self, OpenError> {
        config.check()?;
        // Fails now rather than when the first client goes offline.
        if let Some(OfflineSettings { directory, .. }) = &config.offline {
            DiskRing::create(directory, 1)
                .map_err(|error| OpenError::Offline { directory: directory.clone(), error })?;
        }
        let mut listeners = Listeners::default();
        let websocket = config.websocket.map(|at| (at, Framing::WebSocket));
        for (at, framing) in [(config.listen, Framing::LengthPrefixed)].into_iter().chain(websocket)
        {
            listeners.open(at, framing).map_err(|error| OpenError::Listen { at, error })?;
        }
        let poller = Poller::new().map_err(OpenError::Poll)?;
        listeners.register(&poller).map_err(OpenError::Poll)?;
        let tls = config.tls.as_ref().map(TlsFiles::load).transpose()?;
        let users = config.users.as_deref().map(Users::read).transpose()?;
        let worker = users.as_ref().map(|_| PasswordWorker::start()).transpose();
        let password_worker = worker.map_err(OpenError::Poll)?;
        if let Some(worker) = &password_worker {
            poller.add(worker.event(), PASSWORD_EVENT).map_err(OpenError::Poll)?;
        }
        let network = Network::new(&config, poller, listeners, tls);
        let mut engine = Engine::new(config)?;
        engine.state.auth.users = users;
        if let Some(store) = engine.state.catalog.store() {
            network.poller.add(store.event(), STORE_EVENT).map_err(OpenError::Poll)?;
        }
        Ok(Self {
            engine,
            network,
            ready: Vec::new(),
            buffer: vec![0; READ_BYTES].into_boxed_slice(),
            clock: Clock::host(),
            has_work: false,
            password_worker,
            latency: LatencyRecorder::new(),
            round_start: None,
        })
    }

    /// Reloads users and certificates, for connections from now on.
    ///
    /// # Errors
    /// If a file cannot be used; then nothing changes.
    pub fn reload(&mut self) -> Result<(), OpenError> {
        let config = &self.engine.state.config;
        let tls = config.tls.as_ref().map(TlsFiles::load).transpose()?;
        let users = config.users.as_deref().map(Users::read).transpose()?;
        self.network.tls = tls;
        self.engine.state.auth.users = users;
        Ok(())
    }

    /// Address of the TCP listener.
    ///
    /// # Errors
    /// The system's error.
    pub fn address(&self) -> io::Result<SocketAddr> {
        let address = self.network.listeners.address(Framing::LengthPrefixed);
        address.unwrap_or_else(|| Err(ErrorKind::NotConnected.into()))
    }

    /// Address of the WebSocket listener, if there is one.
    ///
    /// # Errors
    /// The system's error.
    pub fn websocket_address(&self) -> io::Result<Option<SocketAddr>> {
        self.network.listeners.address(Framing::WebSocket).transpose()
    }

    /// Counters since the start.
    pub fn counters(&self) -> Counters {
        self.engine.counters()
    }

    /// Number of clients.
    pub fn clients(&self) -> usize {
        self.engine.state.clients.len()
    }

    /// Takes a line for the operator's log: about slow consumers, rejected connections, the disk.
    pub fn next_log_line(&mut self) -> Option<String> {
        self.engine.state.log.pop()
    }

    /// Why the disk failed, if it did and the server is configured to stop then: call
    /// [`drain`](Self::drain). Otherwise the server continues with everything that is not durable.
    pub fn failure(&self) -> Option<String> {
        let (catalog, config) = (&self.engine.state.catalog, &self.engine.state.config);
        let store = catalog.store()?;
        let on_failure = config.storage.as_ref()?.on_failure;
        if on_failure == OnFailure::Stop && store.has_failed() { store.failure() } else { None }
    }

    /// Latency from the start of a command until its messages are in send queues; one command in 64
    /// is timed.
    pub fn command_latency(&self) -> Latency {
        self.latency.commands()
    }

    /// Latency from reading bytes until the system accepted everything that resulted.
    pub fn turn_latency(&self) -> Latency {
        self.latency.turns()
    }

    /// One turn: waits for at most `limit` until there is work, and does it.
    ///
    /// # Errors
    /// If the system cannot wait for sockets.
    pub fn turn(&mut self, limit: Duration) -> io::Result<()> {
        let timeout = self.timeout().map_or(limit, |timeout| timeout.min(limit));
        let mut ready = std::mem::take(&mut self.ready);
        ready.clear();
        self.network.poller.wait(Some(timeout), &mut ready)?;
        let now = Now::read(&self.clock);
        self.engine.enforce_limits(now.monotonic_ns);
        let mut has_connections = false;
        for one in &ready {
            if one.token == STORE_EVENT {
                // Cleared before the store is checked in this turn: later progress signals again.
                if let Some(store) = self.engine.state.catalog.store() {
                    store.clear_wakeup();
                }
            } else if one.token == LISTENER_EVENT {
                has_connections = true;
            } else if one.token != PASSWORD_EVENT && one.to_read {
                self.round_start.get_or_insert_with(|| self.clock.ns(self.clock.ticks()));
                self.read(now, ClientId(one.token as u32));
                if self.engine.is_round_full() {
                    self.flush();
                }
            }
        }
        self.check_passwords(now);
        self.resume_paused(now);
        self.has_work = self.engine.on_time(now);
        for one in ready.iter().filter(|one| one.token < PASSWORD_EVENT && one.to_write) {
            self.write(ClientId(one.token as u32));
        }
        self.ready = ready;
        self.flush();
        // Accepts last: a new client may get the id of one that disconnected in this turn, whose
        // readiness must not be taken for the new one's.
        limits::expire_handshakes(&mut self.engine, &mut self.network, now.monotonic_ns);
        limits::expire_partial_frames(&mut self.engine, &mut self.network, now.monotonic_ns);
        let Network { listeners, poller, .. } = &mut self.network;
        listeners.retry(now.monotonic_ns, poller);
        for _ in 0..ACCEPTS_MAX {
            if !has_connections {
                break;
            }
            // The poller tells again of those left.
            let Some(accepted) = self.network.accept(now.monotonic_ns) else { break };
            self.accept(now.monotonic_ns, accepted);
        }
        Ok(())
    }

    /// The longest wait for sockets; `None` waits for them alone.
    fn timeout(&self) -> Option<Duration> {
        if self.engine.has_progress() || self.has_work {
            return Some(Duration::ZERO);
        }
        let now = Now::read(&self.clock);
        let is_idle = self.password_worker.as_ref().is_some_and(PasswordWorker::is_free);
        let deadlines = [
            self.engine.next_deadline(now),
            self.network.listeners.retry_at(),
            self.network.pending.next_due(),
            self.network.connections.partial_check_at(),
            self.engine.state.auth.next_check_at().filter(|_| is_idle),
        ];
        let due = deadlines.into_iter().flatten().min()?;
        Some(Duration::from_nanos(due.saturating_sub(now.monotonic_ns)))
    }

    /// Reads from a client, and executes its commands.
    fn read(&mut self, now: Now, id: ClientId) {
        let is_authenticated = self.engine.is_authenticated(id);
        let Some(connection) = self.network.connections.get_mut(id) else { return };
        let (engine, latency, clock) = (&mut self.engine, &mut self.latency, &self.clock);
        // A client is not polled for reading while its password is checked: this is its end.
        if engine.is_checking_password(id) {
            return self.close(id);
        }
        // The end of a paused connection is handled after it resumed.
        if engine.is_paused(id) {
            return;
        }
        if !engine.continue_or_pause(id) {
            return self.write(id);
        }
        let length = if is_authenticated { READ_BYTES } else { UNAUTHENTICATED_READ_BYTES };
        let result = connection.read(&mut self.buffer[..length], |payload| {
            if latency.samples_next() {
                let start = clock.ticks();
                engine.execute(now, id, payload);
                latency.record_command(clock.ns(clock.ticks().wrapping_sub(start)));
            } else {
                engine.execute(now, id, payload);
            }
            engine.continue_or_pause(id)
        });
        self.after_read(now.monotonic_ns, id, result);
    }

    /// Handles the end of a connection, its handshake, and its incomplete frame after a read.
    fn after_read(&mut self, now: Nanos, id: ClientId, result: io::Result<()>) {
        if let Err(error) = result {
            if error.kind() == ErrorKind::InvalidData {
                self.reject_frame(id);
            }
            return self.end_connection(id, CloseReason::Ended);
        }
        limits::update_handshake(&mut self.engine, &mut self.network, id);
        let Some(connection) = self.network.connections.get(id) else { return };
        if connection.has_unsent() || self.engine.is_paused(id) {
            self.engine.set_unread_pongs(id, connection.has_unread_pongs());
            self.write(id);
        }
        self.network.connections.update_partial(now, id);
        limits::limit_partial_frames(&mut self.engine, &mut self.network);
    }

    /// Continues logons with results of the password worker, and gives it the next password.
    fn check_passwords(&mut self, now: Now) {
        let Some(worker) = &mut self.password_worker else { return };
        if let Some(result) = worker.take_result() {
            let id = result.client;
            self.engine.finish_password_check(now, &result);
            if !self.engine.is_checking_password(id) {
                // After a wrong password the client has as much time for another try.
                let deadline = self.network.handshake_deadline(now.monotonic_ns);
                self.network.pending.set_deadline(id, deadline);
            }
            limits::update_handshake(&mut self.engine, &mut self.network, id);
        }
        if let Some(worker) = &mut self.password_worker
            && worker.is_free()
            && let Some(check) = self.engine.state.auth.next_check(now.monotonic_ns)
        {
            worker.check(check);
        }
    }

    /// Resumes paused clients whose commands can be executed again.
    fn resume_paused(&mut self, now: Now) {
        for id in self.engine.state.clients.take_paused() {
            // Decided one by one: the commands of one client may fill the journal for the next.
            if self.engine.resume(id) {
                self.resume(now, id);
            }
        }
    }

    /// Executes commands that were read before a client was paused.
    fn resume(&mut self, now: Now, id: ClientId) {
        let Some(connection) = self.network.connections.get_mut(id) else { return };
        let engine = &mut self.engine;
        engine.execute_deferred(now, id);
        if engine.continue_or_pause(id) {
            let result = connection.resume(|payload| {
                engine.execute(now, id, payload);
                engine.continue_or_pause(id)
            });
            self.after_read(now.monotonic_ns, id, result);
        }
        self.write(id);
    }

    /// Ends a round: sends to all clients with bytes to send, and disconnects clients.
    fn flush(&mut self) {
        let round_start = self.round_start.take();
        let mut has_sent = false;
        while let Some(id) = self.engine.next_dirty() {
            self.write(id);
            has_sent = true;
        }
        self.has_work |= self.engine.end_round();
        if has_sent && let Some(start) = round_start {
            let now = self.clock.ns(self.clock.ticks());
            self.latency.record_turn(now.saturating_sub(start));
        }
        while let Some((id, reason)) = self.engine.next_disconnect() {
            // A slow consumer would not read the rest.
            if reason != DisconnectReason::SlowConsumer {
                self.write(id);
            }
            self.end_connection(id, CloseReason::Policy(reason.text()));
        }
    }

    /// Sends a client's queue as far as the socket accepts it, and polls for the rest.
    fn write(&mut self, id: ClientId) {
        let Network { connections, poller, .. } = &mut self.network;
        let Some(connection) = connections.get_mut(id) else { return };
        let was_broken = connection.is_broken();
        let is_sent = self.engine.send(id, |slices| connection.write(slices));
        let is_empty = connection.flush() && is_sent;
        self.engine.set_unread_pongs(id, connection.has_unread_pongs());
        if connection.is_broken() && !was_broken {
            // Commands that have arrived are executed: the client may have left with its answers
            // unread, for which its system breaks the connection.
            self.engine.end_deliveries(id);
        }
        let is_paused = self.engine.is_paused(id);
        if connection.set_interest(poller, id, is_paused, is_empty).is_err() {
            self.close(id);
        }
    }

    /// Makes an accepted connection a client.
    fn accept(&mut self, now: Nanos, accepted: Accepted) {
        let is_authenticated = !self.engine.state.auth.requires_logon();
        let is_websocket = accepted.framing == Framing::WebSocket;
        let is_pending = !is_authenticated || !accepted.stream.is_open() || is_websocket;
        let source = accepted.source;
        limits::evict_pending(&mut self.engine, &mut self.network, source, is_pending);
        let Some(id) = self.engine.connect(now) else { return };
        if let Some(client) = self.engine.state.clients.get_mut(id) {
            client.source = source;
        }
        if self.network.insert(now, id, accepted, is_authenticated, is_pending).is_err() {
            self.close(id);
        }
    }

    /// Tells a client before its logon that its frame is too long. A WebSocket's close says so.
    fn reject_frame(&mut self, id: ClientId) {
        let connection = self.network.connections.get(id);
        let accepts_frames = connection.is_some_and(|it| it.is_open() && !it.is_websocket());
        if accepts_frames && !self.engine.is_authenticated(id) {
            let limit = self.network.frame_limit(false);
            self.engine.state.clients.reply(id, |out| rejection::frame_too_long(limit, out));
            self.write(id);
        }
    }

    fn end_connection(&mut self, id: ClientId, reason: CloseReason) {
        limits::end_connection(&mut self.engine, &mut self.network, id, reason);
    }

    /// Ends a broken connection.
    fn close(&mut self, id: ClientId) {
        self.network.remove(id, None);
        self.engine.disconnect(id);
    }

    /// Stops accepting and reading, and empties send queues for as long as the configuration says;
    /// whether all are empty.
    pub fn drain(mut self) -> bool {
        let start = Instant::now();
        let limit = self.engine.state.config.drain;
        self.network.stop_reading();
        self.engine.wait_durable(limit);
        loop {
            let unsent: Vec<ClientId> =
                self.network.connections.ids().filter(|id| self.has_unsent(*id)).collect();
            unsent.iter().for_each(|id| self.write_last(*id));
            let left = limit.saturating_sub(start.elapsed());
            if unsent.is_empty() || left.is_zero() {
                for connection in self.network.connections.iter_mut() {
                    connection.close(CloseReason::Shutdown);
                }
                return unsent.is_empty();
            }
            let mut ready = Vec::new();
            if self.network.poller.wait(Some(left.min(DRAIN_POLL)), &mut ready).is_err() {
                return false;
            }
        }
    }

    /// Whether bytes wait for a client.
    fn has_unsent(&self, id: ClientId) -> bool {
        let connection = self.network.connections.get(id);
        let client = self.engine.state.clients.get(id);
        connection.is_some_and(Connection::has_unsent)
            || client.is_some_and(|client| !client.queue.is_empty())
    }

    fn write_last(&mut self, id: ClientId) {
        let Some(connection) = self.network.connections.get_mut(id) else { return };
        let is_sent = self.engine.send(id, |slices| connection.write(slices));
        let is_empty = connection.flush() && is_sent;
        self.network.poll_write(id, is_empty);
    }
}
