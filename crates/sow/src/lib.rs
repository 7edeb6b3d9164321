//! State of the world (SOW): the last message of each key of a topic, with queries, subscriptions
//! and views.
//!
//! Path of a publication: [`Topic::publish`] replaces a [`Record`] (`records`, `record_table`) and
//! returns a [`Change`]; [`SubscriptionSet::on_change`] matches the change against filters and
//! delivers [`Event`]s to a [`Sink`]; [`ViewGraph::on_change`] updates the views. With [`durable`],
//! a journal stores the change before the topic is changed.
//!
//! - [`TopicDefinition`]: a topic's message type and key fields;
//! - [`Topic`]: its [`Record`]s; each modification returns a [`Change`];
//! - [`Change`], [`Version`]: a record before and after a modification;
//! - [`Query`], [`QueryCursor`]: records that match a filter, sorted, at once or step by step;
//! - [`SubscriptionSet`]: the subscriptions of a topic; [`Event`]: a delivery to them;
//! - [`durable`]: topics that survive a restart;
//! - [`View`], [`ViewGraph`]: topics computed from others by joins, grouping and aggregation.
//!
//! One thread owns a topic. Time is an argument, in nanoseconds since 1970. Outside of [`durable`]
//! nothing locks, waits or does I/O.
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
mod deadlines;
mod definition;
mod deletion;
mod delivery_mode;
mod deltas;
pub mod durable;
mod error;
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
mod subscription_options;
mod subscription_set;
mod topic;
pub mod view;

pub use change::{Cause, Change, Version};
pub use definition::TopicDefinition;
pub use deletion::Deletion;
pub use error::TopicError;
pub use key::{KEY_BYTES_MAX, Key};
pub use publication::Publication;
pub use query::{Order, Query, SortMemory};
pub use query_cursor::{QueryCursor, QueryStats};
pub use record::Record;
pub use sink::{Event, OutOfFocusReason, Sink};
pub use subscription_options::SubscriptionOptions;
pub use subscription_set::SubscriptionSet;
pub use topic::Topic;
pub use view::{View, ViewDefinition, ViewError, ViewGraph};
