//! Which ways messages take.

use lanecast_net::Kind;
use std::fmt;
use std::str::FromStr;

/// The carriers that a context uses: shared memory, one way between hosts, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carriers {
    shm: bool,
    net: Option<Kind>,
}

impl Carriers {
    /// Shared memory alone.
    pub const SHM: Self = Self { shm: true, net: None };

    /// `kind` alone: also to subscribers on this host.
    pub const fn net(kind: Kind) -> Self {
        Self { shm: false, net: Some(kind) }
    }

    /// Shared memory where it reaches, `kind` to everybody else.
    pub const fn both(kind: Kind) -> Self {
        Self { shm: true, net: Some(kind) }
    }

    /// Whether shared memory is used.
    pub const fn has_shm(self) -> bool {
        self.shm
    }

    /// How publishers send to other hosts, if they do.
    pub const fn kind(self) -> Option<Kind> {
        self.net
    }

    /// The name in configuration files.
    pub const fn name(self) -> &'static str {
        match (self.shm, self.net) {
            (_, None) => "shm",
            (false, Some(kind)) => kind.name(),
            (true, Some(Kind::Rm)) => "shm+rm",
            (true, Some(Kind::Ru)) => "shm+ru",
            (true, Some(Kind::Tcp)) => "shm+tcp",
        }
    }
}

impl Default for Carriers {
    fn default() -> Self {
        Self::SHM
    }
}

impl fmt::Display for Carriers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A word that names no [`Carriers`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' names no carriers: write shm, rm, ru, tcp, or both, such as shm+ru")]
pub struct ParseCarriersError(String);

impl FromStr for Carriers {
    type Err = ParseCarriersError;
    fn from_str(text: &str) -> Result<Self, ParseCarriersError> {
        let net = Kind::ALL.into_iter().flat_map(|kind| [Self::net(kind), Self::both(kind)]);
        let mut all = std::iter::once(Self::SHM).chain(net);
        all.find(|it| it.name() == text).ok_or_else(|| ParseCarriersError(text.to_owned()))
    }
}
