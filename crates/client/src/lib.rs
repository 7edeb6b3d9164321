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
//! # When the connection breaks
//!
//! A client with [`Settings::new`] connects again, to the next server if there are several, and
//! goes on: its subscriptions begin again, with an [`Event::Resumed`] where the break was. What it
//! published and was not acknowledged is kept, and sent again if the client has a name: its
//! messages are numbered then, so that the server takes none of them twice.
#![forbid(unsafe_code)]

#[cfg(feature = "tokio")]
pub mod aio;
mod backlog;
mod call;
mod client;
mod connection;
mod conversation;
mod delay;
mod error;
mod event;
mod frames;
mod publication;
mod question;
mod server_address;
mod settings;
mod tls;
mod tunnel;

pub use self::client::Client;
pub use self::error::ClientError;
pub use self::event::{Event, Message, Record, State};
pub use self::publication::{Deletion, Publication};
pub use self::question::{Question, Wishes};
pub use self::server_address::{ServerAddress, ServerAddressError};
pub use self::settings::{Identity, Level, Reconnect, Settings, Watcher};
pub use self::tls::{Tls, TlsError};
