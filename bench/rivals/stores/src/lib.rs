//! Messages that three servers of one host keep on disk: lanecast's stores beside NATS JetStream.
//!
//! Both keep every message at three servers, and tell the publisher of it when two of them have it
//! on disk, synchronised. A publisher sends with a window of unconfirmed messages, and then one
//! message at a time.
#![forbid(unsafe_code)]

mod confirmations;
mod jetstream;
mod own_stores;
mod servers;
mod sides;

pub use jetstream::JetStream;
pub use own_stores::OwnStores;
pub use sides::{Figures, Load, PersistentSide, measure};

/// Servers of each side.
pub const SERVERS: usize = 3;
