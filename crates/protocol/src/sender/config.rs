//! Configuration of a sender: distribution, flow control, sizes and timeouts.

use crate::fec::FecSettings;
use crate::{MILLISECOND, Nanos, SECOND};
use std::net::SocketAddr;

/// Distribution of datagrams to the receivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// One copy to a multicast group.
    Multicast(SocketAddr),
    /// One copy to each receiver.
    Unicast,
    /// Frames on one connection per receiver.
    Stream,
}

/// Flow control: the receivers that may hold the sender back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pacing {
    /// The slowest receiver.
    Slowest,
    /// The slowest receiver, which is ejected after holding the sender back for this long without
    /// progress.
    SlowestOrEject(Nanos),
    /// The fastest receiver.
    Fastest,
    /// The slowest receiver with this tag.
    Tagged(u32),
    /// No receiver: the source sets the pace, and slow receivers lose messages.
    None,
}

/// Configuration of a [`Sender`](super::Sender).
#[derive(Clone, Debug)]
pub struct SenderSettings {
    /// Random number of the session.
    pub session: u64,
    /// Sequence of the first datagram.
    pub first_sequence: u64,
    /// Distribution of datagrams.
    pub distribution: Distribution,
    /// Which receivers may hold the sender back.
    pub pacing: Pacing,
    /// Longest datagram (of a stream: frame), in bytes.
    pub datagram_bytes: usize,
    /// Bytes that the transport adds to each datagram, beside `datagram_bytes`: a run of datagrams
    /// leaves room for them.
    pub envelope_bytes: usize,
    /// Size of the send window, in bytes; rounded up to a power of two.
    pub window_bytes: usize,
    /// Longest message, in bytes; at most a quarter of the window.
    pub longest_message: usize,
    /// Most receivers.
    pub receivers_max: usize,
    /// Most topics.
    pub topics_max: usize,
    /// Whether receivers may begin with the oldest retained datagram.
    pub late_join: bool,
    /// Silence after which a receiver counts as dead.
    pub liveness: Nanos,
    /// Longest time between two heartbeats.
    pub heartbeat: Nanos,
    /// Time between two frames that keep the way to receivers warm in silence; `None`: there are
    /// none but heartbeats.
    pub keep_warm: Option<Nanos>,
    /// Limit of the data rate, in bytes per second.
    pub data_rate: Option<u64>,
    /// Rate of repairs, in percent of `data_rate` (without one: of `link_rate`), in addition to it.
    pub repair_share: u32,
    /// Capacity of the link, in bytes per second.
    pub link_rate: u64,
    /// Parity of the datagrams; not on connections, and not with datagrams longer than
    /// [`FEC_DATAGRAM_MAX`](lanecast_wire::net::FEC_DATAGRAM_MAX).
    pub fec: Option<FecSettings>,
    /// Process id, for display.
    pub pid: u32,
    /// Secret key of the cookies that prove the addresses of receivers: random bytes of the
    /// operating system.
    pub cookie_key: [u64; 2],
}

impl Default for SenderSettings {
    fn default() -> Self {
        Self {
            session: 0,
            first_sequence: 0,
            distribution: Distribution::Unicast,
            pacing: Pacing::Slowest,
            datagram_bytes: 1_472,
            envelope_bytes: 0,
            window_bytes: 4 << 20,
            longest_message: 1 << 20,
            receivers_max: 64,
            topics_max: 1_024,
            late_join: false,
            liveness: SECOND,
            heartbeat: 100 * MILLISECOND,
            keep_warm: None,
            data_rate: None,
            repair_share: 20,
            link_rate: 1_250_000_000,
            fec: None,
            pid: 0,
            cookie_key: [0; 2],
        }
    }
}
