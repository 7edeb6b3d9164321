//! Memory shared by threads or processes: publish and subscribe over it.
//!
//! One publisher writes a session's ring, up to 64 subscribers read it in place; the slowest
//! gates it (receiver-paced), so nothing is lost. Sessions are files in a directory: there is
//! no daemon. The layout is stated in `docs/protocol/shm.md`.
//!
//! There is one ring, and there are two doors to it. A subscriber of another process finds the
//! session in the directory, opens and checks its files, and maps them: its streams come from
//! `shm:…`. A subscriber of the publisher's own process meets it in the `lobby`, shares its
//! mapping, and is joined as soon as both are there: its streams come from `thread:…`. With
//! [`Reach::Process`] there are no files, and only the second door; such sessions cannot be seen
//! from outside.
//!
//! The path of a message: [`Publisher`] claims room (`write_edge`), the caller writes in place
//! (`claim`), the commit word makes it visible; [`Subscriber`] polls its `attachment`s
//! (`read_edge`), which hand the bytes to the caller's handler. Beside the path: `conductor`
//! finds and joins other processes' sessions and notices deaths, `vigil` frees a publisher from
//! the dead.
//!
//! ```
//! use lanecast_transport::{Transport, Claim, Event, Publish, Subscribe};
//! use lanecast_shm::{Domain, Settings};
//! use std::time::Duration;
//!
//! let directory = std::env::temp_dir().join(format!("lanecast-doc-{}", std::process::id()));
//! let domain = Domain::open(Settings { directory: directory.clone(), ..Settings::default() })?;
//! let mut prices = domain.publisher("prices")?;
//! let mut feed = domain.subscriber(&["prices"])?;
//! assert!(prices.wait_for_subscribers(1, Duration::from_secs(10)));
//!
//! let mut claim = prices.try_claim(5)?;
//! claim.copy_from_slice(b"1.234");
//! claim.commit();
//!
//! let mut received = Vec::new();
//! while received.is_empty() {
//!     let work = feed.poll(16, |event| {
//!         if let Event::Message(message) = event {
//!             received.extend_from_slice(message.bytes());
//!         }
//!     });
//!     feed.wait(work);
//! }
//! assert_eq!(received, b"1.234");
//! # drop((prices, feed, domain));
//! # std::fs::remove_dir_all(directory)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![cfg_attr(
    all(loom, not(test)),
    allow(dead_code, reason = "the model checker's build has tests only")
)]

#[cfg(not(loom))]
mod attachment;
#[cfg(not(loom))]
mod checked;
#[cfg(not(loom))]
mod claim;
#[cfg(not(loom))]
mod conductor;
#[cfg(not(loom))]
mod domain;
#[cfg(not(loom))]
mod error;
#[cfg(not(loom))]
mod inspect;
#[cfg(not(loom))]
mod lobby;
#[cfg(not(loom))]
mod look;
#[cfg(all(test, loom))]
mod loom;
#[cfg(not(loom))]
mod mailbox;
mod memory;
#[cfg(not(loom))]
mod place;
#[cfg(not(loom))]
mod publisher;
mod read_edge;
#[cfg(not(loom))]
mod registry;
#[cfg(not(loom))]
mod resident;
#[cfg(not(loom))]
mod segment;
#[cfg(not(loom))]
mod session;
#[cfg(not(loom))]
mod settings;
#[cfg(not(loom))]
mod subscriber;
#[cfg(not(loom))]
mod telemetry;
#[cfg(not(loom))]
mod view;
#[cfg(not(loom))]
mod vigil;
mod write_edge;

#[cfg(not(loom))]
pub use {
    claim::{ShmBatch, ShmClaim},
    domain::Domain,
    error::{AttachError, OpenError, TopicError},
    inspect::{Clean, SessionReport, SubscriberReport, clean, inspect},
    look::{Look, SessionRates, SubscriberRates},
    publisher::Publisher,
    settings::{Reach, Settings, Stalled, default_directory},
    subscriber::Subscriber,
};
