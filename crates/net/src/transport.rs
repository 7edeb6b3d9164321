//! The three ways between hosts.

use crate::error::OpenError;
use crate::network::Network;
use crate::publisher::Publisher;
use crate::subscriber::Subscriber;
use lanecast_transport::{SessionId, Transport};
use std::fmt;

/// What carries messages from host to host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Reliable multicast: one datagram for all.
    Rm,
    /// Reliable unicast: datagrams to each.
    Ru,
    /// A stream to each.
    Tcp,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Rm, Self::Ru, Self::Tcp];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rm => "rm",
            Self::Ru => "ru",
            Self::Tcp => "tcp",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A network whose publishers use one way.
#[derive(Clone, Debug)]
pub struct NetTransport {
    network: Network,
    kind: Kind,
}

impl NetTransport {
    /// Publishers of `network` that use `kind`; subscribers take what they find.
    pub const fn new(network: Network, kind: Kind) -> Self {
        Self { network, kind }
    }

    /// The network.
    pub const fn network(&self) -> &Network {
        &self.network
    }

    /// A publisher of a session that another transport has as well.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn publisher_of(&self, session: SessionId, topic: &str) -> Result<Publisher, OpenError> {
        self.network.publisher_of(self.kind, session, topic)
    }
}

impl Transport for NetTransport {
    type Publisher = Publisher;
    type Subscriber = Subscriber;
    type Error = OpenError;

    fn name(&self) -> &'static str {
        self.kind.name()
    }

    fn publisher(&self, topic: &str) -> Result<Publisher, OpenError> {
        self.network.publisher(self.kind, topic)
    }

    fn subscriber(&self, topics: &[&str]) -> Result<Subscriber, OpenError> {
        self.network.subscriber(topics)
    }
}
