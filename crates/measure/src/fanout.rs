//! The fan-out charts of the AMPS slides: bursts of messages from one or five publishers to 50
//! subscribers with filters.
//!
//! The publishers and all subscribers are threads of the measuring process: raw sockets, frames
//! counted as they come, nothing of a client library. Any server is measured alike, once somebody
//! says how it is spoken to: that is a [`ServerProtocol`].

mod burst;
mod commands;
mod embedded;
mod load;
mod outcome;
mod server;
mod server_protocol;
mod subscriber_pool;

pub use burst::Bursts;
pub use commands::Commands;
pub use embedded::embedded;
pub use load::{Load, Order, Wanted};
pub use outcome::FanoutResult;
pub use server::over_sockets;
pub use server_protocol::{ParsedBytes, ServerProtocol};

#[cfg(test)]
mod tests;
