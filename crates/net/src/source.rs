//! Identity of a network session: its transport, its number, and its addresses.

use std::fmt;
use std::net::SocketAddr;

/// Transport between hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TransportKind {
    /// Reliable multicast: one UDP datagram reaches all receivers of a group.
    Rm,
    /// Reliable unicast: one UDP datagram for each receiver.
    Ru,
    /// One TCP connection for each receiver.
    Tcp,
}

impl TransportKind {
    /// All transports.
    pub const ALL: [Self; 3] = [Self::Rm, Self::Ru, Self::Tcp];

    /// The name in settings and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rm => "rm",
            Self::Ru => "ru",
            Self::Tcp => "tcp",
        }
    }
}

impl fmt::Display for TransportKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A publisher's session, as discovery advertises it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) kind: TransportKind,
    /// The session's number.
    pub(crate) session: u64,
    /// The publisher's control address.
    pub(crate) address: SocketAddr,
    /// The multicast group of [`TransportKind::Rm`].
    pub(crate) group: Option<SocketAddr>,
    /// The publisher's process.
    pub(crate) pid: u32,
}

/// The readable name of a session, in events, reports and logs.
impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, session, address, .. } = self;
        match self.group {
            Some(group) => write!(f, "{kind}:{address}:{group}:{session:016x}"),
            None => write!(f, "{kind}:{address}:{session:016x}"),
        }
    }
}
