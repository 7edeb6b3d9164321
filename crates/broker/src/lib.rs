//! The content server: clients publish to topics and subscribe to those messages that a filter
//! lets through, with the commands of `docs/protocol/command.md`.
//!
//! [`Engine`] is what it decides, without sockets or a clock of its own; [`Server`] is its sockets.
//! One thread does both: what clients sent is read in, matched, and written into the clients'
//! outboxes, each of which is handed to the system once a round.
#![forbid(unsafe_code)]

mod auth;
mod client;
mod command;
mod config;
mod delivery;
mod engine;
mod net;
mod open_error;
mod queue;
mod server;
mod stats;
#[cfg(test)]
mod test_broker;
mod topic;

/// Nanoseconds of a clock that only goes forward.
pub type Nanos = u64;

pub use self::auth::users::{PasswordError, UsersError, hash_password};
pub use self::client::ClientId;
pub use self::config::file::{ConfigFileError, DEFAULTS, PORT, WEBSOCKET_PORT, parse_address};
pub use self::config::server_config::{ServerConfig, ServerConfigError};
pub use self::config::storage::{OnFailure, StorageConfig};
pub use self::config::tls::{TlsError, TlsFiles};
pub use self::config::trusted_file::TrustError;
pub use self::engine::{DisconnectReason, Engine, Now};
pub use self::open_error::OpenError;
pub use self::queue::offline_queue::OfflineSettings;
pub use self::server::Server;
pub use self::stats::counters::Counters;
pub use self::stats::latency::Latency;
pub use self::topic::catalog::CatalogError;
pub use lanecast_sow::{TopicDefinition, ViewDefinition};
