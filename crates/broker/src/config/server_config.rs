//! What a server may be told.

use crate::config::file::PORT;
use crate::config::storage::StorageConfig;
use crate::config::tls::TlsFiles;
use crate::queue::offline_queue::OfflineSettings;
use crate::topic::entry::{NAME_MAX, is_name};
use lanecast_filter::FilterLimits;
use lanecast_sow::{TopicDefinition, ViewDefinition};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How a server behaves. Each limit bounds what one client may make it keep.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// What `INSTANCE_NAME()` yields in filters; empty for no name.
    pub name: Box<str>,
    /// Where it listens.
    pub listen: SocketAddr,
    /// Where it listens for WebSockets, if it does.
    pub websocket: Option<SocketAddr>,
    /// Whose pages may connect by WebSocket, beside those of the same host.
    pub origins: Vec<String>,
    /// Whether it may be reached from other hosts, where nobody is asked who it is.
    pub allow_remote: bool,
    /// The most clients at a time.
    pub clients_max: usize,
    /// The longest frame that a client may send, in bytes; 16 KiB at most before it is known who
    /// it is.
    pub frame_bytes_max: usize,
    /// How long a frame may take from its beginning to its end.
    pub frame_timeout: Duration,
    /// The most bytes of frames that have begun and not ended, of all clients; never less than one
    /// frame may have. Beyond, the address
    /// that sends most of them loses its oldest.
    pub partial_frame_bytes_max: usize,
    /// The most connections that have not come in yet.
    pub pending_max: usize,
    /// The most of them from one address.
    pub pending_per_address_max: usize,
    /// The most bytes that may wait in memory for a client that reads too slowly; then it is
    /// disconnected, unless there is [`spooling`](Self::spooling).
    pub send_queue_bytes_max: usize,
    /// The most that may wait in memory for all clients. Beyond, those for whom most waits are
    /// the first to be disconnected, or to go to disk.
    pub queued_bytes_max: usize,
    /// Where it goes what waits beyond that, if anywhere.
    pub spooling: Option<OfflineSettings>,
    /// The most subscriptions of a client.
    pub subscriptions_max: usize,
    /// The most queries of a client that are being answered at a time; what else it sends waits.
    pub queries_max: usize,
    /// The most topics.
    pub topics_max: usize,
    /// The most topics that a client may have made of which nothing is kept, of those in use.
    pub client_topics_max: usize,
    /// A topic of which nothing is kept is forgotten when it has no subscription, and nothing was
    /// published for as long.
    pub topics_idle: Duration,
    /// The most different patterns of topics that a client may subscribe to; for all clients it is
    /// ten times as many.
    pub patterns_max: usize,
    /// The most bytes that the patterns of a client's subscriptions and queries may take together,
    /// compiled and when matched.
    pub client_patterns_bytes: usize,
    /// The most bytes that sorting the answer of a query may take; that of a client's queries; and
    /// that of all.
    pub query_sort_bytes: usize,
    /// See [`query_sort_bytes`](Self::query_sort_bytes).
    pub client_sort_bytes: usize,
    /// See [`query_sort_bytes`](Self::query_sort_bytes).
    pub sort_bytes_max: usize,
    /// The most names of clients whose last sequence number is remembered; none are if 0.
    pub names_max: usize,
    /// The most of them that a user may have, where users are known.
    pub names_of_user_max: usize,
    /// How long a name is remembered that no client uses.
    pub names_age: Duration,
    /// The file that says who may come in, and what they may do; everybody may everything if none.
    pub users: Option<PathBuf>,
    /// By what the server shows who it is, and connections are encrypted; they are not if none.
    pub tls: Option<TlsFiles>,
    /// How long somebody may take to come in: until hands have been shaken, and it is known who it
    /// is.
    pub handshake: Duration,
    /// For how long outboxes are emptied when the server ends.
    pub drain: Duration,
    /// The topics of which the last message of each key is kept.
    pub kept: Vec<TopicDefinition>,
    /// What is shown of them, each over topics or over views before it.
    pub views: Vec<ViewDefinition>,
    /// Where durable topics are kept; there are none without.
    pub storage: Option<StorageConfig>,
    /// What filters may be.
    pub filters: FilterLimits,
}

impl ServerConfig {
    /// The defaults, listening there.
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
            spooling: None,
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
            kept: Vec::new(),
            views: Vec::new(),
            storage: None,
            filters: FilterLimits::default(),
        }
    }

    /// Whether they make sense.
    ///
    /// # Errors
    /// If they do not, with what to change.
    pub fn check(&self) -> Result<(), ServerConfigError> {
        let mut entrances = [Some(self.listen), self.websocket].into_iter().flatten();
        if let Some(remote) = entrances.find(|at| !at.ip().is_loopback())
            && !self.allow_remote
        {
            return Err(ServerConfigError::Remote(remote));
        }
        if !self.name.is_empty() && !is_name(&self.name) {
            return Err(ServerConfigError::Name);
        }
        let least = [
            ("clients_max", self.clients_max, 1),
            ("frame_bytes_max", self.frame_bytes_max, 1_024),
            ("pending_max", self.pending_max, 1),
            ("pending_per_address_max", self.pending_per_address_max, 1),
            ("send_queue_bytes_max", self.send_queue_bytes_max, 1_024),
            ("queued_bytes_max", self.queued_bytes_max, 1_024),
            ("subscriptions_max", self.subscriptions_max, 1),
            ("queries_max", self.queries_max, 1),
            ("topics_max", self.topics_max, 1),
        ];
        if let Some((name, value, least)) =
            least.into_iter().find(|(_, value, least)| value < least)
        {
            return Err(ServerConfigError::TooSmall { name, value, least });
        }
        match &self.spooling {
            Some(spooling) if spooling.directory == Path::new("") => {
                Err(ServerConfigError::NoSpool)
            }
            Some(spooling) if spooling.bytes_max == 0 => {
                Err(ServerConfigError::TooSmall { name: "spooling.bytes_max", value: 0, least: 1 })
            }
            _ => Ok(()),
        }
    }
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self::at((Ipv4Addr::LOCALHOST, PORT).into())
    }
}

/// Settings that make no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServerConfigError {
    /// It would be open to everybody.
    #[error(
        "{0} is reached from other hosts, and nobody is asked who it is: listen on 127.0.0.1, or \
         allow remote clients if all who reach the port are trusted"
    )]
    Remote(SocketAddr),
    /// Its name cannot be one.
    #[error("the server's name has at most {NAME_MAX} bytes, and no control characters")]
    Name,
    /// What clients do not read in time has nowhere to go.
    #[error("slow clients are to go offline: say in which directory what they miss is to wait")]
    NoSpool,
    /// A limit is too small to work with.
    #[error("{name} is {value}: it must be at least {least}")]
    TooSmall {
        /// Which.
        name: &'static str,
        /// What it is.
        value: usize,
        /// What it must be.
        least: usize,
    },
}
