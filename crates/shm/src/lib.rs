//! Publish and subscribe over memory shared by threads or processes.
//!
//! One publisher writes a session's ring, up to 64 subscribers read it in place; the slowest gates
//! the publisher (receiver-paced), so no message is lost. Sessions are files in a directory,
//! without a daemon. `docs/protocol/shm.md` specifies the layout.
//!
//! A subscriber of another process finds the session in the directory, opens and checks its files,
//! and maps them: the source of its streams is `shm:…`. A subscriber of the publisher's own process
//! joins through the in-process registry and shares the publisher's mapping: the source is
//! `thread:…`. With [`Visibility::Process`] sessions have no files, and only subscribers of the
//! same process can join.
//!
//! The path of a message: [`Publisher`] claims space (`gated_writer`), the caller writes in place
//! (`claim`), the commit word makes the message visible (`ring_writer`); [`Subscriber`] polls its
//! images (`image`, `ring_reader`), which pass the bytes to the caller's handler. Beside the path:
//! `conductor` finds and joins other processes' sessions and detects dead publishers,
//! `local_registry` joins those of the same process, `stall_detector` frees a blocked publisher
//! from dead readers. `inspect` and `snapshot` read a domain from outside.
//!
//! ```
//! use lanecast_transport::{Transport, Claim, Event, Publish, Subscribe};
//! use lanecast_shm::{Domain, DomainSettings};
//! use std::time::Duration;
//!
//! let directory = std::env::temp_dir().join(format!("lanecast-doc-{}", std::process::id()));
//! let settings = DomainSettings { directory: directory.clone(), ..DomainSettings::default() };
//! let domain = Domain::open(settings)?;
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
#![cfg_attr(loom, allow(dead_code, reason = "the models run without publishers and subscribers"))]

mod arming;
mod awaited_room;
#[cfg(not(loom))]
mod claim;
#[cfg(not(loom))]
mod conductor;
#[cfg(not(loom))]
mod copied_run;
#[cfg(not(loom))]
mod copy_buffer;
#[cfg(not(loom))]
mod directory;
#[cfg(not(loom))]
mod domain;
#[cfg(not(loom))]
mod domain_state;
#[cfg(not(loom))]
mod error;
#[cfg(not(loom))]
mod gated_writer;
#[cfg(not(loom))]
mod image;
#[cfg(not(loom))]
mod inspect;
#[cfg(not(loom))]
mod liveness;
#[cfg(not(loom))]
mod local_registry;
#[cfg(not(loom))]
mod local_session;
#[cfg(all(test, loom))]
mod loom;
mod memory;
#[cfg(not(loom))]
mod numbered_stream;
#[cfg(not(loom))]
mod publisher;
#[cfg(not(loom))]
mod publisher_watch;
#[cfg(not(loom))]
mod remote_publisher;
mod ring_reader;
mod ring_writer;
#[cfg(not(loom))]
mod run;
#[cfg(not(loom))]
mod run_progress;
#[cfg(not(loom))]
mod segment;
#[cfg(not(loom))]
mod session;
#[cfg(not(loom))]
mod session_view;
#[cfg(not(loom))]
mod settings;
mod slot_events;
#[cfg(not(loom))]
mod slot_lease;
mod slot_roster;
#[cfg(not(loom))]
mod snapshot;
#[cfg(not(loom))]
mod stall_detector;
#[cfg(not(loom))]
mod stream_table;
#[cfg(not(loom))]
mod subscriber;
#[cfg(not(loom))]
mod subscription;
#[cfg(not(loom))]
mod telemetry;
mod uncounted_frames;
#[cfg(not(loom))]
mod wake_pipe;
mod wake_signal;
#[cfg(not(loom))]
mod wakeup_thread;
#[cfg(not(loom))]
mod watched_end;

#[cfg(not(loom))]
pub use {
    claim::{NextShmClaim, ShmBatch, ShmClaim},
    domain::Domain,
    error::{JoinError, OpenError, TopicError},
    inspect::{SessionReport, StaleFile, SubscriberReport, clean, inspect},
    publisher::Publisher,
    run::{ShmEvents, ShmRun},
    settings::{
        DomainSettings, SLOW_CONSUMER_MIN, SlowConsumerPolicy, Visibility, default_directory,
    },
    snapshot::{DomainSnapshot, SessionRates, SubscriberRates},
    subscriber::Subscriber,
};
