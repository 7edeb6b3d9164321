//! Host to host: the duty cycles that join the protocols and the sockets.
//!
//! One [`Network`] is one interface. Publishers choose what carries their messages ([`Kind`]),
//! subscribers take what they find. The path of a message: [`Publisher`] stages it in the window
//! of its session (`outbound`), a commit sends it (`cork` says when), [`Subscriber`] reads the
//! socket (`inbound`) and hands it over from the buffer that the kernel filled (`hand`). All of it
//! in the application's own threads; the `conductor` finds publishers (`finder`), and stands in
//! for owners that are busy elsewhere. Where there is no multicast, contexts find each other at
//! daemons ([`ResolverDaemon`]), or know each other's addresses (`peers`).
#![forbid(unsafe_code)]

mod channel;
mod claim;
mod conductor;
mod cork;
mod counters;
mod daemons;
mod desk;
mod echo;
mod error;
mod finder;
mod frame_stream;
mod gap;
mod hand;
mod inbound;
mod network;
mod outbound;
mod peers;
mod place;
mod presence;
mod publisher;
mod publishers;
mod registry;
mod session;
mod settings;
mod streams;
mod subscriber;
mod subscribers;
mod tally;
mod telemetry;
mod transport;
mod watch;

pub use claim::{NetBatch, NetClaim};
pub use counters::{PublisherCounters, SubscriberCounters};
pub use error::{OpenError, TopicError};
pub use gap::{GapReport, GapState};
pub use network::Network;
pub use publisher::Publisher;
pub use registry::{DaemonCounters, DaemonSettings, RESOLVER_PORT, RejectReason, ResolverDaemon};
pub use settings::{Drive, Pacing, Settings, WINDOW_MAX, WINDOW_MIN};
pub use subscriber::Subscriber;
pub use transport::{Kind, NetTransport};
