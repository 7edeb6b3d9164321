//! A client of the content server.
//!
//! ```no_run
//! use lanecast_client::{Client, Event, Identity};
//! let mut client = Client::connect("127.0.0.1:9007", &Identity::default())?;
//! client.subscribe("orders", Some("/symbol = 'IBM' and /qty >= 5000"))?;
//! client.publish("orders", br#"{"symbol":"IBM","qty":7000}"#)?;
//! client.flush()?;
//! while let Some(event) = client.next(None)? {
//!     if let Event::Message(message) = event {
//!         println!("{}: {}", message.topic, String::from_utf8_lossy(&message.body));
//!     }
//! }
//! # Ok::<(), lanecast_client::ClientError>(())
//! ```
//!
//! # Reconnecting
//!
//! A client with [`Settings::new`] reconnects, to the next server if there are several, and places
//! its subscriptions anew, each with an [`Event::Resumed`]. A client with a name sends
//! unacknowledged messages again; they have sequence numbers, so that the server publishes each
//! once.
//!
//! # Path of a call
//!
//! [`Client`] (or `aio::Client`) -> `session` (the sans-IO state machine: `outgoing` writes
//! commands, `pending` and `backlog` hold unanswered ones) -> `connection` (threads; `aio::tasks`
//! for tokio) -> `tls_session` -> socket; back through `frames` and `session::incoming` to events.
#![forbid(unsafe_code)]

#[cfg(feature = "tokio")]
pub mod aio;
mod backlog;
mod backoff;
mod client;
mod connection;
mod error;
mod event;
mod frames;
mod pending;
mod publication;
mod query;
mod server_address;
mod session;
mod settings;
mod tls;
mod tls_session;

pub use self::client::Client;
pub use self::error::ClientError;
pub use self::event::{Event, Message, Record, State};
pub use self::publication::{Deletion, Publication};
pub use self::query::{Query, SubscribeOptions};
pub use self::server_address::{ServerAddress, ServerAddressError};
pub use self::settings::{AckLevel, Identity, Reconnect, Settings, StateHandler};
pub use self::tls::{Tls, TlsError};
