//! Publisher-side filtering over any transport, without a server.
//!
//! Path of a filter: a subscriber sends it on the control topic; the publisher indexes it
//! (`filters`), assigns it a mark (its number), and confirms the mark on the data topic. Path of a
//! message: the publisher matches it once against all filters and publishes it once, with the marks
//! of the filters it satisfies; messages without a match are not published. Subscribers read their
//! messages in place and skip the others by their marks. `docs/protocol/content.md` specifies the
//! protocol.
//!
//! Over multicast and shared memory each message is sent once. Over unicast and TCP each connection
//! carries the messages of all filters: where that is too much traffic, a content server sends each
//! subscriber only its own.
//!
//! The crate starts no thread: publishers process requests while they publish and in
//! [`Publisher::poll_subscribers`], subscribers in [`Subscriber::poll`].
#![forbid(unsafe_code)]

mod error;
mod event;
mod filters;
mod publisher;
mod settings;
mod subscriber;
mod topics;

pub use error::{OpenError, PublishError};
pub use event::{Event, FilteredMessage};
pub use publisher::Publisher;
pub use settings::ContentSettings;
pub use subscriber::Subscriber;
