//! Resolver daemon: discovery for networks without multicast.
//!
//! Resolvers connect by TCP, register their publications and query for topics. One thread runs the
//! protocol's state machine and all connections.

use crate::error::{OpenError, system};
use crate::frame_reassembler::{OtherFrames, other_frames};
use crate::frame_stream::{FrameStream, READ_BYTES};
use crate::handshakes::{
    HandshakeAdmission, HandshakeCounters, HandshakeLimiter, HandshakeShare, OVER_RATE, gives_way,
};
use crate::lingering_close::LingeringConnections;
use crate::telemetry::Telemetry;
use lanecast_base::clock::Clock;
use lanecast_base::{Agent, AgentRunner};
use lanecast_os::PausingListener;
use lanecast_os::event::EventFd;
use lanecast_os::poll::PollBuffer;
use lanecast_os::process;
use lanecast_os::tcp::{self, TcpOptions};
use lanecast_protocol::resolver_server::{
    self, RejectReason, RejectedClient, ResolverServer, UNIDENTIFIED_MAX,
};
use lanecast_protocol::{MILLISECOND, Nanos, SECOND};
use lanecast_tls::{ByteStream, TlsIdentity, TlsSettings};
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use lanecast_protocol::resolver_server::ResolverServerCounters as DaemonCounters;

/// The default port of a daemon.
pub const RESOLVER_PORT: u16 = 7331;
/// Connections that may wait to be accepted, and the most that are accepted in one turn.
const BACKLOG: u32 = 128;
/// Buffers of a client's socket, in each direction.
const SOCKET_BYTES: usize = 128 << 10;
/// The longest sleep, and the shortest while a client does not read.
const REST_MAX: Nanos = SECOND;
const REST_MIN: Nanos = 10 * MILLISECOND;
/// Time between two looks at the files of TLS.
const FILES_REFRESH: Nanos = 500 * MILLISECOND;
/// Time that a rejected client has to close, and the most such connections.
const LINGER: Nanos = SECOND;
const LINGERING_MAX: usize = 64;
/// The most unread rejections; older ones are dropped.
const REJECTIONS_MAX: usize = 64;

/// Settings of a daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DaemonSettings {
    /// Listen address; port 0 takes any free port.
    pub listen: SocketAddr,
    /// The most clients; up to 64 connections more may not have sent a frame yet.
    pub clients_max: usize,
    /// The most topics that a client may publish, and the most that it may subscribe to.
    pub client_topics_max: usize,
    /// The most publications and subscriptions of all clients together.
    pub topics_max: usize,
    /// Time for which the publications of a disconnected client are kept.
    pub grace: Duration,
    /// TLS 1.3 of all connections; by default they are plain. With authorities, clients have to
    /// show a certificate of one. The files are read again when they change.
    pub tls: TlsSettings,
}

impl DaemonSettings {
    /// Default settings of a daemon at `listen`.
    pub fn at(listen: SocketAddr) -> Self {
        let resolver_server::ResolverServerSettings {
            clients_max,
            client_topics_max,
            topics_max,
            grace,
            ..
        } = resolver_server::ResolverServerSettings::default();
        let grace = Duration::from_nanos(grace);
        let tls = TlsSettings::default();
        Self { listen, clients_max, client_topics_max, topics_max, grace, tls }
    }
}

/// The daemon. Run by a [`AgentRunner`](lanecast_base::AgentRunner), or by a loop that calls
/// [`do_work`](Agent::do_work) and [`idle`](Agent::idle).
#[derive(Debug)]
pub struct ResolverDaemon {
    server: ResolverServer,
    clock: Clock,
    listener: PausingListener,
    /// TLS of connections, if they are encrypted, and the time of the next look at its files.
    tls: Option<(TlsIdentity, Nanos)>,
    handshakes: HandshakeLimiter,
    /// Clients that are readable, and whose handshakes wait for their turn.
    waiting: Vec<(u64, IpAddr)>,
    clients: BTreeMap<u64, FrameStream>,
    lingering: LingeringConnections,
    rejections: VecDeque<(SocketAddr, String)>,
    /// The last error of reading the files of TLS, and whether it is still to be told.
    file_error: Option<(String, bool)>,
    event: Arc<EventFd>,
    room: PollBuffer,
    /// Clients whose connections are readable.
    ready: Vec<u64>,
    buffer: Box<[u8]>,
}

impl ResolverDaemon {
    /// Opens the listening socket.
    ///
    /// # Errors
    /// If the address is taken or not this host's, or the files of TLS cannot be used.
    pub fn open(settings: &DaemonSettings) -> Result<Self, OpenError> {
        let tls = TlsIdentity::open(&settings.tls).map_err(OpenError::Tls)?;
        if tls.as_ref().is_some_and(|tls| !tls.can_accept()) {
            return Err(OpenError::Setting {
                what: "net.tls_certificate",
                fix: "a resolver daemon needs one to show to its clients, and net.tls_key",
            });
        }
        let listener =
            tcp::listen(settings.listen, BACKLOG).map_err(system("listen for resolvers"))?;
        let clock = Clock::host();
        let daemon = process::random().map_err(system("get a random number"))?;
        let server = resolver_server::ResolverServerSettings {
            daemon: daemon.max(1),
            clients_max: settings.clients_max,
            client_topics_max: settings.client_topics_max,
            topics_max: settings.topics_max,
            grace: crate::settings::nanos(settings.grace),
            ..resolver_server::ResolverServerSettings::default()
        };
        Ok(Self {
            server: ResolverServer::new(server, clock.ns(clock.ticks())),
            clock,
            listener: PausingListener::new(listener),
            tls: tls.map(|tls| (tls, 0)),
            handshakes: HandshakeLimiter::new(HandshakeShare::Half, Telemetry::disabled()),
            waiting: Vec::new(),
            clients: BTreeMap::new(),
            lingering: LingeringConnections::new(LINGERING_MAX),
            rejections: VecDeque::new(),
            file_error: None,
            event: Arc::new(EventFd::new(false).map_err(system("make an event"))?),
            room: PollBuffer::default(),
            ready: Vec::new(),
            buffer: vec![0; READ_BYTES].into_boxed_slice(),
        })
    }

    /// Starts a daemon in a thread of its own; returns its address as well.
    pub(crate) fn start(settings: &DaemonSettings) -> Result<(AgentRunner, SocketAddr), OpenError> {
        let daemon = Self::open(settings)?;
        let address = daemon.address().map_err(system("look at a socket"))?;
        let event = daemon.event();
        let runner = AgentRunner::start(Box::new(daemon), move || event.signal());
        Ok((runner.map_err(system("start a thread"))?, address))
    }

    /// The listen address.
    ///
    /// # Errors
    /// If the system does not say.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.socket().local_addr()
    }

    /// The event that ends the daemon's sleep.
    pub fn event(&self) -> Arc<EventFd> {
        Arc::clone(&self.event)
    }

    /// The daemon's counters.
    pub const fn counters(&self) -> &DaemonCounters {
        self.server.counters()
    }

    /// TLS handshakes of clients, and connections that gave way before their first frame.
    pub const fn handshakes(&self) -> &HandshakeCounters {
        self.handshakes.counters()
    }

    /// Number of connected clients.
    pub fn clients(&self) -> usize {
        self.server.clients()
    }

    /// Number of registered sessions.
    pub fn sessions(&self) -> usize {
        self.server.sessions()
    }

    /// Number of publications and subscriptions, over all sessions and clients.
    pub const fn topics(&self) -> usize {
        self.server.topics()
    }

    /// Address of a client whose connection the daemon has closed, and the reason in words. The
    /// newest 64 are kept.
    pub fn next_rejection(&mut self) -> Option<(SocketAddr, String)> {
        self.rejections.pop_front()
    }

    /// The error of reading the files of TLS again, once for each; the old ones stay in use.
    pub fn next_file_error(&mut self) -> Option<String> {
        let (error, is_new) = self.file_error.as_mut()?;
        std::mem::take(is_new).then(|| error.clone())
    }

    fn now(&self) -> Nanos {
        self.clock.ns(self.clock.ticks())
    }

    fn accept(&mut self, now: Nanos) -> usize {
        for accepted in 0..BACKLOG as usize {
            let Some((stream, from)) = self.listener.accept(now) else { return accepted };
            self.admit(now, stream, from);
        }
        BACKLOG as usize
    }

    fn admit(&mut self, now: Nanos, stream: TcpStream, from: SocketAddr) {
        let options = TcpOptions {
            send_buffer_bytes: SOCKET_BYTES,
            receive_buffer_bytes: SOCKET_BYTES,
            ..TcpOptions::default()
        };
        if tcp::tune(&stream, &options).is_err() {
            return;
        }
        if self.tls.is_some()
            && let HandshakeAdmission::Refused { is_first } = self.handshakes.admit(now, from.ip())
        {
            // A resolver tries again after a reset, and tells nothing of it.
            drop(tcp::reset_on_close(&stream));
            if is_first {
                self.note(from, format!("it {OVER_RATE}"));
            }
            return;
        }
        self.make_room(now, from.ip());
        match self.server.connect(now, from) {
            Ok(client) => {
                let stream = match &self.tls {
                    None => Ok(ByteStream::plain(stream)),
                    Some((tls, _)) => tls.accept(stream),
                };
                let Ok(stream) = stream else { return self.server.disconnect(now, client) };
                self.clients.insert(client, FrameStream::new(stream));
                // Its first frame may have come along with the connect.
                self.ready.push(client);
            }
            Err(why) => {
                // Under TLS nothing can be said before the handshake.
                let stream = self.tls.is_none().then(|| ByteStream::plain(stream));
                self.reject(now, stream, RejectedClient { client: 0, from, resolver: 0, why });
            }
        }
    }

    /// Closes the oldest connection that has sent no frame, preferably one from `from`, if there
    /// are too many. Silent connections keep no client out.
    fn make_room(&mut self, now: Nanos, from: IpAddr) {
        let unidentified = self.server.unidentified().map(|(client, from)| (client, from.ip()));
        let is_crowded = |unidentified: usize| unidentified >= UNIDENTIFIED_MAX;
        let Some(oldest) = gives_way(unidentified, from, is_crowded) else { return };
        if let Some(stream) = self.clients.get(&oldest) {
            drop(tcp::reset_on_close(stream.stream().socket()));
        }
        self.handshakes.displaced();
        self.leave(now, oldest);
    }

    /// Sends a client the reason, if its stream is intact, and closes the connection.
    fn reject(&mut self, now: Nanos, stream: Option<ByteStream>, rejected: RejectedClient) {
        if let Some(stream) = stream {
            let length = self.server.write_eject(rejected.resolver, rejected.why, &mut self.buffer);
            let until = now.saturating_add(LINGER);
            self.lingering.add(until, stream, &self.buffer[..length]);
        }
        self.note(rejected.from, rejected.why.to_string());
    }

    /// Notes why a connection is closed.
    fn note(&mut self, from: SocketAddr, why: String) {
        // The oldest goes: a log that is not read must not grow.
        if self.rejections.len() >= REJECTIONS_MAX {
            self.rejections.pop_front();
        }
        self.rejections.push_back((from, why));
    }

    fn read(&mut self, now: Nanos) -> usize {
        let mut received = 0;
        self.waiting.clear();
        for client in std::mem::take(&mut self.ready) {
            let Some(stream) = self.clients.get(&client) else { continue };
            if stream.stream().is_open() {
                received += self.read_client(now, client).unwrap_or(0);
            } else if let Some(from) = self.server.address(client) {
                self.waiting.push((client, from.ip()));
            }
        }
        received + self.shake_hands(now)
    }

    /// Takes one step of one handshake, if it is time for one: all other clients are served before
    /// the next. Returns the number of frames that have come with it.
    fn shake_hands(&mut self, now: Nanos) -> usize {
        if self.waiting.is_empty() || !self.handshakes.is_due(now) {
            return 0;
        }
        self.handshakes.sort(&mut self.waiting);
        for (client, from) in std::mem::take(&mut self.waiting) {
            let start = Instant::now();
            // Nothing has come from a client that has just been accepted: the next one's turn.
            let Some(frames) = self.read_client(now, client) else { continue };
            let is_open = self.clients.get(&client).is_some_and(|it| it.stream().is_open());
            self.handshakes.on_step(now, from, start.elapsed(), is_open);
            return frames;
        }
        0
    }

    /// Reads once from a client; returns the number of frames, `None` if nothing has come.
    fn read_client(&mut self, now: Nanos, client: u64) -> Option<usize> {
        let (stream, server) = (self.clients.get_mut(&client)?, &mut self.server);
        let read = stream.read(&mut self.buffer, |frame| {
            server.on_frame(now, client, frame);
            server.is_connected(client)
        });
        match read {
            Ok(frames) => return frames,
            Err(error) if error.kind() == ErrorKind::InvalidData => {
                self.refuse(now, client, &error);
            }
            Err(_) => self.leave(now, client),
        }
        Some(0)
    }

    /// Closes the connection of a client that sends something else than frames of this version.
    fn refuse(&mut self, now: Nanos, client: u64, error: &io::Error) {
        // For these two the connection stays open for now: `close_rejected` sends the reason.
        match other_frames(error) {
            Some(OtherFrames::Version(version)) => {
                self.server.reject(now, client, RejectReason::OtherVersion(version));
            }
            None if error.get_ref().is_none() => {
                self.server.reject(now, client, RejectReason::Malformed);
            }
            _ => {
                if let Some(from) = self.server.refuse(now, client) {
                    self.note(from, format!("it {error}"));
                }
                self.clients.remove(&client);
            }
        }
    }

    /// Reads the files of TLS again if they have changed.
    fn refresh_files(&mut self, now: Nanos) {
        let Some((tls, due)) = self.tls.as_mut().filter(|(_, due)| *due <= now) else { return };
        *due = now + FILES_REFRESH;
        match tls.refresh() {
            Ok(false) => {}
            Ok(true) => self.file_error = None,
            Err(error) => {
                let error = error.to_string();
                // Tried again and again: told once.
                if self.file_error.as_ref().is_none_or(|(last, _)| *last != error) {
                    self.file_error = Some((error, true));
                }
            }
        }
    }

    fn leave(&mut self, now: Nanos, client: u64) {
        self.server.disconnect(now, client);
        self.clients.remove(&client);
    }

    fn write(&mut self, now: Nanos) -> usize {
        let (mut written, mut broken) = (0, Vec::new());
        for (&client, stream) in &mut self.clients {
            // Nothing is said to a client that has not shown who it is.
            let is_open = stream.stream().is_open();
            let next = |buffer: &mut [u8]| {
                is_open.then(|| self.server.next_frame(now, client, buffer)).flatten()
            };
            match stream.write(next) {
                Ok(frames) => written += frames,
                Err(_) => broken.push(client),
            }
        }
        broken.into_iter().for_each(|client| self.leave(now, client));
        written
    }

    fn close_rejected(&mut self, now: Nanos) {
        while let Some(rejected) = self.server.next_rejected() {
            let stream = self.clients.remove(&rejected.client).and_then(FrameStream::into_stream);
            self.reject(now, stream, rejected);
        }
    }

    /// Length of the next sleep.
    fn rest(&self, now: Nanos) -> Duration {
        let files = self.tls.as_ref().map(|(_, due)| *due);
        let due = self.server.next_deadline().into_iter().chain(self.lingering.deadline());
        let due = due.chain(files).chain(self.listener.paused_until()).min();
        let rest = due.map_or(REST_MAX, |due| due.saturating_sub(now)).clamp(REST_MIN, REST_MAX);
        let handshakes = (!self.waiting.is_empty()).then(|| self.handshakes.next_step());
        let handshakes = handshakes.map_or(rest, |step| step.saturating_sub(now));
        Duration::from_nanos(rest.min(handshakes))
    }
}

impl Agent for ResolverDaemon {
    fn do_work(&mut self) -> usize {
        let now = self.now();
        self.refresh_files(now);
        let accepted = self.accept(now);
        let received = self.read(now);
        self.server.on_time(now);
        // After the timers and before the writes: a rejected client gets no frame after the Eject.
        self.close_rejected(now);
        self.lingering.poll(now, &mut self.buffer);
        let served = received + self.write(now);
        // Only `idle` finds out who has something to say: strangers who keep coming must not keep
        // the daemon from that. It does not sleep while one waits.
        if accepted == 0 { served } else { 0 }
    }

    fn idle(&mut self) {
        let now = self.now();
        let rest = self.rest(now);
        let mut set = self.room.clear();
        let event = set.add(self.event.as_fd(), false);
        if let Some(listener) = self.listener.waited_for() {
            set.add(listener.as_fd(), false);
        }
        for stream in self.lingering.streams() {
            set.add(stream.as_fd(), false);
        }
        // Nor those whose handshakes wait for their turn: they are readable.
        let waits = |client: u64| self.waiting.iter().any(|(waiting, _)| *waiting == client);
        let clients = self.clients.iter().filter(|(client, _)| !waits(**client));
        let tokens: Vec<(u64, usize)> = clients
            .map(|(client, it)| (*client, set.add(it.stream().as_fd(), it.has_more())))
            .collect();
        set.wait(Some(rest));
        let ready = tokens.into_iter().filter(|(_, token)| set.ready(*token));
        self.ready = ready.map(|(client, _)| client).collect();
        self.ready.extend(self.waiting.iter().map(|(client, _)| *client));
        if set.ready(event) {
            self.event.clear();
        }
    }

    fn name(&self) -> &'static str {
        "lanecast-resolv"
    }
}
