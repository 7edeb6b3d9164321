//! Persistent streams as state machines: a publisher and its stores agree on which messages are
//! kept, so that every message that was told to be stable is found again, however publishers and
//! stores crash. Time, bytes, chance and the disk are arguments.
//!
//! A stream is one publisher, known by a stable id, on one topic. Its messages have sequences from
//! 0 on, which go on over the publisher's restarts. Stores subscribe to the topic as receivers do,
//! and never stand between publisher and receivers.
//!
//! - [`Source`]: the publisher. It registers a run with its stores, finds where the stream goes on,
//!   keeps messages until they are stable, and sends them again to stores that missed them.
//! - [`Store`]: a store. It appends messages to its [`StoreLog`], tells how far they are durable,
//!   and copies from other stores what it missed.
//! - [`Receiver`]: a receiver with a stable id. It begins where it had come to, fetches from stores
//!   what it missed, and tells them what its program has consumed.
//! - [`StoreGroups`]: the stores, and how many of them have to hold a message.
//!
//! The agreement is a replicated log with one writer at a time. Runs are ordered by their
//! [`Ballot`](lanecast_wire::store::Ballot); a store that has accepted one refuses those before it,
//! and a run begins with the log of the latest run that any of a recovery quorum has begun
//! (B. Oki and B. Liskov, Viewstamped Replication, 1988, whose views are the runs here).
//!
//! The frames are described in `docs/protocol/persistence.md`.
#![forbid(unsafe_code)]

mod early;
mod event;
mod log;
mod outlet;
mod quorum;
mod receiver;
mod receiver_event;
mod silence;
mod source;
mod store;

pub use event::SourceEvent;
pub use lanecast_wire::store::{GroupRule, StoreRefusal};
pub use log::{LogFull, StoreLog};
pub use outlet::{ReceiverOutlet, SourceOutlet, StoreOutlet};
pub use quorum::{GroupsError, StoreGroups};
pub use receiver::{Detachment, Receiver, ReceiverEnd, ReceiverSettings, ReceiverStart};
pub use receiver_event::{DurableLoss, PersistentMessage, ReceiverEvent};
pub use source::{Pacing, SendRefusal, Source, SourceSettings};
pub use store::{ReplayError, Store, StoreSettings, StreamSummary, UnconsumedBounds};

/// Nanoseconds since an arbitrary moment, the same for all calls of one machine.
pub type Nanos = u64;
