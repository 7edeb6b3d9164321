//! One topic, any distance: publish and subscribe with the same few calls.
//!
//! A [`Context`] reads the configuration ([`layers`](to_toml), the table of [`SETTINGS`], files of
//! Ultra Messaging) and opens the transports. It makes [`Publisher`]s and [`Subscriber`]s, which
//! delegate each call to `lanecast-shm`, `lanecast-net`, or both. No thread and no state of its own
//! lies between the application and the transport.
//!
//! ```
//! use lanecast::prelude::*;
//! # use std::time::Duration;
//! # let directory = std::env::temp_dir().join(format!("lanecast-hello-{}", std::process::id()));
//!
//! let context = Context::builder().set("shm.directory", directory.display())?.build()?;
//! let mut prices = context.publisher("prices")?;
//! let mut feed = context.subscriber("prices")?;
//! assert!(prices.wait_for_subscribers(1, Duration::from_secs(5)));
//!
//! let mut claim = prices.try_claim(5)?; // Err(BackPressured | Closed | TooLong): values
//! claim.copy_from_slice(b"1.234"); // in place, in the ring
//! claim.commit(); // dropped without commit: never published
//! drop(prices); // subscribers read the message, then learn of the end
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

mod both;
mod claim;
mod config;
mod context;
mod delegate;
mod error;
mod exact_topics;
pub mod failover;
mod group_builder;
mod layers;
mod locality;
mod matching_topics;
mod messages;
mod persistence_settings;
mod persistent_topic;
mod publisher;
mod run;
mod settings;
mod subscriber;
mod topic;
mod transports;
#[cfg(feature = "um")]
mod um;
mod wait_set;

pub use both::publisher::{BothBatch, BothClaim};
pub use claim::{AnyBatch, AnyClaim};
pub use config::{Config, ConfigError};
pub use context::{Builder, Context};
pub use error::{Error, TopicError};
pub use exact_topics::ExactTopics;
pub use group_builder::{Group, GroupBuilder, GroupObserver};
pub use lanecast_base::{ParseWaitError, Size, UnitError, WaitStrategy};
pub use lanecast_base::{format_duration, parse_duration};
pub use lanecast_content::{ContentSettings, FilterableBatch, FilterableClaim};
pub use lanecast_filter::message_type::{Format, MessageType};
pub use lanecast_ring as ring;
pub use lanecast_transport::{
    BackPressureReason, Batch, Claim, ClaimError, CloseReason, Completion, DepartureReason, Event,
    Gap, IncompleteReason, IncompleteSubscriber, LossReason, Message, Publish, PublisherEvent, Run,
    SessionId, Shared, Stream, Subscribe, SubscriberId, SubscriberInfo, TopicId, TopicPattern,
    TopicSelection, Transport,
};
pub use layers::to_toml;
pub use matching_topics::{FilteredMatchingTopics, MatchingTopics};
pub use messages::{Interruption, Messages};
pub use persistence_settings::PersistenceSettings;
pub use persistent_topic::{
    DurableSubscriber, DurableTopic, PersistentPublisher, PersistentTopic, StoreAdministrator,
    StoreServer,
};
pub use publisher::Publisher;
pub use run::{AnyEvents, AnyRun};
pub use settings::{SETTINGS, Setting};
pub use subscriber::Subscriber;
pub use topic::{FilterablePublisher, FilterableTopic, FilteredSubscriber, FilteredTopic, Topic};
pub use transports::{ParseTransportsError, Transports};
pub use wait_set::WaitSet;

/// The shared-memory transport: publisher, subscriber, settings, inspection.
pub mod shm {
    pub use lanecast_shm::*;
}

/// The transports between hosts: publisher, subscriber, settings.
pub mod net {
    pub use lanecast_net::*;
}

/// Groups: events, views, orders, settings.
pub mod group {
    pub use lanecast_group::*;
}

/// Persistence: events of publishers and receivers, stores, options.
pub mod persistence {
    pub use lanecast_store::*;
}

/// Imports for programs that publish or subscribe.
pub mod prelude {
    pub use crate::{
        Batch, Claim, ClaimError, CloseReason, Completion, Context, DepartureReason, Event,
        FilterablePublisher, FilteredSubscriber, Group, Message, MessageType, Publish, Publisher,
        PublisherEvent, Run, Shared, Subscribe, Subscriber, TopicId, WaitSet, WaitStrategy,
    };
}
