//! The daemon that resolvers meet at: its sockets, and its one thread.

mod closing;

use crate::error::{OpenError, system};
use crate::frame_stream::FrameStream;
use closing::Closing;
use lanecast_base::clock::Clock;
use lanecast_base::{Agent, AgentRunner};
use lanecast_os::event::EventBell;
use lanecast_os::poll::PollRoom;
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

/// The port that a daemon listens at if nothing else is said.
pub const RESOLVER_PORT: u16 = 7331;
/// Connections that wait to be accepted, and the most that are in one turn.
const BACKLOG: u32 = 128;
/// What the system may hold for a client, each way, in bytes.
const SOCKET_BYTES: usize = 128 << 10;
/// The longest sleep; the shortest while somebody does not read what is due.
const REST_MAX: Nanos = SECOND;
const REST_MIN: Nanos = 10 * MILLISECOND;
/// After the system has refused another connection, none is accepted for this long.
const REFUSED_REST: Nanos = 100 * MILLISECOND;
/// The most refusals that wait to be asked for; older ones are forgotten.
const REFUSALS_MAX: usize = 64;
const READ_BYTES: usize = 64 << 10;

/// What a daemon is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DaemonSettings {
    /// Where it listens; port 0 takes any that is free.
    pub listen: SocketAddr,
    /// The most clients.
    pub clients_max: usize,
    /// The most topics that a client may publish, and the most that it may want.
    pub client_topics_max: usize,
    /// The most topics that may be published and wanted by all of them.
    pub topics_max: usize,
    /// How long the publishers of a client whose connection is gone are kept.
    pub grace: Duration,
}

impl DaemonSettings {
    /// A daemon at `listen`, with the limits that it has if nothing else is said.
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

/// The daemon. Turned by [`AgentRunner`](lanecast_base::Runner), or by whoever calls
/// [`do_work`](Agent::do_work) and [`idle`](Agent::idle) in turn.
#[derive(Debug)]
pub struct ResolverDaemon {
    registry: ResolverServer,
    clock: Clock,
    listener: TcpListener,
    /// None is accepted before.
    accept_from: Nanos,
    clients: BTreeMap<u64, FrameStream>,
    closing: Closing,
    refusals: VecDeque<RejectedClient>,
    bell: Arc<EventBell>,
    room: PollRoom,
    /// The clients that the last sleep has found something from.
    ready: Vec<u64>,
    buffer: Box<[u8]>,
}

impl ResolverDaemon {
    /// Listens.
    ///
    /// # Errors
    /// If the address is taken or not this host's.
    pub fn open(settings: &DaemonSettings) -> Result<Self, OpenError> {
        let listener =
            tcp::listen(settings.listen, BACKLOG).map_err(system("listen for resolvers"))?;
        let clock = Clock::host();
        let daemon = process::random().map_err(system("get a random number"))?;
        let registry = resolver_server::ResolverServerSettings {
            daemon: daemon.max(1),
            clients_max: settings.clients_max,
            client_topics_max: settings.client_topics_max,
            topics_max: settings.topics_max,
            grace: crate::settings::nanos(settings.grace),
            ..resolver_server::ResolverServerSettings::default()
        };
        Ok(Self {
            registry: ResolverServer::new(registry, clock.ns(clock.ticks())),
            clock,
            listener,
            accept_from: 0,
            clients: BTreeMap::new(),
            closing: Closing::default(),
            refusals: VecDeque::new(),
            bell: Arc::new(EventBell::new(false).map_err(system("make a bell"))?),
            room: PollRoom::default(),
            ready: Vec::new(),
            buffer: vec![0; READ_BYTES].into_boxed_slice(),
        })
    }

    /// Starts one in a thread of its own; gives where it listens, too.
    pub(crate) fn start(settings: &DaemonSettings) -> Result<(AgentRunner, SocketAddr), OpenError> {
        let daemon = Self::open(settings)?;
        let address = daemon.address().map_err(system("look at a socket"))?;
        let bell = daemon.bell();
        let runner = AgentRunner::start(Box::new(daemon), move || bell.ring());
        Ok((runner.map_err(system("start a thread"))?, address))
    }

    /// Where it listens.
    ///
    /// # Errors
    /// If the system does not say.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Ends its sleep when rung.
    pub fn bell(&self) -> Arc<EventBell> {
        Arc::clone(&self.bell)
    }

    /// How much it has done.
    pub const fn counters(&self) -> &DaemonCounters {
        self.registry.counters()
    }

    /// How many clients are connected.
    pub fn clients(&self) -> usize {
        self.registry.clients()
    }

    /// How many sessions are registered.
    pub fn sessions(&self) -> usize {
        self.registry.sessions()
    }

    /// How many topics are published and wanted, counted once for each session and client.
    pub const fn topics(&self) -> usize {
        self.registry.topics()
    }

    /// A client whose connection the daemon has ended, where it came from and why. Only the last
    /// few are kept.
    pub fn next_refusal(&mut self) -> Option<(SocketAddr, RejectReason)> {
        self.refusals.pop_front().map(|refused| (refused.from, refused.why))
    }

    fn now(&self) -> Nanos {
        self.clock.ns(self.clock.ticks())
    }

    fn accept(&mut self, now: Nanos) -> usize {
        if now < self.accept_from {
            return 0;
        }
        for accepted in 0..BACKLOG as usize {
            match self.listener.accept() {
                Ok((stream, from)) => self.admit(now, stream, from),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return accepted,
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
        match self.registry.connect(now, from) {
            Ok(client) => {
                self.clients.insert(client, FrameStream::new(stream));
                self.ready.push(client);
            }
            Err(why) => {
                self.see_off(
                    now,
                    Some(stream),
                    RejectedClient { client: 0, from, resolver: 0, why },
                );
            }
        }
    }

    /// Tells a client why it has to go, if that can be, and closes.
    fn see_off(&mut self, now: Nanos, stream: Option<TcpStream>, refused: RejectedClient) {
        if let Some(stream) = stream {
            let length = self.registry.write_eject(refused.resolver, refused.why, &mut self.buffer);
            self.closing.add(now, stream, &self.buffer[..length]);
        }
        if self.refusals.len() >= REFUSALS_MAX {
            self.refusals.pop_front();
        }
        self.refusals.push_back(refused);
    }

    fn read(&mut self, now: Nanos) -> usize {
        let mut heard = 0;
        for client in std::mem::take(&mut self.ready) {
            let Some(stream) = self.clients.get_mut(&client) else { continue };
            let registry = &mut self.registry;
            let read = stream.read(&mut self.buffer, |frame| {
                registry.on_frame(now, client, frame);
                registry.is_connected(client)
            });
            match read {
                Ok(frames) => heard += frames,
                Err(error) if error.kind() == ErrorKind::InvalidData => {
                    self.registry.reject(now, client, RejectReason::Malformed);
                }
                Err(_) => self.leave(now, client),
            }
        }
        heard
    }

    fn leave(&mut self, now: Nanos, client: u64) {
        self.registry.disconnect(now, client);
        self.clients.remove(&client);
    }

    fn write(&mut self, now: Nanos) -> usize {
        let (mut written, mut broken) = (0, Vec::new());
        for (&client, stream) in &mut self.clients {
            match stream.write(|buffer| self.registry.next_frame(now, client, buffer)) {
                Ok(frames) => written += frames,
                Err(_) => broken.push(client),
            }
        }
        broken.into_iter().for_each(|client| self.leave(now, client));
        written
    }

    fn close_refused(&mut self, now: Nanos) {
        while let Some(refused) = self.registry.next_rejected() {
            let stream = self.clients.remove(&refused.client).and_then(FrameStream::into_stream);
            self.see_off(now, stream, refused);
        }
    }

    /// Until when it may sleep.
    fn rest(&self, now: Nanos) -> Duration {
        let due = self.registry.next_deadline().into_iter().chain(self.closing.deadline()).min();
        let rest = due.map_or(REST_MAX, |due| due.saturating_sub(now));
        Duration::from_nanos(rest.clamp(REST_MIN, REST_MAX))
    }
}

impl Agent for ResolverDaemon {
    fn do_work(&mut self) -> usize {
        let now = self.now();
        let accepted = self.accept(now);
        let heard = self.read(now);
        self.registry.on_time(now);
        self.close_refused(now);
        self.closing.turn(now, &mut self.buffer);
        accepted + heard + self.write(now)
    }

    fn idle(&mut self) {
        let now = self.now();
        let rest = self.rest(now);
        let mut set = self.room.clear();
        let bell = set.add(self.bell.as_fd(), false);
        if now >= self.accept_from {
            set.add(self.listener.as_fd(), false);
        }
        for stream in self.closing.streams() {
            set.add(stream.as_fd(), false);
        }
        let clients = self.clients.iter();
        let places: Vec<(u64, usize)> = clients
            .map(|(client, it)| (*client, set.add(it.stream().as_fd(), it.has_more())))
            .collect();
        set.wait(Some(rest));
        let ready = places.into_iter().filter(|(_, place)| set.ready(*place));
        self.ready = ready.map(|(client, _)| client).collect();
        if set.ready(bell) {
            self.bell.hush();
        }
    }

    fn name(&self) -> &'static str {
        "lanecast-resolv"
    }
}
