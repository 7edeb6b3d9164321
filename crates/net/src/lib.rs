//! Network transports: reliable multicast, reliable unicast and TCP between hosts.
//!
//! This crate joins the state machines of `lanecast-protocol` to sockets and threads. One
//! [`Network`] is one interface; publishers choose their transport ([`TransportKind`]),
//! subscribers accept any.
//!
//! The path of a message: a claim of a [`Publisher`] (`claim`) stages it in the window of its
//! session (`send_session`); a commit sends it, alone or packed (`send_batching`), by UDP or TCP
//! (`tcp_sender`). [`Subscriber::poll`](lanecast_transport::Subscribe::poll) reads the sockets
//! (`receive_sessions`, `receive_session`, `tcp_receiver`) and calls the handler with messages in
//! the read buffer (`delivery_queue`). All of that runs in the application's threads.
//!
//! Beside the path, a background thread (`conductor`) finds publishers (`discovery`, at daemons
//! by `daemon_connections`, or at `peers`), and serves sessions while their owners are elsewhere
//! (`sender_agent`, `receiver_agent`). Receive threads, if the settings ask for them, take over the
//! sessions of subscribers (`receive_threads`, `receive_thread`, `receive_share`).
#![forbid(unsafe_code)]

mod admission;
mod claim;
mod conductor;
mod conductor_handle;
mod conductor_waker;
mod context;
mod counters;
mod daemon_connections;
mod datagram_socket;
mod delivery_queue;
mod discovery;
mod dormant_sessions;
mod error;
mod found_sources;
mod frame_reassembler;
mod frame_stream;
mod gap;
mod handshakes;
mod lingering;
mod lingering_close;
mod multicast_loopback;
mod network;
mod owner_state;
mod peer_names;
mod peer_socket;
mod peers;
mod poller;
mod publisher;
mod rate_limiter;
mod ready_deliveries;
mod ready_streams;
mod receive_session;
mod receive_sessions;
mod receive_share;
mod receive_sockets;
mod receive_thread;
mod receive_threads;
mod receiver_agent;
mod refused_hosts;
mod refused_topics;
mod reporting;
mod resolver_daemon;
mod room_event;
mod run;
mod sealed_socket;
mod send_batching;
mod send_session;
mod sender_agent;
mod session_opener;
mod sessions_end;
mod settings;
mod source;
mod stand_in_pacing;
mod subscriber;
mod tcp_receiver;
mod tcp_sender;
mod telemetry;
mod wakeup_set;

pub use claim::{NetBatch, NetClaim};
pub use counters::{PublisherCounters, SubscriberCounters};
pub use error::{OpenError, TopicError};
pub use gap::{GapReport, GapState};
pub use handshakes::HandshakeCounters;
pub use lanecast_os::xdp::XdpMode;
pub use lanecast_protocol::receiver::DeliveryOrder;
pub use lanecast_tls::TlsSettings;
pub use network::{NetTransport, Network};
pub use publisher::Publisher;
pub use refused_hosts::{RefusedDatagramsReport, RefusedHost};
pub use resolver_daemon::{DaemonCounters, DaemonSettings, RESOLVER_PORT, ResolverDaemon};
pub use run::{NetEvents, NetRun};
pub use settings::{
    DeliverySettings, IoKind, NetSettings, Pacing, ThreadingMode, WINDOW_MAX, WINDOW_MIN,
};
pub use source::TransportKind;
pub use subscriber::Subscriber;
