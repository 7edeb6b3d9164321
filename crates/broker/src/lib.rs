//! The content server: clients publish to topics and subscribe to the messages that match a filter,
//! with the commands of `docs/protocol/command.md`.
//!
//! [`Server`] owns the sockets, [`Engine`] everything else; one thread runs both. The folders
//! follow the path of a command:
//!
//! 1. `net/` accepts connections and splits their bytes into frames;
//! 2. `command/` parses a frame into a typed request;
//! 3. `auth/` authenticates the client and authorizes the request;
//! 4. `engine/` executes it on the engine's parts;
//! 5. `topic/` stores and matches messages;
//! 6. `delivery/` encodes a message for its subscribers;
//! 7. `queue/` holds bytes until `net/` sends them.
//!
//! `config/` reads the configuration, `stats/` counts. Nothing in `topic/` and `delivery/` knows a
//! socket, and nothing in `net/` a topic.
#![forbid(unsafe_code)]

mod auth;
mod clients;
mod command;
mod config;
mod delivery;
mod engine;
mod ids;
mod names;
mod net;
mod open_error;
mod queue;
mod server;
mod stats;
#[cfg(test)]
mod test_broker;
mod time;
mod topic;

pub use self::auth::users::{PasswordError, UsersError, hash_password};
pub use self::clients::DisconnectReason;
pub use self::config::address::{PORT, WEBSOCKET_PORT, parse_address};
pub use self::config::file::{
    ConfigFileError, DEFAULTS, parse_config, read_config, read_config_with_places,
};
pub use self::config::offline::OfflineSettings;
pub use self::config::place::{Conflict, Place};
pub use self::config::server_config::{ServerConfig, ServerConfigError};
pub use self::config::setting_places::SettingPlaces;
pub use self::config::storage::{OnFailure, StorageConfig};
pub use self::engine::Engine;
pub use self::ids::ClientId;
pub use self::open_error::OpenError;
pub use self::server::Server;
pub use self::stats::counters::Counters;
pub use self::stats::latency::Latency;
pub use self::time::{Nanos, Now};
pub use self::topic::configured::CatalogError;
pub use lanecast_os::trusted_file::TrustError;
pub use lanecast_sow::{TopicDefinition, ViewDefinition};
pub use lanecast_tls::{TlsError, TlsFiles};
