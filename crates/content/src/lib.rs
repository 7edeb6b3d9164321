//! Publisher-side filtering over any transport, without a server.
//!
//! Path of a filter: a subscriber sends it on the control topic; the publisher indexes it
//! (`filters`), assigns it a mark (its number), and confirms the mark on the content topic. Path of
//! a message: the publisher carries it to the subscribers without a filter, in a session that has
//! every message; its commit matches it once against all filters and, if it satisfies any,
//! publishes it once in a second session (`matching`), with the marks of these filters. Subscribers
//! read their messages in place and skip the others by their marks. `docs/protocol/content.md`
//! specifies the protocol. A subscriber evaluates its filter itself on the messages of publishers
//! that serve none.
//!
//! Over multicast and shared memory each matching message is sent once. Over unicast and TCP each
//! connection carries the messages of all filters: where that is too much traffic, a content server
//! sends each subscriber only its own.
//!
//! The crate starts no thread: publishers process requests while they publish or wait and in
//! [`Publisher::serve_filters`], subscribers when they are polled.
#![forbid(unsafe_code)]

mod claim;
mod control;
mod error;
mod filter_publisher;
mod filters;
mod matching;
mod negotiation;
mod publisher;
mod queued_event;
mod run;
mod selection;
mod settings;
mod subscriber;
mod topics;

pub use claim::{FilterableBatch, FilterableClaim};
pub use error::OpenError;
pub use publisher::Publisher;
pub use run::{FilteredEvents, FilteredRun};
pub use settings::ContentSettings;
pub use subscriber::Subscriber;
