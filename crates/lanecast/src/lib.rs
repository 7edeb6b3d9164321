//! One topic, any distance: publish and subscribe with the same few calls.
//!
//! ```
//! use lanecast::prelude::*;
//! # use std::time::Duration;
//! # let directory = std::env::temp_dir().join(format!("lanecast-hello-{}", std::process::id()));
//!
//! let context = Context::builder().set("shm.directory", directory.display())?.build()?;
//! let mut prices = context.publisher("prices")?;
//! let mut feed = context.subscriber("prices")?;
//! prices.wait_for_subscribers(1, Duration::from_secs(5));
//!
//! let mut claim = prices.try_claim(5)?; // Err(BackPressured | Closed | TooLong): values
//! claim.copy_from_slice(b"1.234"); // in place, in the ring
//! claim.commit(); // dropped without commit: it was never there
//! drop(prices); // subscribers read what is there, then learn that it is over
//!
//! let mut running = true;
//! while running {
//!     let work = feed.poll(64, |event| match event {
//!         Event::Message(message) => assert_eq!(message.bytes(), b"1.234"), // read in place
//!         Event::Joined(stream) => println!("{stream}"),
//!         Event::Left(_, why) => running = why != CloseReason::Closed,
//!         other => println!("{other:?}"),
//!     });
//!     feed.wait(work); // spins, yields or sleeps: the caller's choice
//! }
//! # drop(feed);
//! # std::fs::remove_dir_all(directory)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod claim;
mod config;
mod context;
mod counterparts;
mod flat;
mod neighbourhood;
mod publisher;
mod subscriber;
mod table;
mod transports;
mod xml;

pub use claim::{AnyBatch, AnyClaim};
pub use config::{Config, ConfigError};
pub use context::{Builder, Context, Error};
pub use lanecast_base::{ParseWaitError, Size, UnitError, WaitStrategy, Waiter};
pub use lanecast_base::{format_duration, parse_duration};
pub use lanecast_ring as ring;
pub use lanecast_transport::{
    BackPressureReason, Batch, Claim, ClaimError, CloseReason, Event, Gap, LossReason, Message,
    Publish, SessionId, Shared, Stream, Subscribe, TopicId, Transport,
};
pub use publisher::{BothBatch, BothClaim, Publisher, TopicError};
pub use subscriber::Subscriber;
pub use table::{SETTINGS, Setting};
pub use transports::{ParseTransportsError, Transports};

/// The transport over shared memory: its ends, its settings, and its looks from outside.
pub mod shm {
    pub use lanecast_shm::*;
}

/// The transports between hosts: their ends and their settings.
pub mod net {
    pub use lanecast_net::*;
}

/// Everything that a program which publishes or subscribes needs in scope.
pub mod prelude {
    pub use crate::{
        Batch, Claim, ClaimError, CloseReason, Context, Event, Publish, Publisher, Shared,
        Subscribe, Subscriber, TopicId, WaitStrategy,
    };
}
