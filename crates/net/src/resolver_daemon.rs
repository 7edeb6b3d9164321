//! Resolver daemon: discovery for networks without multicast.
//!
//! Resolvers connect by TCP, register their publications and query for topics. One thread runs the
//! protocol's state machine and all connections.

use crate::error::{OpenError, system};
use crate::frame_reassembler::version_of;
use crate::frame_stream::{FrameStream, READ_BYTES};
use crate::lingering_close::LingeringConnections;
use lanecast_base::clock::Clock;
use lanecast_base::{Agent, AgentRunner};
use lanecast_os::event::EventFd;
use lanecast_os::poll::PollBuffer;
use lanecast_os::process;
use lanecast_os::tcp::{self, TcpOptions};
use lanecast_protocol::resolver_server::{self, RejectedClient, ResolverServer};
use lanecast_protocol::{MILLISECOND, Nanos, SECOND};
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

pub use lanecast_protocol::resolver_server::{
    RejectReason, ResolverServerCounters as DaemonCounters,
};

/// The default port of a daemon.
pub const RESOLVER_PORT: u16 = 7331;
/// Connections that may wait to be accepted, and the most that are accepted in one turn.
const BACKLOG: u32 = 128;
/// Buffers of a client's socket, in each direction.
const SOCKET_BYTES: usize = 128 << 10;
/// The longest sleep, and the shortest while a client does not read.
const REST_MAX: Nanos = SECOND;
const REST_MIN: Nanos = 10 * MILLISECOND;
/// Pause of accepts after the system ran out of descriptors.
const REFUSED_REST: Nanos = 100 * MILLISECOND;
/// The most unread rejections; older ones are dropped.
const REJECTIONS_MAX: usize = 64;

/// Settings of a daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DaemonSettings {
    /// Listen address; port 0 takes any free port.
    pub listen: SocketAddr,
    /// The most clients.
    pub clients_max: usize,
    /// The most topics that a client may publish, and the most that it may subscribe to.
    pub client_topics_max: usize,
    /// The most publications and subscriptions of all clients together.
    pub topics_max: usize,
    /// Time for which the publications of a disconnected client are kept.
    pub grace: Duration,
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
        Self { listen, clients_max, client_topics_max, topics_max, grace }
    }
}

/// The daemon. Run by a [`AgentRunner`](lanecast_base::AgentRunner), or by a loop that calls
/// [`do_work`](Agent::do_work) and [`idle`](Agent::idle).
#[derive(Debug)]
pub struct ResolverDaemon {
    server: ResolverServer,
    clock: Clock,
    listener: TcpListener,
    /// No connection is accepted before.
    accept_from: Nanos,
    clients: BTreeMap<u64, FrameStream>,
    lingering: LingeringConnections,
    rejections: VecDeque<RejectedClient>,
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
    /// If the address is taken or not this host's.
    pub fn open(settings: &DaemonSettings) -> Result<Self, OpenError> {
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
            listener,
            accept_from: 0,
            clients: BTreeMap::new(),
            lingering: LingeringConnections::default(),
            rejections: VecDeque::new(),
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
        self.listener.local_addr()
    }

    /// The event that ends the daemon's sleep.
    pub fn event(&self) -> Arc<EventFd> {
        Arc::clone(&self.event)
    }

    /// The daemon's counters.
    pub const fn counters(&self) -> &DaemonCounters {
        self.server.counters()
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

    /// Address of a client whose connection the daemon has closed, and the reason. The newest 64
    /// are kept.
    pub fn next_rejection(&mut self) -> Option<(SocketAddr, RejectReason)> {
        self.rejections.pop_front().map(|rejected| (rejected.from, rejected.why))
    }

    fn now(&self) -> Nanos {
        self.clock.ns(self.clock.ticks())
    }

    fn accept(&mut self, now: Nanos) -> usize {
        // A pause without descriptors: accept would fail again at once, and poll(2) never sleep.
        if now < self.accept_from {
            return 0;
        }
        for accepted in 0..BACKLOG as usize {
            match self.listener.accept() {
                Ok((stream, from)) => self.admit(now, stream, from),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return accepted,
                // The client has gone while it waited: the next one is tried.
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
                // No descriptors are left, or no memory.
                Err(_) => {
                    self.accept_from = now.saturating_add(REFUSED_REST);
                    return accepted;
                }
            }
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
        match self.server.connect(now, from) {
            Ok(client) => {
                self.clients.insert(client, FrameStream::new(stream));
                // Its first frame may have come along with the connect.
                self.ready.push(client);
            }
            Err(why) => {
                self.reject(
                    now,
                    Some(stream),
                    RejectedClient { client: 0, from, resolver: 0, why },
                );
            }
        }
    }

    /// Sends a client the reason, if its stream is intact, and closes the connection.
    fn reject(&mut self, now: Nanos, stream: Option<TcpStream>, rejected: RejectedClient) {
        if let Some(stream) = stream {
            let length = self.server.write_eject(rejected.resolver, rejected.why, &mut self.buffer);
            self.lingering.add(now, stream, &self.buffer[..length]);
        }
        // The oldest goes: a log that is not read must not grow.
        if self.rejections.len() >= REJECTIONS_MAX {
            self.rejections.pop_front();
        }
        self.rejections.push_back(rejected);
    }

    fn read(&mut self, now: Nanos) -> usize {
        let mut received = 0;
        for client in std::mem::take(&mut self.ready) {
            let Some(stream) = self.clients.get_mut(&client) else { continue };
            let server = &mut self.server;
            let read = stream.read(&mut self.buffer, |frame| {
                server.on_frame(now, client, frame);
                server.is_connected(client)
            });
            match read {
                Ok(frames) => received += frames,
                Err(error) if error.kind() == ErrorKind::InvalidData => {
                    // Stays open for now: `close_rejected` sends the reason, and closes it.
                    let other = version_of(&error).map(RejectReason::OtherVersion);
                    self.server.reject(now, client, other.unwrap_or(RejectReason::Malformed));
                }
                Err(_) => self.leave(now, client),
            }
        }
        received
    }

    fn leave(&mut self, now: Nanos, client: u64) {
        self.server.disconnect(now, client);
        self.clients.remove(&client);
    }

    fn write(&mut self, now: Nanos) -> usize {
        let (mut written, mut broken) = (0, Vec::new());
        for (&client, stream) in &mut self.clients {
            match stream.write(|buffer| self.server.next_frame(now, client, buffer)) {
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
        let due = self.server.next_deadline().into_iter().chain(self.lingering.deadline()).min();
        let rest = due.map_or(REST_MAX, |due| due.saturating_sub(now));
        Duration::from_nanos(rest.clamp(REST_MIN, REST_MAX))
    }
}

impl Agent for ResolverDaemon {
    fn do_work(&mut self) -> usize {
        let now = self.now();
        let accepted = self.accept(now);
        let received = self.read(now);
        self.server.on_time(now);
        // After the timers and before the writes: a rejected client gets no frame after the Eject.
        self.close_rejected(now);
        self.lingering.poll(now, &mut self.buffer);
        accepted + received + self.write(now)
    }

    fn idle(&mut self) {
        let now = self.now();
        let rest = self.rest(now);
        let mut set = self.room.clear();
        let event = set.add(self.event.as_fd(), false);
        // Left out during the pause: a waiting client would end every sleep.
        if now >= self.accept_from {
            set.add(self.listener.as_fd(), false);
        }
        for stream in self.lingering.streams() {
            set.add(stream.as_fd(), false);
        }
        let clients = self.clients.iter();
        let tokens: Vec<(u64, usize)> = clients
            .map(|(client, it)| (*client, set.add(it.stream().as_fd(), it.has_more())))
            .collect();
        set.wait(Some(rest));
        let ready = tokens.into_iter().filter(|(_, token)| set.ready(*token));
        self.ready = ready.map(|(client, _)| client).collect();
        if set.ready(event) {
            self.event.clear();
        }
    }

    fn name(&self) -> &'static str {
        "lanecast-resolv"
    }
}
