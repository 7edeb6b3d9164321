//! What the network transports can be told.

use crate::Kind;
use crate::error::OpenError;
use crate::peers::Peers;
use lanecast_base::WaitStrategy;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// The smallest window of a session, in bytes.
pub const WINDOW_MIN: usize = 64 << 10;
/// The largest window of a session, in bytes.
pub const WINDOW_MAX: usize = 1 << 30;

/// The most daemons.
const RESOLVERS_MAX: usize = 16;

/// Settings of the transports between hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Which interface: an address of it, a network in CIDR form that it has an address in, or
    /// its name.
    pub interface: String,
    /// Where reliable multicast sends: a group and a port.
    pub group: SocketAddr,
    /// Topics that have a group of their own, for publishers whose first topic they are. Of two
    /// entries of one topic the later counts.
    pub groups: Vec<(String, SocketAddr)>,
    /// How many routers a multicast datagram may pass, plus one.
    pub hops: u32,
    /// Where publishers are announced and looked for, if by multicast.
    pub resolver_group: Option<SocketAddr>,
    /// Daemons where they are announced and looked for as well; any one is enough.
    pub resolvers: Vec<SocketAddr>,
    /// Programs that tell and ask each other directly, by the addresses where they hear each
    /// other; the program's own is among them.
    pub peers: Vec<SocketAddr>,
    /// The port at which the program is such a daemon itself; 0: any. So others need no more than
    /// its address to find its publishers.
    pub resolver_port: Option<u16>,
    /// Transports by which subscribers join publishers; others are passed over.
    pub accept: Vec<Kind>,
    /// Whether publishers may be announced, in the group and by peers, from other addresses than
    /// their own. Daemons tell of everybody's in any case.
    pub foreign_adverts: bool,
    /// The most TCP publishers at one address that a subscriber joins: each takes a descriptor.
    pub streams_each: usize,
    /// The port of a publisher's control socket; 0: any.
    pub port: u16,
    /// What a publisher keeps for repairs and late joiners, in bytes.
    pub window_bytes: usize,
    /// The longest datagram, in bytes; `None`: as long as the interface and 1500-byte links allow.
    pub datagram_bytes: Option<usize>,
    /// The longest message, in bytes; `None`: an eighth of the window.
    pub longest_message: Option<usize>,
    /// The most receivers of a session.
    pub receivers_max: usize,
    /// The most topics of a session.
    pub topics_max: usize,
    /// Whom a publisher waits for.
    pub pacing: Pacing,
    /// The group that subscribers belong to for [`Pacing::Tagged`]; 0: none.
    pub tag: u32,
    /// Whether subscribers begin with the oldest message that the publisher keeps.
    pub late_join: bool,
    /// How long a missing message is asked for before it counts as lost.
    pub recovery: Duration,
    /// How long the other side may be silent before it counts as dead.
    pub liveness: Duration,
    /// The longest pause between two signs of life.
    pub heartbeat: Duration,
    /// The most bytes that a publisher sends in a second; `None`: no limit.
    pub data_rate: Option<u64>,
    /// The share of the rate that repairs may take, in percent.
    pub repair_share: u32,
    /// What a socket can hold that is not read yet, in bytes.
    pub receive_buffer_bytes: usize,
    /// What a socket can hold that is not sent yet, in bytes.
    pub send_buffer_bytes: usize,
    /// How long the kernel looks at the network card itself before it sleeps.
    pub busy_poll: Option<Duration>,
    /// How a publisher waits for room.
    pub publisher_wait: WaitStrategy,
    /// How a subscriber waits for messages.
    pub subscriber_wait: WaitStrategy,
    /// Which thread moves the bytes.
    pub drive: Drive,
    /// The CPUs of the threads in the background: the first for the one that finds and receives,
    /// the second, if there is one, for the one that sends; empty: wherever the system puts them.
    pub cpus: Vec<usize>,

    /// Where files with counters and losses are kept for whoever looks, such as `lanecast stat`:
    /// the directory of the domain of shared memory; `None`: nobody can look.
    pub counters: Option<PathBuf>,

    /// The share of received datagrams that is thrown away, per mille, to see what loss does.
    pub artificial_loss: u32,
    /// The share of datagrams that is not sent, per mille, to see what loss does.
    pub artificial_source_loss: u32,
    /// Where a session's sequences start, so that tests can run them through their wrap.
    #[doc(hidden)]
    pub first_sequence: u64,
    /// A number of the host: what is announced from it, for the same
    /// [`domain`](Self::domain), needs no network.
    pub host: u64,
    /// A number of the domain of shared memory that the program's publishers serve as well, and
    /// its subscribers read; 0: none.
    pub domain: u64,
}

/// Whom a publisher waits for when receivers differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pacing {
    /// The slowest, for as long as it lives.
    #[default]
    Slowest,
    /// The slowest; who has held it up for so long is let go.
    SlowestOrEject(Duration),
    /// The fastest: the others lose what is no longer kept, and are told.
    Fastest,
    /// The slowest of those with this tag.
    Tagged(u32),
    /// Nobody.
    None,
}

/// Which thread moves the bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Drive {
    /// The application's own, within its calls; a thread in the background stands in while it
    /// does something else.
    #[default]
    Caller,
    /// One thread in the background, always: the application's send and receive nothing on the way
    /// of a message, they only say now and then how far they have read.
    Thread,
    /// Two threads in the background, always: one for all that is sent, one for all that comes.
    Split,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            interface: "127.0.0.1".into(),
            group: SocketAddr::from(([239, 192, 71, 2], 14_400)),
            groups: Vec::new(),
            hops: 1,
            resolver_group: Some(SocketAddr::from(([239, 192, 71, 1], 14_390))),
            resolvers: Vec::new(),
            peers: Vec::new(),
            resolver_port: None,
            accept: Kind::ALL.to_vec(),
            foreign_adverts: false,
            streams_each: 256,
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
            liveness: Duration::from_secs(5),
            heartbeat: Duration::from_millis(100),
            data_rate: None,
            repair_share: 25,
            receive_buffer_bytes: 8 << 20,
            send_buffer_bytes: 2 << 20,
            busy_poll: None,
            publisher_wait: WaitStrategy::SpinPark,
            subscriber_wait: WaitStrategy::SpinPark,
            drive: Drive::Caller,
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

impl Settings {
    /// The multicast group that a topic has of its own.
    pub(crate) fn own_group(&self, topic: &str) -> Option<SocketAddr> {
        let mut newest_first = self.groups.iter().rev();
        newest_first.find(|(name, _)| name == topic).map(|(_, group)| *group)
    }

    /// Whether each number lies within its bounds, and they fit together.
    pub(crate) fn check(&self) -> Result<(), OpenError> {
        let refuse = |what: &'static str, fix: &'static str| Err(OpenError::Setting { what, fix });
        if !(WINDOW_MIN..=WINDOW_MAX).contains(&self.window_bytes) {
            return refuse("net.window", "take 64KiB to 1GiB");
        }
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
        let is_daemon = |at: &SocketAddr| {
            at.port() != 0 && !at.ip().is_unspecified() && !at.ip().is_multicast()
        };
        if self.resolvers.len() > RESOLVERS_MAX || !self.resolvers.iter().all(is_daemon) {
            return refuse(
                "net.resolvers",
                "take the addresses and ports of at most 16 daemons, such as 10.0.0.1:7331; \
                 multicast belongs into net.resolver_group",
            );
        }
        if !Peers::can_be(&self.peers) {
            return refuse(
                "net.peers",
                "take the addresses and ports of at most 64 programs, such as 10.0.0.1:7341; \
                 multicast belongs into net.resolver_group",
            );
        }
        if self.heartbeat.is_zero() || self.heartbeat * 3 > self.liveness {
            return refuse(
                "net.heartbeat",
                "take at most a third of net.liveness, or one lost heartbeat looks like a death",
            );
        }
        if self.recovery < Duration::from_millis(1) {
            return refuse("net.recovery", "take 1ms or more, or nothing is ever repaired");
        }
        if !(1..=100).contains(&self.repair_share) {
            return refuse("net.repair_share", "take 1 to 100 (percent)");
        }
        if !(1..=4096).contains(&self.receivers_max) {
            return refuse("net.receivers_max", "take 1 to 4096");
        }
        if !(1..=65_536).contains(&self.topics_max) {
            return refuse("net.topics_max", "take 1 to 65536");
        }
        if self.cpus.len() > 2 || self.cpus.len() == 2 && self.drive != Drive::Split {
            return refuse("net.cpus", "take one CPU for each thread: two if net.drive is split");
        }
        if self.datagram_bytes.is_some_and(|bytes| !(512..=65_000).contains(&bytes)) {
            return refuse("net.datagram", "take 512 to 65000 bytes, or auto");
        }
        if self.longest_message.is_some_and(|longest| longest < 16) {
            return refuse("net.longest_message", "take 16 bytes or more");
        }
        if self.longest_message.is_some_and(|longest| longest > self.window_bytes / 4) {
            return refuse("net.longest_message", "take at most a quarter of net.window");
        }
        self.check_joins()
    }

    /// Whether some publishers may be joined at all.
    fn check_joins(&self) -> Result<(), OpenError> {
        let refuse = |what: &'static str, fix: &'static str| Err(OpenError::Setting { what, fix });
        if !(1..=65_536).contains(&self.streams_each) {
            return refuse("net.streams_each", "take 1 to 65536");
        }
        if self.accept.is_empty() {
            return refuse("net.accept", "take at least one of rm, ru and tcp");
        }
        Ok(())
    }

    /// The longest message, in bytes.
    pub(crate) fn longest_message(&self) -> usize {
        self.longest_message.unwrap_or(self.window_bytes / 8)
    }

    /// The longest datagram of an interface at `address` with that `mtu`, in bytes.
    pub(crate) fn datagram_bytes(&self, address: IpAddr, mtu: usize) -> usize {
        /// What any Ethernet carries.
        const COMMON_MTU: usize = 1500;
        const UDP_HEADER: usize = 8;
        let headers = UDP_HEADER + if address.is_ipv4() { 20 } else { 40 };
        match self.datagram_bytes {
            Some(bytes) => bytes.min(mtu - headers),
            None => mtu.min(COMMON_MTU) - headers,
        }
    }
}

/// As the state machines count time.
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
