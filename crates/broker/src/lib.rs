//! The content server: clients publish to topics and subscribe to those messages that a filter
//! lets through, with the commands of `docs/protocol/command.md`.
//!
//! [`Hub`] is what it decides, without sockets or a clock of its own; [`Server`] is its sockets.
//! One thread does both: what clients sent is read in, matched, and written into the clients'
//! outboxes, each of which is handed to the system once a round.
#![forbid(unsafe_code)]

mod answers;
mod arrival;
mod backlog;
mod channel;
mod checker;
mod client;
mod config;
mod connection;
mod counters;
mod delays;
#[cfg(test)]
mod desk;
mod disk;
mod effort;
mod entrance;
mod fanout;
mod filing;
mod guard;
mod holding;
mod hub;
mod inquiry;
mod kept;
mod logon_queue;
mod logons;
mod matcher;
mod opening;
mod outbox;
mod patterns;
mod pending;
mod poller;
mod post;
mod refusal;
mod removal;
mod reply;
mod rights;
mod sequences;
mod server;
mod settings;
mod sheet;
mod slow;
mod source;
mod spool;
mod stopped;
mod storage;
mod subscription;
mod ties;
mod tls;
mod topic;
mod topics;
mod trusted_file;
mod users;
mod websocket;
mod world;

/// Nanoseconds of a clock that only goes forward.
pub type Nanos = u64;

pub use self::backlog::Spooling;
pub use self::client::ClientId;
pub use self::config::{ConfigError, DEFAULTS, PORT, WEBSOCKET_PORT, parse_address};
pub use self::counters::Counters;
pub use self::delays::Delay;
pub use self::hub::{Departure, Hub, Moment};
pub use self::opening::OpenError;
pub use self::server::Server;
pub use self::settings::{Settings, SettingsError};
pub use self::storage::{OnFailure, Storage};
pub use self::tls::{Tls, TlsError};
pub use self::trusted_file::TrustError;
pub use self::users::{PasswordError, UsersError, hash_password};
pub use self::world::WorldError;
pub use lanecast_sow::{TopicDefinition, ViewDefinition};
