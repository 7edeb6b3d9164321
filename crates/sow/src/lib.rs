//! The state of the world: of each topic the last message of each key, kept to be asked for.
//!
//! - [`TopicDefinition`]: what a topic's messages are, and by which fields they are told apart;
//! - [`Topic`]: its [`Record`]s; each call that changes one says so with a [`Change`];
//! - [`Change`], [`Version`]: what a record was and what it is now, for whoever follows a topic.
//! - [`Query`], [`QueryCursor`]: the records that meet a filter, sorted, at once or bit by bit.
//! - [`SubscriptionSet`]: who subscribes to a topic, by content; [`Event`]: what they are told.
//! - [`durable`]: topics that outlive their process.
//! - [`View`], [`ViewGraph`]: topics that are made of others, joined, grouped and added up.
//!
//! One thread owns a topic. Nothing here keeps time, which is an argument, in nanoseconds since
//! 1970; and outside of [`durable`] nothing locks, waits or does I/O.
//!
//! ```
//! use lanecast_filter::message_type::MessageType;
//! use lanecast_sow::{Publication, Topic, TopicDefinition};
//! let definition = TopicDefinition::new("orders", MessageType::Nvfix).key("/id")?;
//! let mut topic = Topic::new(definition)?;
//! topic.publish(&Publication::of(b"id=1\x01qty=5\x01"), 0)?;
//! let change = topic.publish(&Publication::of(b"id=1\x01qty=7\x01"), 1)?;
//! let before = change.before.map(|before| before.record().bytes());
//! assert_eq!(before, Some(&b"id=1\x01qty=5\x01"[..]));
//! assert_eq!((change.sequence, topic.len()), (2, 1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod change;
mod conflation;
mod definition;
mod deletion;
mod deltas;
pub mod durable;
mod error;
mod expiry;
mod hash_index;
mod key;
mod parsed_fields;
mod pending_update;
mod publication;
mod query;
mod query_cursor;
mod queue;
mod record;
mod record_table;
mod records;
mod sink;
mod sort_key;
mod subscription;
mod subscription_set;
mod topic;
pub mod view;

pub use change::{Cause, Change, Version};
pub use definition::TopicDefinition;
pub use deletion::Deletion;
pub use error::TopicError;
pub use key::Key;
pub use publication::Publication;
pub use query::{Order, Query, SortMemory};
pub use query_cursor::{QueryCursor, QueryStats};
pub use record::Record;
pub use sink::{Event, OutOfFocusReason, Sink};
pub use subscription::SubscriptionOptions;
pub use subscription_set::SubscriptionSet;
pub use topic::Topic;
pub use view::{View, ViewDefinition, ViewError, ViewGraph};
