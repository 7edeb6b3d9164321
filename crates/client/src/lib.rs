//! A client of the content server, on the thread of whoever calls it.
//!
//! ```no_run
//! use lanecast_client::{Client, Identity};
//! let mut client = Client::connect("127.0.0.1:9007", &Identity::default())?;
//! client.subscribe("orders", Some("/symbol = 'IBM' and /qty >= 5000"))?;
//! client.publish("orders", br#"{"symbol":"IBM","qty":7000}"#)?;
//! client.flush()?;
//! while let Some(message) = client.next(None)? {
//!     println!("{}: {}", message.topic, String::from_utf8_lossy(&message.body));
//! }
//! # Ok::<(), lanecast_client::ClientError>(())
//! ```
#![forbid(unsafe_code)]

mod client;
mod error;
mod link;

pub use self::client::{Client, Identity, Message, Question, Record};
pub use self::error::ClientError;
