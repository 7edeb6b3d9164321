//! The choice of transports.

use lanecast_net::TransportKind;
use std::fmt;
use std::str::FromStr;

/// The transports of a context: shared memory, one transport between hosts, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transports {
    shm: bool,
    net: Option<TransportKind>,
}

impl Transports {
    /// Shared memory alone.
    pub const SHM: Self = Self { shm: true, net: None };

    /// `kind` alone, also for subscribers on this host.
    pub const fn net(kind: TransportKind) -> Self {
        Self { shm: false, net: Some(kind) }
    }

    /// Shared memory within this host, `kind` to other hosts.
    pub const fn both(kind: TransportKind) -> Self {
        Self { shm: true, net: Some(kind) }
    }

    /// Whether shared memory is used.
    pub const fn has_shm(self) -> bool {
        self.shm
    }

    /// The transport to other hosts, if any.
    pub const fn kind(self) -> Option<TransportKind> {
        self.net
    }

    /// The name in configuration files.
    pub const fn name(self) -> &'static str {
        match (self.shm, self.net) {
            (_, None) => "shm",
            (false, Some(kind)) => kind.name(),
            (true, Some(TransportKind::Rm)) => "shm+rm",
            (true, Some(TransportKind::Ru)) => "shm+ru",
            (true, Some(TransportKind::Tcp)) => "shm+tcp",
        }
    }
}

impl Default for Transports {
    fn default() -> Self {
        Self::SHM
    }
}

impl fmt::Display for Transports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Error of parsing [`Transports`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a list of transports: write shm, rm, ru, tcp, or both, such as shm+ru")]
pub struct ParseTransportsError(String);

impl FromStr for Transports {
    type Err = ParseTransportsError;
    fn from_str(text: &str) -> Result<Self, ParseTransportsError> {
        let net =
            TransportKind::ALL.into_iter().flat_map(|kind| [Self::net(kind), Self::both(kind)]);
        let mut all = std::iter::once(Self::SHM).chain(net);
        all.find(|it| it.name() == text).ok_or_else(|| ParseTransportsError(text.to_owned()))
    }
}
