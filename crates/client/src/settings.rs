//! Who a client is, whom it talks to, and how patient it is.

use crate::error::ClientError;
use crate::event::State;
use crate::server_address::ServerAddress;
use crate::tls::Tls;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Who a client is, and what its messages are.
#[derive(Clone)]
pub struct Identity {
    /// A name that no other client has at the same time; empty for none. Messages of a client with
    /// a name are numbered, so that the server knows one that is sent again.
    pub name: String,
    /// Whose client it is; empty for nobody's.
    pub user: String,
    /// What proves that to a server that asks; empty for nothing. Over a connection without TLS it
    /// can be read on the way.
    pub password: String,
    /// `json`, `nvfix`, `fix`, `xml` or `binary`.
    pub message_type: String,
}

impl Default for Identity {
    /// Nobody, with messages in JSON.
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

/// How long to wait before connecting again. The time doubles with each round of attempts at all
/// servers, and a random half of it is left out, so that clients do not come all at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reconnect {
    /// The first time.
    pub delay_min: Duration,
    /// The longest.
    pub delay_max: Duration,
}

impl Default for Reconnect {
    /// From 100 ms to 10 s.
    fn default() -> Self {
        Self { delay_min: Duration::from_millis(100), delay_max: Duration::from_secs(10) }
    }
}

/// What it means that the server has acknowledged a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Level {
    /// Its subscribers get it. It may be lost with the server.
    #[default]
    Processed,
    /// It survives the server. Only topics that the server keeps on disk can say so.
    Persisted,
}

/// Called with each state that the connection comes into.
#[derive(Clone)]
pub struct Watcher(pub(crate) Arc<dyn Fn(&State) + Send + Sync>);

impl fmt::Debug for Watcher {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Watcher")
    }
}

/// How a client behaves.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Who it is.
    pub identity: Identity,
    /// Servers, tried in turn, each written as a [`ServerAddress`] is: such as `127.0.0.1:9007`, or
    /// `tcps://desk.example` for one that is only to be spoken to in secret.
    pub servers: Vec<String>,
    /// How connections are encrypted; they are not if none.
    pub tls: Option<Tls>,
    /// Whether and how soon it connects again. The first connection is tried once at each server.
    pub reconnect: Option<Reconnect>,
    /// Both ends give a sign of life this often, in whole seconds; three missed ones end the
    /// connection. None: only the network tells that the other is gone.
    pub heartbeat: Option<Duration>,
    /// How long a connection, an answer, or room for a message is waited for.
    pub patience: Duration,
    /// What messages are kept for until it is reached.
    pub acknowledge: Level,
    /// The most bytes of messages that may wait to be acknowledged.
    pub unacknowledged_bytes_max: usize,
    /// The most bytes that may wait to be read by the application: of all messages together, or,
    /// in the asynchronous client, of each subscription.
    pub unread_bytes_max: usize,
    /// Who is told how the connection is; see [`on_state`](Self::on_state).
    pub watcher: Option<Watcher>,
}

impl Settings {
    /// A client that connects again when its connection ends, with the first of these servers that
    /// can be reached.
    pub fn new<S: Into<String>>(servers: impl IntoIterator<Item = S>, identity: Identity) -> Self {
        Self {
            identity,
            servers: servers.into_iter().map(Into::into).collect(),
            tls: None,
            reconnect: Some(Reconnect::default()),
            heartbeat: Some(Duration::from_secs(10)),
            patience: Duration::from_secs(10),
            acknowledge: Level::default(),
            unacknowledged_bytes_max: 16 << 20,
            unread_bytes_max: 256 << 20,
            watcher: None,
        }
    }

    /// A client whose first connection is its last.
    pub fn once(server: &str, identity: Identity) -> Self {
        Self { reconnect: None, ..Self::new([server], identity) }
    }

    /// Encrypts connections.
    #[must_use]
    pub fn tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Has `watch` called with each state that the connection comes into, on the thread that looks
    /// after it: it should not take long, and cannot call the client.
    #[must_use]
    pub fn on_state(mut self, watch: impl Fn(&State) + Send + Sync + 'static) -> Self {
        self.watcher = Some(Watcher(Arc::new(watch)));
        self
    }

    pub(crate) fn check(&self) -> Result<(), ClientError> {
        let wrong = |what| Err(ClientError::Settings(what));
        if self.servers.is_empty() {
            return wrong("there is no server to connect to: name one, such as 127.0.0.1:9007");
        }
        for server in &self.servers {
            if ServerAddress::of_settings(server)?.is_encrypted() && self.tls.is_none() {
                return wrong("a server is tcps://, so say by which certificates it is believed");
            }
        }
        if self.patience.is_zero() {
            return wrong("patience is zero, so nothing would be waited for: make it 1 s or more");
        }
        if self.heartbeat.is_some_and(|beat| beat.as_secs() == 0 || beat.subsec_nanos() != 0) {
            return wrong("heartbeat is not in whole seconds: make it 1 s or more, or none");
        }
        if self.acknowledge == Level::Persisted && self.identity.name.is_empty() {
            return wrong("messages are persisted by their numbers: give the client a name");
        }
        if self.reconnect.is_some_and(|wait| wait.delay_min > wait.delay_max) {
            return wrong("delay_min is longer than delay_max");
        }
        Ok(())
    }
}
