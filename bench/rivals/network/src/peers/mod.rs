//! The peers: which there are, in which rows they take part, and how each makes an end.

pub mod batch;
pub mod datagram;
pub mod frames;
#[cfg(feature = "lanecast")]
pub mod lanecast;
pub mod nats;
pub mod packed;
pub mod ringed;
pub mod socket;
pub mod stream;
pub mod transport;
#[cfg(feature = "uring")]
pub mod uring;
pub mod xdp;
#[cfg(feature = "zmq")]
pub mod zmq;

use std::fmt;

/// A peer, in one way of using it.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Name of the peer on the comparison's command line.
    pub peer: &'static str,
    /// The name of this way.
    pub name: &'static str,
    /// Version of the peer; `-` for a part of the kernel.
    pub version: fn() -> String,
    /// Protocol below it: `udp`, `multicast` or `tcp`.
    pub family: &'static str,
    /// Whether it is bare sockets, beside which the others of its family stand.
    pub floor: bool,
    /// Whether it has threads of its own, for which spinning ends must make room.
    pub yields: bool,
    /// The rows in which it takes part.
    pub rows: &'static [&'static str],
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let standing = if self.floor { "floor" } else { "peer" };
        let wait = if self.yields { "yield" } else { "spin" };
        let Self { peer, name, version, family, rows, .. } = self;
        write!(f, "{peer} {name} {} {family} {standing} {wait} {}", version(), rows.join(" "))
    }
}

const ONE_WAY: &[&str] = &["oneway", "loss-oneway"];
const TO_GROUP: &[&str] = &["oneway", "fanout3", "loss-oneway"];
const ASLEEP: &[&str] = &["block-pingpong"];
const PAST_CALLS: &[&str] = &["xdp-pingpong"];
const PAST_CALLS_ONE_WAY: &[&str] = &["xdp-oneway"];

#[cfg(feature = "lanecast")]
const OWN_UDP: &[&str] = &[
    "udp-pingpong",
    "xdp-pingpong",
    "block-pingpong",
    "idle",
    "oneway",
    "xdp-oneway",
    "fanout3",
    "loss-pingpong",
    "loss-oneway",
];
#[cfg(feature = "lanecast")]
const OWN_MULTICAST: &[&str] =
    &["rm-pingpong", "block-pingpong", "idle", "oneway", "fanout3", "loss-pingpong", "loss-oneway"];
#[cfg(feature = "lanecast")]
const OWN_PARITY: &[&str] = &["loss-pingpong", "loss-oneway"];
#[cfg(feature = "lanecast")]
const OWN_XDP: &[&str] = &["xdp-pingpong", "xdp-oneway"];
#[cfg(feature = "lanecast")]
const OWN_TCP: &[&str] = &[
    "tcp-pingpong",
    "block-pingpong",
    "idle",
    "oneway",
    "fanout3",
    "loss-pingpong",
    "loss-oneway",
];

/// The version of what comes with the kernel, and of lanecast, which comes from here.
fn of_kernel() -> String {
    "-".to_owned()
}

/// NATS has a version in its server, which is another program.
fn of_server() -> String {
    "-".to_owned()
}

#[cfg(feature = "zmq")]
fn of_zmq() -> String {
    let (major, minor, patch) = ::zmq::version();
    format!("{major}.{minor}.{patch}")
}

const fn raw(family: &'static str, name: &'static str, rows: &'static [&'static str]) -> Case {
    let peer = if matches!(family.as_bytes(), b"tcp") { "tcp" } else { "udp" };
    Case { peer, name, version: of_kernel, family, floor: true, yields: false, rows }
}

/// UDP by another way than a system call for each datagram or batch.
const fn past_calls(peer: &'static str, name: &'static str, rows: &'static [&'static str]) -> Case {
    Case { peer, ..raw("udp", name, rows) }
}

#[cfg(feature = "lanecast")]
const fn own(family: &'static str, name: &'static str, rows: &'static [&'static str]) -> Case {
    let version = of_kernel;
    Case { peer: "lanecast", name, version, family, floor: false, yields: false, rows }
}

/// All peers that were built.
pub const CASES: &[Case] = &[
    #[cfg(feature = "lanecast")]
    own("udp", "lanecast-ru", OWN_UDP),
    #[cfg(feature = "lanecast")]
    own("multicast", "lanecast-rm", OWN_MULTICAST),
    #[cfg(feature = "lanecast")]
    own("udp", "lanecast-ru-fec", OWN_PARITY),
    #[cfg(feature = "lanecast")]
    own("multicast", "lanecast-rm-fec", OWN_PARITY),
    #[cfg(feature = "lanecast")]
    own("udp", "lanecast-ru-key", &["udp-pingpong", "oneway"]),
    #[cfg(feature = "lanecast")]
    own("multicast", "lanecast-rm-key", &["rm-pingpong", "oneway"]),
    #[cfg(feature = "lanecast")]
    own("udp", "lanecast-ru-xdp", OWN_XDP),
    #[cfg(feature = "lanecast")]
    own("tcp", "lanecast-tcp", OWN_TCP),
    raw("udp", "udp", &["udp-pingpong", "xdp-pingpong", "idle", "loss-pingpong"]),
    raw("udp", "udp-block", ASLEEP),
    raw("udp", "udp-each", ONE_WAY),
    raw("udp", "udp-packed", &["oneway", "xdp-oneway", "loss-oneway"]),
    raw("udp", "udp-gso", &["oneway", "xdp-oneway", "loss-oneway"]),
    past_calls("xdp", "udp-xdp", PAST_CALLS),
    past_calls("xdp", "udp-packed-xdp", PAST_CALLS_ONE_WAY),
    #[cfg(feature = "uring")]
    past_calls("uring", "udp-uring", PAST_CALLS),
    #[cfg(feature = "uring")]
    past_calls("uring", "udp-packed-uring", PAST_CALLS_ONE_WAY),
    raw("multicast", "multicast", &["rm-pingpong", "idle", "loss-pingpong"]),
    raw("multicast", "multicast-block", ASLEEP),
    raw("multicast", "multicast-packed", TO_GROUP),
    raw("multicast", "multicast-gso", &["oneway", "fanout3"]),
    raw("tcp", "tcp", &["tcp-pingpong", "idle", "loss-pingpong"]),
    raw("tcp", "tcp-block", ASLEEP),
    raw("tcp", "tcp-batched", ONE_WAY),
    Case {
        peer: "nats",
        name: "nats",
        version: of_server,
        family: "tcp",
        floor: false,
        yields: true,
        rows: &["tcp-pingpong", "oneway", "fanout3", "loss-pingpong", "loss-oneway"],
    },
    #[cfg(feature = "zmq")]
    Case {
        peer: "zmq",
        name: "zmq",
        version: of_zmq,
        family: "tcp",
        floor: false,
        yields: true,
        rows: &["tcp-pingpong", "oneway", "fanout3", "loss-pingpong", "loss-oneway"],
    },
];
