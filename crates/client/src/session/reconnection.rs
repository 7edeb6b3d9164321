//! Which server to connect to next, and when.

use crate::backoff::Backoff;
use crate::settings::Settings;
use std::time::Duration;

/// Attempts to connect, across the servers of the settings.
#[derive(Debug)]
pub(super) struct Reconnection {
    /// Index of the current or last server.
    server: usize,
    /// Attempts since the last connection.
    attempts: usize,
    backoff: Backoff,
    has_been_connected: bool,
}

impl Reconnection {
    /// No attempts yet; `seed` is for jitter.
    pub(super) fn new(seed: u64) -> Self {
        Self { server: 0, attempts: 0, backoff: Backoff::new(seed), has_been_connected: false }
    }

    pub(super) fn server(&self, settings: &Settings) -> String {
        settings.servers[self.server].clone()
    }

    pub(super) fn has_been_connected(&self) -> bool {
        self.has_been_connected
    }

    pub(super) fn connected(&mut self) {
        self.has_been_connected = true;
    }

    /// Handles the end of a connection that was logged on for `lasted`.
    pub(super) fn disconnected(&mut self, settings: &Settings, lasted: Duration) {
        self.attempts = 0;
        // Resetting after each logon would let a server that ends it at once be tried without end.
        let long = settings.reconnect.map(|wait| wait.delay_max).unwrap_or_default();
        if lasted >= long {
            self.backoff.reset();
        }
    }

    /// Handles a failed attempt: the next one is at the next server.
    pub(super) fn failed(&mut self, settings: &Settings) {
        self.attempts += 1;
        self.server = (self.server + 1) % settings.servers.len();
    }

    /// The wait before the next attempt; `None` if there is none.
    pub(super) fn next_delay(&mut self, settings: &Settings) -> Option<Duration> {
        let has_tried_all = self.attempts >= settings.servers.len();
        let is_hopeless = !self.has_been_connected && has_tried_all;
        let reconnect = match settings.reconnect {
            None if !has_tried_all && self.attempts > 0 => Default::default(),
            Some(reconnect) if !is_hopeless => reconnect,
            _ => return None,
        };
        // Each server is tried before any a second time.
        let is_round = self.attempts.is_multiple_of(settings.servers.len());
        Some(if is_round { self.backoff.next(reconnect) } else { Duration::ZERO })
    }
}
