//! Stores that keep messages on disk, publishers whose messages are kept, and subscribers that get
//! what they missed, over any transport.
//!
//! A [`PersistentPublisher`] publishes on its topic as any publisher does. Beside that it asks the
//! stores, each on the topic `_store.NAME`, to keep its messages; a [`StoreServer`] subscribes to
//! the topic, writes what it receives into its journal (`log`, `index`), and replies on
//! `_store.NAME.CLIENT` how far that is on disk. A [`DurableSubscriber`] subscribes to the topic,
//! asks the stores where it had come to, and fetches from them what it missed.
//! A [`StoreAdministrator`] looks at stores from outside.
//! The decisions are those of
//! [`lanecast_persistence`]; here are their links (`link`, `clients`, `peers`), the directory, and
//! the waiting.
//!
//! `docs/protocol/persistence.md` describes the frames.
#![forbid(unsafe_code)]

mod administration;
mod administrator;
mod catalog;
mod checkpoint;
mod checkpointer;
mod clients;
mod commit_delay;
mod directory;
mod durable_run;
mod error;
mod fetch_queue;
mod former_feed;
mod held_events;
mod incarnation;
mod index;
mod link;
mod links;
mod log;
mod log_clock;
mod name;
mod options;
mod outbox;
mod peers;
mod proof;
mod publisher;
mod reading;
mod record_heads;
mod recovery;
mod requests;
mod retention;
mod room_wait;
mod server;
mod stats;
mod subscriber;
mod telemetry;
mod topic;
mod wakeup;

pub use administration::read_administration_key;
pub use administrator::{StoreAdministrator, StoreInspection};
pub use checkpoint::StoreRecovery;
pub use durable_run::{DurableEvents, DurableRun};
pub use error::{
    DirectoryError, FrameLengthError, NoAnswer, OpenError, PersistentSendError, RecordError,
    StoreError,
};
pub use lanecast_persistence::{
    Detachment, DurableLoss, GroupRule, GroupsError, Pacing, PersistentMessage, ReceiverEnd,
    ReceiverEvent, ReceiverSettings, ReceiverStart, SendRefusal, SourceEvent, SourceSettings,
    StoreGroups, StoreRefusal, StoreSettings, StreamSummary,
};
pub use lanecast_wire::store::{
    DeregisterOutcome, ReceiverReport, Registration, STORE_VERSION, StreamReport,
};
pub use name::NameError;
pub use options::{
    Acknowledgement, DurableOptions, PersistentOptions, StoreOptions, StoreRetention,
    TopicRetention,
};
pub use publisher::PersistentPublisher;
pub use server::StoreServer;
pub use stats::StoreStats;
pub use subscriber::DurableSubscriber;
