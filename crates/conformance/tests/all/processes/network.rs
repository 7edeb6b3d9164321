//! A network on loopback, for the processes of one test.

use lanecast_net::{NetSettings, NetTransport, Network, Pacing, TransportKind};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

/// Silence after which a process counts as dead: longer than a busy machine keeps one waiting.
const LIVENESS: Duration = Duration::from_secs(6);

/// A transport between hosts, and groups that no other test of this run, and no other run at this
/// time, speaks in.
pub(crate) struct Loopback {
    kind: TransportKind,
    group: SocketAddr,
    resolver_group: SocketAddr,
}

impl Loopback {
    pub(crate) fn new(kind: TransportKind) -> Self {
        static NEXT: AtomicU16 = AtomicU16::new(0);
        let port = 26_000 + NEXT.fetch_add(2, Ordering::Relaxed);
        let run = std::process::id() as u16;
        let at = |port| SocketAddr::from(([239, 194, (run >> 8) as u8, run as u8], port));
        Self { kind, group: at(port), resolver_group: at(port + 1) }
    }

    /// The words of an actor's part that say which network this is.
    pub(crate) fn words(&self) -> String {
        let Self { kind, group, resolver_group } = self;
        format!("transport={kind} group={group} resolver_group={resolver_group}")
    }

    /// The network that an actor's words name, if they name one.
    pub(crate) fn from_words(words: &HashMap<&str, &str>) -> Option<Self> {
        let name = words.get("transport")?;
        let kind = TransportKind::ALL.into_iter().find(|kind| kind.name() == *name);
        let address = |key| words[key].parse().expect("an address");
        Some(Self {
            kind: kind.expect("a transport between hosts"),
            group: address("group"),
            resolver_group: address("resolver_group"),
        })
    }

    /// Opens it with the smallest window, soon full.
    pub(crate) fn open(&self) -> NetTransport {
        self.open_with(Pacing::Slowest)
    }

    /// The same with another pacing of publishers.
    pub(crate) fn open_with(&self, pacing: Pacing) -> NetTransport {
        let network = Network::open(NetSettings {
            group: self.group,
            resolver_group: Some(self.resolver_group),
            window_bytes: 64 << 10,
            liveness: LIVENESS,
            pacing,
            ..NetSettings::default()
        });
        NetTransport::new(network.expect("a network"), self.kind)
    }
}
