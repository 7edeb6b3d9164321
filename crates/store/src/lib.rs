//! Stores that keep messages on disk, and publishers whose messages are kept, over any transport.
//!
//! A [`PersistentPublisher`] publishes on its topic as any publisher does. Beside that it asks the
//! stores, each on the topic `_store.NAME`, to keep its messages; a [`StoreServer`] subscribes to
//! the topic, writes what it receives into its journal (`log`, `index`), and replies on
//! `_store.NAME.CLIENT` how far that is on disk. The decisions are those of
//! [`lanecast_persistence`]; here are their links (`link`, `clients`, `peers`), the directory, and
//! the waiting.
//!
//! `docs/protocol/persistence.md` describes the frames.
#![forbid(unsafe_code)]

mod clients;
mod directory;
mod error;
mod index;
mod link;
mod log;
mod name;
mod options;
mod outbox;
mod peers;
mod publisher;
mod server;
mod wakeup;

pub use error::{
    DirectoryError, OpenPublisherError, PersistentSendError, RecordError, StoreError,
};
pub use lanecast_persistence::{
    GroupRule, GroupsError, SendRefusal, SourceEvent, SourceSettings, StoreGroups, StoreSettings,
    StreamSummary,
};
pub use name::NameError;
pub use options::{PersistentOptions, StoreOptions};
pub use publisher::PersistentPublisher;
pub use server::{StoreServer, StoreStats};
