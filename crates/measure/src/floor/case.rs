//! What of the floor is measured.

use super::Settings;
use lanecast_base::WaitStrategy;
use lanecast_os::udp::{RUN_BYTES_MAX, RUN_SEGMENTS_MAX, segmentation_works};
use serde::Serialize;
use std::fmt;
use std::str::FromStr;

/// What the two threads do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Experiment {
    /// Messages are sent on a schedule, come back, and are timed.
    RoundTrip,
    /// Messages go one way, as many as possible without loss.
    OneWay,
}

/// Which sockets carry the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SocketKind {
    /// Datagrams from one socket to another.
    Udp,
    /// Datagrams to a group, whose only member is the other side.
    Multicast,
    /// A stream.
    Tcp,
}

/// How messages are handed to the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    /// One by one: a call, and of datagrams one, for each.
    Singly,
    /// Packed into datagrams, many of these with one call: sendmmsg(2).
    Several,
    /// Packed into datagrams that the system cuts from one piece: `UDP_SEGMENT`.
    Segments,
    /// Gathered, and written to the stream together.
    Gathered,
}

/// One case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// What the threads do.
    pub experiment: Experiment,
    /// Which sockets they use.
    pub socket: SocketKind,
    /// How messages are handed to the system.
    pub way: Way,
    /// How a receiver waits: `BusySpin` asks again and again, `Park` sleeps in the system.
    pub wait: WaitStrategy,
}

impl SocketKind {
    /// All.
    pub const ALL: [Self; 3] = [Self::Udp, Self::Multicast, Self::Tcp];

    /// The name on the command line and in the lines.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Udp => "udp",
            Self::Multicast => "multicast",
            Self::Tcp => "tcp",
        }
    }
}

impl fmt::Display for SocketKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for SocketKind {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|socket| socket.name() == text);
        found.ok_or_else(|| format!("'{text}': choose of udp, multicast, tcp"))
    }
}

impl Way {
    /// In words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Singly => "singly",
            Self::Several => "several",
            Self::Segments => "segments",
            Self::Gathered => "gathered",
        }
    }
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

/// How messages are put together for the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Load {
    pub(super) way: Way,
    /// Whether a receive sleeps until something is there.
    pub(super) sleeps: bool,
    /// The length of a message.
    pub(super) size: usize,
    /// The length of a datagram: whole messages.
    pub(super) segment: usize,
    /// Datagrams (or of a stream: pieces) that are handed over with one call, at most.
    pub(super) together: usize,
}

/// What is gathered for a stream before it is written, in bytes.
const GATHERED_BYTES: usize = 1 << 16;

impl Load {
    pub(super) fn of(settings: &Settings) -> Self {
        let Settings { case, size, datagram_bytes, .. } = *settings;
        let packed = size * (datagram_bytes.min(RUN_BYTES_MAX) / size).max(1);
        let (segment, together) = match case.way {
            Way::Singly => (size, 1),
            Way::Several => (packed, RUN_SEGMENTS_MAX),
            Way::Segments => (packed, RUN_SEGMENTS_MAX.min(RUN_BYTES_MAX / packed)),
            Way::Gathered => (size, (GATHERED_BYTES / size).max(1)),
        };
        Self { way: case.way, sleeps: case.wait != WaitStrategy::BusySpin, size, segment, together }
    }

    /// What is handed over with one call, in bytes.
    pub(super) const fn piece_bytes(&self) -> usize {
        self.segment * self.together
    }
}
