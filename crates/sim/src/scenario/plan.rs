//! A subscriber of a scenario.

use lanecast_protocol::{Nanos, receiver};

/// A subscriber.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Time of the start.
    pub starts: Nanos,
    /// Settings of its receivers; each has its own number and seed.
    pub receiver: receiver::ReceiverSettings,
    /// Topics subscribed to at the start.
    pub topics: Vec<usize>,
    /// Time that the application needs per datagram.
    pub pace: Nanos,
    /// Whether datagrams wait in the socket while the application reads.
    pub reads_inline: bool,
    /// Size of the socket buffer, in bytes.
    pub socket_bytes: usize,
    /// Whether it runs until the end.
    pub stays: bool,
    /// Whether its receivers keep their deliveries.
    pub logs: bool,
}
