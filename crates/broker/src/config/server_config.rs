//! The configuration of a server: defaults, checks and errors.

use crate::config::address::PORT;
use crate::config::offline::OfflineSettings;
use crate::config::storage::StorageConfig;
use crate::names::{NAME_MAX, is_name};
use lanecast_filter::FilterLimits;
use lanecast_sow::{TopicDefinition, ViewDefinition};
use lanecast_tls::TlsFiles;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Server configuration. Each limit bounds what one client may make the server keep.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// The result of `INSTANCE_NAME()` in filters; may be empty.
    pub name: Box<str>,
    /// Address of the TCP listener.
    pub listen: SocketAddr,
    /// Address of the WebSocket listener, if any.
    pub websocket: Option<SocketAddr>,
    /// Origins of web pages that may connect by WebSocket, besides pages of the same host.
    pub origins: Vec<String>,
    /// Whether to listen to other hosts without authentication.
    pub allow_remote: bool,
    /// The most clients at a time.
    pub clients_max: usize,
    /// The longest frame that a client may send, in bytes; at most 16 KiB before its logon.
    pub frame_bytes_max: usize,
    /// The longest time from a frame's first byte to its last.
    pub frame_timeout: Duration,
    /// The most bytes of incomplete frames of all clients, but never less than one frame. Beyond
    /// it, the address with the most such bytes loses its oldest connection.
    pub partial_frame_bytes_max: usize,
    /// The most connections before their logon.
    pub pending_max: usize,
    /// The most of them from one address.
    pub pending_per_address_max: usize,
    /// The most bytes in memory in a client's send queue. Beyond it, the client is disconnected, or
    /// goes [`offline`](Self::offline) if that is set.
    pub send_queue_bytes_max: usize,
    /// The most bytes in memory in the send queues of all clients. Beyond it, clients with the
    /// longest queues are disconnected or go offline first.
    pub queued_bytes_max: usize,
    /// Keeps the messages of slow consumers on disk instead of disconnecting them.
    pub offline: Option<OfflineSettings>,
    /// The most subscriptions of a client.
    pub subscriptions_max: usize,
    /// The most concurrent queries of a client; its next command waits while it has that many.
    pub queries_max: usize,
    /// The most topics.
    pub topics_max: usize,
    /// The most transient topics in use that a client may have created.
    pub client_topics_max: usize,
    /// A transient topic without subscriptions and publishers is removed after this time.
    pub topics_idle: Duration,
    /// The most distinct regular expressions for topics of a client; all clients together may have
    /// ten times as many.
    pub patterns_max: usize,
    /// The most bytes of the compiled regular expressions in a client's subscriptions and queries,
    /// with the memory for matching them.
    pub client_patterns_bytes: usize,
    /// The most bytes for sorting one query's result.
    pub query_sort_bytes: usize,
    /// The most bytes for sorting the results of a client's queries.
    pub client_sort_bytes: usize,
    /// The most bytes for sorting the results of all queries.
    pub sort_bytes_max: usize,
    /// The most client names with a remembered sequence number; 0 remembers none.
    pub names_max: usize,
    /// The most of them of one user, where users are configured.
    pub names_of_user_max: usize,
    /// A name that no client uses is removed after this time.
    pub names_age: Duration,
    /// The users file. Without one, every client may do everything.
    pub users: Option<PathBuf>,
    /// TLS certificate and key. Without them, connections are plain.
    pub tls: Option<TlsFiles>,
    /// The longest time from connecting until TLS, WebSocket and logon are complete.
    pub handshake: Duration,
    /// The longest time for emptying send queues when the server ends.
    pub drain: Duration,
    /// SOW topics: the server keeps the last message of each key.
    pub topics: Vec<TopicDefinition>,
    /// Views, each over topics or over views before it.
    pub views: Vec<ViewDefinition>,
    /// Storage of durable topics; required if there are any.
    pub storage: Option<StorageConfig>,
    /// FilterLimits of filters.
    pub filters: FilterLimits,
}

impl ServerConfig {
    /// The defaults, listening on that address.
    pub fn at(listen: SocketAddr) -> Self {
        Self {
            name: Box::default(),
            listen,
            websocket: None,
            origins: Vec::new(),
            allow_remote: false,
            clients_max: 1_000,
            frame_bytes_max: 16 << 20,
            frame_timeout: Duration::from_secs(60),
            partial_frame_bytes_max: 256 << 20,
            pending_max: 512,
            pending_per_address_max: 128,
            send_queue_bytes_max: 64 << 20,
            queued_bytes_max: 1 << 30,
            offline: None,
            subscriptions_max: 100_000,
            queries_max: 16,
            topics_max: 100_000,
            client_topics_max: 25_000,
            topics_idle: Duration::from_secs(60),
            patterns_max: 1_000,
            client_patterns_bytes: 256 << 20,
            query_sort_bytes: 64 << 20,
            client_sort_bytes: 128 << 20,
            sort_bytes_max: 512 << 20,
            names_max: 100_000,
            names_of_user_max: 10_000,
            names_age: Duration::from_secs(30 * 86_400),
            users: None,
            tls: None,
            handshake: Duration::from_secs(10),
            drain: Duration::from_secs(2),
            topics: Vec::new(),
            views: Vec::new(),
            storage: None,
            filters: FilterLimits::default(),
        }
    }

    /// Checks values that contradict each other or are too small.
    ///
    /// # Errors
    /// See [`ServerConfigError`]; its text says what to change.
    pub fn check(&self) -> Result<(), ServerConfigError> {
        let mut listeners = [Some(self.listen), self.websocket].into_iter().flatten();
        if let Some(remote) = listeners.find(|at| !at.ip().is_loopback())
            && !self.allow_remote
        {
            return Err(ServerConfigError::Remote(remote));
        }
        if !self.name.is_empty() && !is_name(&self.name) {
            return Err(ServerConfigError::Name);
        }
        let least = [
            ("limits.clients", self.clients_max, 1),
            ("limits.frame", self.frame_bytes_max, 1_024),
            ("limits.pending", self.pending_max, 1),
            ("limits.pending_per_address", self.pending_per_address_max, 1),
            ("limits.outbox", self.send_queue_bytes_max, 1_024),
            ("slow.total", self.queued_bytes_max, 1_024),
            ("limits.subscriptions", self.subscriptions_max, 1),
            ("limits.queries", self.queries_max, 1),
            ("limits.topics", self.topics_max, 1),
        ];
        if let Some((name, value, least)) =
            least.into_iter().find(|(_, value, least)| value < least)
        {
            return Err(ServerConfigError::TooSmall { name, value, least });
        }
        match &self.offline {
            Some(offline) if offline.directory == Path::new("") => {
                Err(ServerConfigError::NoOfflineDirectory)
            }
            Some(offline) if offline.bytes_max == 0 => {
                Err(ServerConfigError::TooSmall { name: "offline.bytes_max", value: 0, least: 1 })
            }
            _ => Ok(()),
        }
    }

    /// The settings that `error` of [`check`](Self::check) is about, as a file names them.
    pub fn settings_of(&self, error: &ServerConfigError) -> &'static [&'static str] {
        match error {
            ServerConfigError::Remote(at) if *at == self.listen => {
                &["listen.tcp", "listen.allow_remote"]
            }
            ServerConfigError::Remote(_) => &["listen.websocket", "listen.allow_remote"],
            ServerConfigError::Name => &["name"],
            ServerConfigError::NoOfflineDirectory => &["slow.policy", "slow.directory"],
            // The file's values are large enough; options have their own ranges.
            ServerConfigError::TooSmall { .. } => &[],
        }
    }
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self::at((Ipv4Addr::LOCALHOST, PORT).into())
    }
}

/// An invalid configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServerConfigError {
    /// Other hosts could connect without authentication.
    #[error(
        "{0} is reached from other hosts without authentication: listen on 127.0.0.1, or \
         allow remote clients (allow_remote, --allow-remote) if all that reach the port are \
         trusted"
    )]
    Remote(SocketAddr),
    /// The server's name is too long or has control characters.
    #[error("the server's name has at most {NAME_MAX} bytes, and no control characters")]
    Name,
    /// The offline policy has no directory.
    #[error(
        "slow clients are to go offline: give the directory for their messages (slow.directory, \
         --offline)"
    )]
    NoOfflineDirectory,
    /// A limit is too small.
    #[error("{name} is {value}: it must be at least {least}")]
    TooSmall {
        /// The limit.
        name: &'static str,
        /// The configured value.
        value: usize,
        /// The least allowed value.
        least: usize,
    },
}
