//! The peers: which there are, in which rows they take part, and how each makes an end.

pub mod batch;
pub mod carrier;
pub mod datagram;
pub mod frames;
pub mod packed;
pub mod socket;
pub mod stream;
#[cfg(feature = "zmq")]
pub mod zmq;

/// A peer, in one way of using it.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// What the command line of the comparison calls the peer.
    pub peer: &'static str,
    /// The name of this way.
    pub name: &'static str,
    /// Its version; `-` for what comes with the kernel.
    pub version: fn() -> String,
    /// The rows in which it takes part.
    pub rows: &'static [&'static str],
}

const SPINNING: &[&str] = &["udp-pingpong", "loss-pingpong"];
const SLEEPING: &[&str] = &["udp-pingpong-block"];
const ONE_WAY: &[&str] = &["oneway", "loss-oneway"];

/// The version of what comes with the kernel.
fn of_kernel() -> String {
    "-".to_owned()
}

#[cfg(feature = "zmq")]
fn of_zmq() -> String {
    let (major, minor, patch) = ::zmq::version();
    format!("{major}.{minor}.{patch}")
}

const fn raw(peer: &'static str, name: &'static str, rows: &'static [&'static str]) -> Case {
    Case { peer, name, version: of_kernel, rows }
}

/// All peers that were built.
pub const CASES: &[Case] = &[
    raw("udp", "udp", SPINNING),
    raw("udp", "udp-block", SLEEPING),
    raw("udp", "udp-each", ONE_WAY),
    raw("udp", "udp-packed", ONE_WAY),
    raw("udp", "udp-gso", ONE_WAY),
    raw("udp", "multicast", &["rm-pingpong"]),
    raw("udp", "multicast-packed", &["oneway", "fanout3"]),
    raw("udp", "multicast-gso", &["oneway", "fanout3"]),
    raw("tcp", "tcp", &["tcp-pingpong", "loss-pingpong"]),
    raw("tcp", "tcp-block", SLEEPING),
    raw("tcp", "tcp-batched", ONE_WAY),
    #[cfg(feature = "zmq")]
    Case {
        peer: "zmq",
        name: "zmq",
        version: of_zmq,
        rows: &["tcp-pingpong", "oneway", "loss-pingpong", "loss-oneway"],
    },
];
