//! Settings of a client: identity, servers, timeouts and limits.

use crate::error::ClientError;
use crate::event::State;
use crate::server_address::ServerAddress;
use crate::tls::Tls;
use std::fmt;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::time::Duration;

/// Longest timeout, interval of heartbeats, and wait before reconnecting.
const WAIT_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// The identity of a client, and the type of its messages.
#[derive(Clone)]
pub struct Identity {
    /// The client's name, or empty; two connected clients cannot share one. A client with a name
    /// numbers its messages, so that the server recognizes repetitions.
    pub name: String,
    /// The user, or empty.
    pub user: String,
    /// The user's password, or empty. A connection without TLS exposes it to the network.
    pub password: String,
    /// `json`, `nvfix`, `fix`, `xml` or `binary`.
    pub message_type: String,
}

impl Default for Identity {
    /// No name and no user, with messages in JSON.
    fn default() -> Self {
        let [name, user, password] = [const { String::new() }; 3];
        Self { name, user, password, message_type: "json".to_owned() }
    }
}

impl fmt::Debug for Identity {
    /// Shows all but the password.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, user, message_type, .. } = self;
        let mut shown = formatter.debug_struct("Identity");
        shown.field("name", name).field("user", user).field("message_type", message_type);
        shown.finish_non_exhaustive()
    }
}

/// Waits before reconnecting. The wait doubles with each round of attempts at all servers, with
/// jitter over half of it, so that clients do not reconnect all at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reconnect {
    /// The first wait.
    pub delay_min: Duration,
    /// The longest wait: a day at most.
    pub delay_max: Duration,
}

impl Default for Reconnect {
    /// Waits between 100 ms and 10 s.
    fn default() -> Self {
        Self { delay_min: Duration::from_millis(100), delay_max: Duration::from_secs(10) }
    }
}

/// The acknowledgement that completes a published message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AckLevel {
    /// The server delivers it to subscribers. It may be lost with the server.
    #[default]
    Processed,
    /// The message is on disk. Only durable topics acknowledge so.
    Persisted,
}

/// A callback for state changes of the connection.
#[derive(Clone)]
pub struct StateHandler(pub(crate) Arc<dyn Fn(&State) + Send + Sync>);

impl StateHandler {
    /// Calls the callback.
    ///
    /// # Errors
    /// If it panics: on its thread the panic would leave all calls of the client waiting.
    pub(crate) fn call(&self, state: &State) -> Result<(), ClientError> {
        let called = panic::catch_unwind(AssertUnwindSafe(|| (self.0)(state)));
        called.map_err(|panic| ClientError::panicked("the callback on_state", &*panic))
    }
}

impl fmt::Debug for StateHandler {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("StateHandler")
    }
}

/// Settings of a client.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The identity.
    pub identity: Identity,
    /// Servers, tried in turn, each written as a [`ServerAddress`] is: such as `127.0.0.1:9007`, or
    /// `tcps://state.example` for one that is only to be spoken to in secret.
    pub servers: Vec<String>,
    /// TLS of the connections; none for plain TCP.
    pub tls: Option<Tls>,
    /// Waits before reconnecting, or none to stop with the connection. The first connection is
    /// tried once at each server.
    pub reconnect: Option<Reconnect>,
    /// Interval of heartbeats in whole seconds, for both ends; three missed ones end the
    /// connection. Without it only TCP detects a dead peer.
    pub heartbeat: Option<Duration>,
    /// The timeout of connecting to an address of a server and of logging on, of each answer, of
    /// waiting for room, and of sending the rest at the end: a day at most.
    pub patience: Duration,
    /// The acknowledgement until which messages are retained.
    pub acknowledge: AckLevel,
    /// The most bytes of unacknowledged messages.
    pub unacknowledged_bytes_max: usize,
    /// The most bytes of unread events: of all subscriptions together, or, in the asynchronous
    /// client, of each. Also the most bytes of an answer to a query.
    pub unread_bytes_max: usize,
    /// The callback for state changes; see [`on_state`](Self::on_state).
    pub watcher: Option<StateHandler>,
}

impl Settings {
    /// A client that reconnects, to the first reachable of these servers.
    pub fn new<S: Into<String>>(servers: impl IntoIterator<Item = S>, identity: Identity) -> Self {
        Self {
            identity,
            servers: servers.into_iter().map(Into::into).collect(),
            tls: None,
            reconnect: Some(Reconnect::default()),
            heartbeat: Some(Duration::from_secs(10)),
            patience: Duration::from_secs(10),
            acknowledge: AckLevel::default(),
            unacknowledged_bytes_max: 16 << 20,
            unread_bytes_max: 256 << 20,
            watcher: None,
        }
    }

    /// A client that does not reconnect.
    pub fn once(server: &str, identity: Identity) -> Self {
        Self { reconnect: None, ..Self::new([server], identity) }
    }

    /// Uses TLS.
    #[must_use]
    pub fn tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Calls `watch` with each state of the connection, on the thread that drives it: it should be
    /// quick and cannot call the client. If it panics, the client ends with
    /// [`ClientError::Panicked`].
    #[must_use]
    pub fn on_state(mut self, watch: impl Fn(&State) + Send + Sync + 'static) -> Self {
        self.watcher = Some(StateHandler(Arc::new(watch)));
        self
    }

    pub(crate) fn check(&self) -> Result<(), ClientError> {
        let wrong = |what| Err(ClientError::Settings(what));
        if self.servers.is_empty() {
            return wrong("no server: give one, such as 127.0.0.1:9007");
        }
        for server in &self.servers {
            if parse_server(server)?.is_encrypted() && self.tls.is_none() {
                return wrong("a server is tcps://: give the root certificates to verify it");
            }
        }
        if self.patience.is_zero() {
            return wrong("timeout is zero: make it 1 s or more");
        }
        // The end of a longer wait may lie beyond the clock.
        let delay_max = self.reconnect.map(|wait| wait.delay_max);
        let waits = [Some(self.patience), self.heartbeat, delay_max];
        if waits.into_iter().flatten().any(|wait| wait > WAIT_MAX) {
            return wrong("timeout, heartbeat or delay_max is longer than a day: make it shorter");
        }
        if self
            .heartbeat
            .is_some_and(|heartbeat| heartbeat.as_secs() == 0 || heartbeat.subsec_nanos() != 0)
        {
            return wrong("heartbeat is not in whole seconds: make it 1 s or more, or none");
        }
        if self.acknowledge == AckLevel::Persisted && self.identity.name.is_empty() {
            return wrong(
                "persisted acknowledgements need sequence numbers: give the client a name",
            );
        }
        if self.reconnect.is_some_and(|wait| wait.delay_min > wait.delay_max) {
            return wrong("delay_min is longer than delay_max");
        }
        Ok(())
    }
}

/// Parses an address of the settings.
pub(crate) fn parse_server(text: &str) -> Result<ServerAddress, ClientError> {
    text.parse().map_err(|error| ClientError::Address { server: text.to_owned(), error })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_beyond_the_clock_are_refused() {
        let settings = |patience, heartbeat, delay_max| Settings {
            patience,
            heartbeat,
            reconnect: Some(Reconnect { delay_max, ..Reconnect::default() }),
            ..Settings::once("127.0.0.1:9007", Identity::default())
        };
        settings(WAIT_MAX, Some(WAIT_MAX), WAIT_MAX).check().expect("a day");
        for wrong in [
            settings(Duration::MAX, None, WAIT_MAX),
            settings(WAIT_MAX, Some(2 * WAIT_MAX), WAIT_MAX),
            settings(WAIT_MAX, None, Duration::MAX),
        ] {
            let words = wrong.check().expect_err("too long").to_string();
            assert!(words.contains("longer than a day"), "{words}");
        }
    }
}
