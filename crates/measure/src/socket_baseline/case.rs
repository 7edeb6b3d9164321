//! Cases of the socket baseline.

use crate::names::named;
use lanecast_base::WaitStrategy;
use lanecast_os::udp::segmentation_works;
use std::fmt;

named! {
    /// The exchange of the two threads.
    pub enum Experiment: "experiment" {
        /// Messages are sent on a schedule, come back, and are timed.
        RoundTrip = "round-trip",
        /// Messages go one way, as many as possible without loss.
        OneWay = "one-way",
    }
}

named! {
    /// The sockets that carry the messages.
    pub enum SocketKind: "kind of socket" {
        /// Datagrams from one socket to another.
        Udp = "udp",
        /// Datagrams to a group whose only member is the other side.
        Multicast = "multicast",
        /// A stream.
        Tcp = "tcp",
    }
}

named! {
    /// The system calls that send messages.
    pub enum Way: "way" {
        /// A call, and a datagram, for each message.
        Singly = "singly",
        /// Messages packed into datagrams, many of these with one sendmmsg(2).
        Several = "several",
        /// Messages packed into datagrams that the system cuts from one piece: `UDP_SEGMENT`.
        Segments = "segments",
        /// Messages gathered and written to the stream together.
        Gathered = "gathered",
    }
}

/// One case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// Exchange of the threads.
    pub experiment: Experiment,
    /// Which sockets they use.
    pub socket: SocketKind,
    /// System calls that send messages.
    pub way: Way,
    /// Wait strategy of receivers: `BusySpin` polls, `Park` sleeps in the system.
    pub wait: WaitStrategy,
}

impl Case {
    /// Round trips over `socket`.
    pub const fn round_trip(socket: SocketKind, wait: WaitStrategy) -> Self {
        Self { experiment: Experiment::RoundTrip, socket, way: Way::Singly, wait }
    }

    /// Every case over `socket` that this system can do, in the order in which they run.
    pub fn all(socket: SocketKind) -> Vec<Self> {
        let rounds = [WaitStrategy::BusySpin, WaitStrategy::Park];
        let ways: &[Way] = match socket {
            SocketKind::Tcp => &[Way::Gathered],
            _ if segmentation_works() => &[Way::Singly, Way::Several, Way::Segments],
            _ => &[Way::Singly, Way::Several],
        };
        let one_way = |&way| Self {
            experiment: Experiment::OneWay,
            socket,
            way,
            wait: WaitStrategy::BusySpin,
        };
        let rounds = rounds.into_iter().map(|wait| Self::round_trip(socket, wait));
        rounds.chain(ways.iter().map(one_way)).collect()
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { experiment, socket, way, wait } = self;
        match experiment {
            Experiment::RoundTrip => write!(f, "{socket}, there and back, {wait}"),
            Experiment::OneWay => write!(f, "{socket}, one way, {}", way.name()),
        }
    }
}
