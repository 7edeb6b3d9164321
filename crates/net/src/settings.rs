//! Settings of the network transports, and their limits.

#[cfg(test)]
mod tests;

use crate::error::OpenError;
use crate::peer_names::port;
use crate::source::TransportKind;
use lanecast_base::WaitStrategy;
use lanecast_protocol::fec::FecSettings;
use lanecast_protocol::receiver::DeliveryOrder;
use lanecast_tls::TlsSettings;
use lanecast_wire::net::{
    DATAGRAM_MIN, FEC_DATA_MAX, FEC_DATAGRAM_MAX, FEC_PARITY_MAX, SEALED_OVERHEAD,
};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// The smallest window of a session, in bytes.
pub const WINDOW_MIN: usize = 64 << 10;
/// The largest window of a session, in bytes.
pub const WINDOW_MAX: usize = 1 << 30;

/// The most receive threads.
const RECEIVE_THREADS_MAX: usize = 16;
/// The most resolver daemons.
const RESOLVERS_MAX: usize = 16;
/// The most peers.
const PEERS_MAX: usize = 64;
/// The most names of peers.
const PEER_NAMES_MAX: usize = 16;
/// The longest DNS name with its port, in bytes.
const PEER_NAME_BYTES: usize = 253 + 6;

/// Shortest interval of keep-warm frames: it bounds the traffic of a silent session.
const KEEP_WARM_MIN: Duration = Duration::from_micros(20);

/// Settings of a network: one interface, and the sessions on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetSettings {
    /// The interface: one of its addresses, a network in CIDR form that holds one, or its name.
    pub interface: String,
    /// Multicast group and port of [`TransportKind::Rm`].
    pub group: SocketAddr,
    /// Topics with a group of their own, for publishers that are opened with them. The later of
    /// two entries for a topic counts.
    pub groups: Vec<(String, SocketAddr)>,
    /// Time to live of multicast datagrams: the routers that they may pass, plus one.
    pub hops: u32,
    /// Multicast group of discovery.
    pub resolver_group: Option<SocketAddr>,
    /// Resolver daemons for discovery without multicast; any one is enough.
    pub resolvers: Vec<SocketAddr>,
    /// Programs that discover each other directly, by the addresses at which they listen. The list
    /// includes the program's own address.
    pub peers: Vec<SocketAddr>,
    /// DNS names of such programs, each with a port: `prices.example:7341`. A name may stand for
    /// many addresses, which may change: names are looked up every 5 seconds, by a thread of the
    /// network's own. A program takes the first port of a name that is free on its host.
    pub peer_names: Vec<String>,
    /// Port at which the program runs a resolver daemon itself; 0: any. Its address is then all
    /// that others need to find its publishers.
    pub resolver_port: Option<u16>,
    /// Transports that subscribers accept.
    pub accept: Vec<TransportKind>,
    /// Whether discovery accepts advertisements of publishers at other addresses than the
    /// sender's, in the group and from peers. From daemons it always does.
    pub foreign_adverts: bool,
    /// The most TCP publishers at one address that a subscriber joins: each takes a descriptor.
    pub streams_each: usize,
    /// A file with the keys under which all datagrams are encrypted and authenticated, private to
    /// its owner: 64 hexadecimal digits a line. The first key seals, all open, and the file is read
    /// again when it changes. It does not seal connections: without [`tls`](Self::tls) there are
    /// none then, neither [`TransportKind::Tcp`] nor resolver daemons.
    pub key_file: Option<PathBuf>,
    /// TLS 1.3 of all connections, those of [`TransportKind::Tcp`] and those to resolver daemons;
    /// by default they are plain. The files are read again when they change.
    pub tls: TlsSettings,
    /// The port of a publisher's control socket; 0: any.
    pub port: u16,
    /// The publisher's window, in bytes: messages kept for repairs and late joiners.
    pub window_bytes: usize,
    /// The longest datagram, in bytes; `None`: as long as the interface and 1500-byte links allow.
    pub datagram_bytes: Option<usize>,
    /// The longest message, in bytes; `None`: an eighth of the window.
    pub longest_message: Option<usize>,
    /// The most receivers of a session.
    pub receivers_max: usize,
    /// The most topics of a session.
    pub topics_max: usize,
    /// The receivers that a publisher waits for.
    pub pacing: Pacing,
    /// The tag of subscribers for [`Pacing::Tagged`]; 0: none.
    pub tag: u32,
    /// Whether subscribers start with the oldest message in the publisher's window.
    pub late_join: bool,
    /// Time after which a missing message counts as lost.
    pub recovery: Duration,
    /// Order and patience of subscribers.
    pub delivery: DeliverySettings,
    /// Silence after which the other side counts as dead.
    pub liveness: Duration,
    /// Longest interval between two heartbeats.
    pub heartbeat: Duration,
    /// Interval of frames that keep the way of a publisher's messages warm in silence, from 20 µs
    /// to the heartbeat's: one receiver in turn, or the group, gets a short heartbeat, so that the
    /// first message after a pause does not find cold caches. The thread that sends messages sends
    /// them: with [`ThreadingMode::Caller`] the program's, while it
    /// [polls](lanecast_transport::Publish::poll_events) the publisher's events. `None`: heartbeats
    /// only.
    pub keep_warm: Option<Duration>,
    /// Limit of a publisher's data rate, in bytes per second; `None`: no limit.
    pub data_rate: Option<u64>,
    /// Share of the rate that repairs may take, in percent.
    pub repair_share: u32,
    /// Forward error correction of a publisher's datagrams: the data datagrams of a block, and the
    /// parity frames that follow it; `None`: no parity.
    pub fec: Option<(u8, u8)>,
    /// Longest time from a datagram to the parity of its block.
    pub fec_delay: Duration,
    /// Receive buffer of a socket (SO_RCVBUF), in bytes.
    pub receive_buffer_bytes: usize,
    /// Send buffer of a socket (SO_SNDBUF), in bytes.
    pub send_buffer_bytes: usize,
    /// The way by which datagrams come and go.
    pub io: IoKind,
    /// Time for which the kernel polls the network card before it sleeps (SO_BUSY_POLL).
    pub busy_poll: Option<Duration>,
    /// Wait strategy of a publisher whose window is full.
    pub publisher_wait: WaitStrategy,
    /// Wait strategy of a subscriber without messages.
    pub subscriber_wait: WaitStrategy,
    /// Threads that send and receive.
    pub threading: ThreadingMode,
    /// Receive threads of the context, at most 16, which share the transport sessions of its
    /// subscribers among them; 0: none, and [`threading`](Self::threading) says who receives. A
    /// subscriber has a socket for each, and limits of joins such as
    /// [`streams_each`](Self::streams_each) hold for each. Sessions of one multicast group have the
    /// same thread.
    pub receive_threads: usize,
    /// CPUs of the background threads: the first for discovery, and for receiving without receive
    /// threads; with [`ThreadingMode::Split`] the second for sending; those that follow for the
    /// receive threads. Empty, or too few: not pinned.
    pub cpus: Vec<usize>,

    /// Directory of the counters files that `lanecast stat` reads, the shared-memory domain's;
    /// `None`: no files.
    pub counters: Option<PathBuf>,

    /// Share of received datagrams that is dropped on purpose, per mille, for tests of loss.
    pub artificial_loss: u32,
    /// Share of datagrams that is not sent on purpose, per mille, for tests of loss.
    pub artificial_source_loss: u32,
    /// First sequence of a session, so that tests can run sequences through their wrap.
    #[doc(hidden)]
    pub first_sequence: u64,
    /// Identity of the host. Publishers of the same host and [`domain`](Self::domain) are reached
    /// through shared memory, and not joined.
    pub host: u64,
    /// Identity of the shared-memory domain that the program's publishers and subscribers use as
    /// well; 0: none.
    pub domain: u64,
}

/// The receivers that a publisher waits for (flow control).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pacing {
    /// The slowest receiver.
    #[default]
    Slowest,
    /// The slowest receiver; it is ejected after blocking the window for this long.
    SlowestOrEject(Duration),
    /// The fastest receiver. Others lose messages that leave the window, and are told.
    Fastest,
    /// The slowest receiver with this tag.
    Tagged(u32),
    /// No receiver.
    None,
}

/// The order in which a subscriber delivers messages, and how long it waits for missing ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeliverySettings {
    /// Order of the messages of one publisher on one topic.
    pub order: DeliveryOrder,
    /// Longest time that later messages wait for a missing one, if that is shorter than
    /// [`NetSettings::recovery`]; `None`: the recovery time. Then the missing one counts as lost.
    /// [`TransportKind::Tcp`] has no such bound: there the kernel repairs, and tells of nothing.
    pub give_up_after: Option<Duration>,
}

/// Threads that send and receive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThreadingMode {
    /// The application's own, within its calls. A background thread takes over while the
    /// application does something else.
    #[default]
    Caller,
    /// Always one background thread. The application's threads make no system calls on the path
    /// of a message.
    Thread,
    /// Always two background threads: one sends, one receives.
    Split,
}

/// The way by which datagrams of sessions come and go. Either end may choose: the frames are the
/// same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IoKind {
    /// Sockets of the system.
    #[default]
    Sockets,
    /// Past the kernel's network stack (AF_XDP), for IPv4; by sockets where that cannot be
    /// ([`Network::io_fallback`](crate::Network::io_fallback) says why).
    Xdp,
}

impl IoKind {
    /// The name in settings and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sockets => "sockets",
            Self::Xdp => "xdp",
        }
    }
}

impl Default for NetSettings {
    fn default() -> Self {
        Self {
            interface: "127.0.0.1".into(),
            group: SocketAddr::from(([239, 192, 71, 2], 14_400)),
            groups: Vec::new(),
            hops: 1,
            resolver_group: Some(SocketAddr::from(([239, 192, 71, 1], 14_390))),
            resolvers: Vec::new(),
            peers: Vec::new(),
            peer_names: Vec::new(),
            resolver_port: None,
            accept: TransportKind::ALL.to_vec(),
            foreign_adverts: false,
            streams_each: 256,
            key_file: None,
            tls: TlsSettings::default(),
            port: 0,
            window_bytes: 4 << 20,
            datagram_bytes: None,
            longest_message: None,
            receivers_max: 256,
            topics_max: 16_384,
            pacing: Pacing::Slowest,
            tag: 0,
            late_join: false,
            recovery: Duration::from_secs(10),
            delivery: DeliverySettings::default(),
            liveness: Duration::from_secs(5),
            heartbeat: Duration::from_millis(100),
            keep_warm: None,
            data_rate: None,
            repair_share: 25,
            fec: None,
            fec_delay: Duration::from_micros(50),
            receive_buffer_bytes: 8 << 20,
            send_buffer_bytes: 2 << 20,
            io: IoKind::Sockets,
            busy_poll: None,
            publisher_wait: WaitStrategy::SpinPark,
            subscriber_wait: WaitStrategy::SpinPark,
            threading: ThreadingMode::Caller,
            receive_threads: 0,
            cpus: Vec::new(),
            counters: None,
            artificial_loss: 0,
            artificial_source_loss: 0,
            first_sequence: 0,
            host: 0,
            domain: 0,
        }
    }
}

impl NetSettings {
    /// The topic's own multicast group.
    pub(crate) fn own_group(&self, topic: &str) -> Option<SocketAddr> {
        let mut newest_first = self.groups.iter().rev();
        newest_first.find(|(name, _)| name == topic).map(|(_, group)| *group)
    }

    /// Whether subscribers' sockets are read by threads in the background only.
    pub(crate) fn receives_in_background(&self) -> bool {
        self.receive_threads > 0 || self.threading != ThreadingMode::Caller
    }

    /// The CPU of the receive thread with this index.
    pub(crate) fn receive_cpu(&self, index: usize) -> Option<usize> {
        self.cpus.get(self.conductor_threads() + index).copied()
    }

    fn conductor_threads(&self) -> usize {
        if self.threading == ThreadingMode::Split { 2 } else { 1 }
    }

    /// Checks each setting's limits, and that they fit together.
    ///
    /// # Errors
    /// If one does not: [`OpenError::Setting`], with its name and a valid value.
    pub fn check(&self) -> Result<(), OpenError> {
        let refuse = |what: &'static str, fix: &'static str| Err(OpenError::Setting { what, fix });
        if !(WINDOW_MIN..=WINDOW_MAX).contains(&self.window_bytes) {
            return refuse("net.window", "take 64KiB to 1GiB");
        }
        if !(1..=100).contains(&self.repair_share) {
            return refuse("net.repair_share", "take 1 to 100 (percent)");
        }
        if let Some((data, parity)) = self.fec {
            let is_block = (1..=FEC_DATA_MAX).contains(&data.into());
            if !is_block || usize::from(parity) > FEC_PARITY_MAX {
                return refuse(
                    "net.fec",
                    "take a block of 1 to 32 datagrams and 0 to 32 of parity, such as 4+1, or none",
                );
            }
            if self.datagram_bytes.is_some_and(|bytes| bytes > FEC_DATAGRAM_MAX) {
                return refuse("net.datagram", "take at most 9216 bytes with net.fec");
            }
        }
        if nanos(self.fec_delay) > FecSettings::DELAY_MAX {
            return refuse("net.fec_delay", "take at most 65ms");
        }
        if !(1..=4096).contains(&self.receivers_max) {
            return refuse("net.receivers_max", "take 1 to 4096");
        }
        if !(1..=65_536).contains(&self.topics_max) {
            return refuse("net.topics_max", "take 1 to 65536");
        }
        if self.receive_threads > RECEIVE_THREADS_MAX {
            return refuse("net.receive_threads", "take 0 to 16");
        }
        if self.cpus.len() > self.conductor_threads() + self.receive_threads {
            return refuse(
                "net.cpus",
                "take one CPU for each thread: two if net.threading is split, and one for each of \
                 net.receive_threads",
            );
        }
        if self.datagram_bytes.is_some_and(|bytes| !(512..=65_000).contains(&bytes)) {
            return refuse("net.datagram", "take 512 to 65000 bytes, or auto");
        }
        let sealed_min = DATAGRAM_MIN + SEALED_OVERHEAD;
        if self.key_file.is_some() && self.datagram_bytes.is_some_and(|it| it < sealed_min) {
            return refuse("net.datagram", "take 552 bytes or more with net.key_file, or auto");
        }
        if self.longest_message.is_some_and(|longest| longest < 16) {
            return refuse("net.longest_message", "take 16 bytes or more");
        }
        if self.longest_message.is_some_and(|longest| longest > self.window_bytes / 4) {
            return refuse("net.longest_message", "take at most a quarter of net.window");
        }
        if !(1..=65_536).contains(&self.streams_each) {
            return refuse("net.streams_each", "take 1 to 65536");
        }
        if self.accept.is_empty() {
            return refuse("net.accept", "take at least one of rm, ru and tcp");
        }
        self.check_times()?;
        self.check_tls()?;
        self.check_addresses()
    }

    /// Checks that the files of TLS fit together, and serve the connections that there will be.
    fn check_tls(&self) -> Result<(), OpenError> {
        let refuse = |what: &'static str, fix: &'static str| Err(OpenError::Setting { what, fix });
        let TlsSettings { certificate, key, authorities, name } = &self.tls;
        if certificate.is_some() != key.is_some() {
            return refuse("net.tls_key", "set it and net.tls_certificate, or neither");
        }
        if name.is_some() && authorities.is_none() {
            return refuse(
                "net.tls_name",
                "it is looked for in certificates of net.tls_authorities: \
                 set these too",
            );
        }
        let (asks, answers) = (!self.resolvers.is_empty(), self.resolver_port.is_some());
        if self.key_file.is_some() && !self.tls.is_set() && (asks || answers) {
            return refuse(
                "net.key_file",
                "it seals datagrams only, not connections to resolver daemons: encrypt these with \
                 net.tls_authorities and net.tls_certificate, or resolve topics by \
                 net.resolver_group, net.peers or net.peer_names",
            );
        }
        if self.tls.is_set() && asks && authorities.is_none() {
            return refuse(
                "net.tls_authorities",
                "resolver daemons have to show a certificate of \
                 one: set it",
            );
        }
        // The program is a client of its own daemon.
        if self.tls.is_set() && answers && (authorities.is_none() || certificate.is_none()) {
            return refuse(
                "net.resolver_port",
                "with TLS, a daemon in this program needs \
                 net.tls_certificate, net.tls_key and net.tls_authorities",
            );
        }
        Ok(())
    }

    /// Checks times that have to fit together.
    fn check_times(&self) -> Result<(), OpenError> {
        let refuse = |what: &'static str, fix: &'static str| Err(OpenError::Setting { what, fix });
        if self.heartbeat.is_zero() || self.heartbeat * 3 > self.liveness {
            return refuse(
                "net.heartbeat",
                "take at most a third of net.liveness, or one lost heartbeat looks like a death",
            );
        }
        let is_warming = KEEP_WARM_MIN..=self.heartbeat;
        if self.keep_warm.is_some_and(|interval| !is_warming.contains(&interval)) {
            return refuse("net.keep_warm", "take 20us to net.heartbeat, or none");
        }
        if self.recovery < Duration::from_millis(1) {
            return refuse("net.recovery", "take 1ms or more, or nothing is ever repaired");
        }
        if self.delivery.give_up_after.is_some_and(|after| after < Duration::from_micros(1)) {
            return refuse("net.give_up_after", "take 1us or more, or none");
        }
        Ok(())
    }

    /// Checks groups, daemons and peers.
    fn check_addresses(&self) -> Result<(), OpenError> {
        let refuse = |what: &'static str, fix: &'static str| Err(OpenError::Setting { what, fix });
        if !self.group.ip().is_multicast() {
            return refuse("net.group", "take a multicast address, such as 239.192.71.2:14400");
        }
        let fits = |group: &SocketAddr| {
            group.ip().is_multicast() && group.is_ipv4() == self.group.is_ipv4()
        };
        if !self.groups.iter().all(|(_, group)| fits(group)) {
            return refuse(
                "net.groups",
                "take multicast addresses of the same family as that of net.group",
            );
        }
        if self.resolver_group.is_some_and(|group| !group.ip().is_multicast()) {
            return refuse(
                "net.resolver_group",
                "take a multicast address, such as 239.192.71.1:14390, or none",
            );
        }
        let is_program = |at: &SocketAddr| {
            at.port() != 0 && !at.ip().is_unspecified() && !at.ip().is_multicast()
        };
        if self.resolvers.len() > RESOLVERS_MAX || !self.resolvers.iter().all(is_program) {
            return refuse(
                "net.resolvers",
                "take the addresses and ports of at most 16 daemons, such as 10.0.0.1:7331; \
                 multicast belongs into net.resolver_group",
            );
        }
        if self.peers.len() > PEERS_MAX || !self.peers.iter().all(is_program) {
            return refuse(
                "net.peers",
                "take the addresses and ports of at most 64 programs, such as 10.0.0.1:7341; \
                 multicast belongs into net.resolver_group",
            );
        }
        let is_name = |name: &String| name.len() <= PEER_NAME_BYTES && port(name).is_some();
        if self.peer_names.len() > PEER_NAMES_MAX || !self.peer_names.iter().all(is_name) {
            return refuse(
                "net.peer_names",
                "take at most 16 DNS names, each with the port of the programs behind it, such \
                 as prices.example:7341",
            );
        }
        Ok(())
    }

    /// The longest message, in bytes.
    pub(crate) fn longest_message(&self) -> usize {
        self.longest_message.unwrap_or(self.window_bytes / 8)
    }

    /// The longest datagram at `address`, on an interface with that `mtu`, in bytes.
    ///
    /// # Errors
    /// If the interface carries none of the protocols' shortest ones, or its MTU is unknown.
    pub(crate) fn datagram_bytes(&self, address: IpAddr, mtu: usize) -> Result<usize, OpenError> {
        /// MTU of any Ethernet.
        const COMMON_MTU: usize = 1500;
        const UDP_HEADER: usize = 8;
        let headers = UDP_HEADER + if address.is_ipv4() { 20 } else { 40 };
        let bytes = match self.datagram_bytes {
            Some(bytes) => bytes.min(mtu.saturating_sub(headers)),
            None => mtu.min(COMMON_MTU).saturating_sub(headers),
        };
        let envelope = if self.key_file.is_some() { SEALED_OVERHEAD } else { 0 };
        if bytes < DATAGRAM_MIN + envelope {
            return Err(OpenError::Setting {
                what: "net.interface",
                fix: "take an interface with an MTU of at least 560 bytes, or 600 with \
                      net.key_file: the system tells a smaller one, or none",
            });
        }
        Ok(bytes)
    }
}

/// Nanoseconds, as the state machines count time.
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
