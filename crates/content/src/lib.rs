//! Filters evaluated where messages are published, over any transport and without a server.
//!
//! Subscribers tell publishers what they want; a publisher looks at each message once, whatever the
//! number of filters, and publishes it once, with a mark for each filter that it meets. What nobody
//! wants is not published. Subscribers read their messages in place, and pass over the others by
//! their marks alone. `docs/protocol/content.md` has the rules.
//!
//! Over multicast and in shared memory that is the least there can be. Over unicast and TCP each
//! subscriber's connection carries what any subscriber wants: where that is too much, a content
//! server sends each its own.
//!
//! No thread runs here: publishers hear of filters while they publish and when they are
//! [tended](Publisher::tend), subscribers while they poll.
#![forbid(unsafe_code)]

mod error;
mod event;
mod filters;
mod publisher;
mod settings;
mod subscriber;

pub use error::{OpenError, PublishError};
pub use event::{Event, Matched};
pub use publisher::Publisher;
pub use settings::Settings;
pub use subscriber::Subscriber;

/// The topic of the messages themselves.
fn data_topic(topic: &str) -> String {
    format!("{topic}?content")
}

/// The topic of what subscribers want.
fn control_topic(topic: &str) -> String {
    format!("{topic}?filters")
}
