//! The daemon's counters, where `lanecast stat` finds them.

use crate::context::DomainArgs;
use crate::output::{warn, words};
use lanecast_net::ResolverDaemon;
use lanecast_os::private_directory;
use lanecast_stats::{CounterLayout, Counters};
use std::time::{Duration, Instant};

const LABELS: [&str; 16] = [
    "clients arrived",
    "clients departed",
    "clients refused",
    "frames received",
    "frames malformed",
    "entries senseless",
    "entries of others' sessions",
    "topics registered",
    "facts told",
    "sessions expired",
    "tls handshakes begun",
    "tls handshakes completed",
    "tls handshakes over the rate",
    "connections that gave way",
    "tls handshake ns",
    "errors",
];
const ERRORS: usize = LABELS.len() - 1;
/// Counters are shown at most so often.
const SHOW_EVERY: Duration = Duration::from_millis(100);

/// Counters that others can look at, if there is a file for them.
#[derive(Debug)]
pub(super) struct Tally {
    counters: Option<Counters>,
    shown: [u64; ERRORS],
    last: Instant,
}

impl Tally {
    /// # Errors
    /// If the configuration cannot be read.
    pub(super) fn open(domain: &DomainArgs) -> anyhow::Result<Self> {
        let shm = domain.builder()?.config()?.shm;
        let made = private_directory(&shm.directory, shm.access).map_err(anyhow::Error::from);
        let plan = CounterLayout::process(&LABELS, 0);
        let counters = made
            .and_then(|()| Ok(Counters::create(&shm.directory, shm.access.read_mode(), &plan)?));
        if let Err(error) = &counters {
            warn(&format!("going on without counters: {}", words(error)));
        }
        Ok(Self { counters: counters.ok(), shown: [0; ERRORS], last: Instant::now() })
    }

    pub(super) fn show(&mut self, daemon: &ResolverDaemon) {
        let Some(counters) = &self.counters else { return };
        if self.last.elapsed() < SHOW_EVERY {
            return;
        }
        self.last = Instant::now();
        let now = values(daemon);
        for (index, (now, shown)) in now.into_iter().zip(self.shown).enumerate() {
            counters.add(index, now - shown);
        }
        self.shown = now;
    }

    pub(super) fn error(&self, text: &str) {
        if let Some(counters) = &self.counters {
            counters.add(ERRORS, 1);
            counters.error(text);
        }
    }
}

/// The counters in the order of their labels.
const fn values(daemon: &ResolverDaemon) -> [u64; ERRORS] {
    let (counters, handshakes) = (daemon.counters(), daemon.handshakes());
    [
        counters.connected,
        counters.disconnected,
        counters.rejected,
        counters.frames,
        counters.malformed,
        counters.malformed_entries,
        counters.foreign,
        counters.registered,
        counters.sent,
        counters.expired,
        handshakes.begun,
        handshakes.completed,
        handshakes.refused,
        handshakes.displaced,
        handshakes.nanos,
    ]
}
