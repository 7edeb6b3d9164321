//! The fan-out charts of the AMPS slides: bursts of messages from one or five publishers to 50
//! subscribers with filters.
//!
//! Publishers and subscribers are threads of the measuring process with raw sockets, without a
//! client library. Any server can be measured that has a [`ServerProtocol`].
//!
//! The path of a message: `load` (orders and filters) → `server` (publishers) → the server under
//! test → `subscriber_pool` → `outcome`; without a server, `embedded` joins both by a ring. `burst`
//! limits the deliveries in flight.

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
