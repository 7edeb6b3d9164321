//! Networks of hosts on one machine, for tests: namespaces that are joined by a bridge or by one
//! cable, with loss and with cables that can be cut.
//!
//! ```no_run
//! use lanecast_system_tests::{Loss, Network, possible};
//! use std::time::Duration;
//!
//! fn main() -> anyhow::Result<()> {
//!     if !possible() {
//!         return Ok(()); // It has said why.
//!     }
//!     let net = Network::bridged(3)?;
//!     let pong = net.host(0).spawn("lanecast", &["perf", "pong"])?;
//!     pong.until_out("ready", Duration::from_secs(10))?;
//!     net.lose(&Loss::per_mille(10))?;
//!     net.cut(2)?;
//!     net.heal(2)?;
//!     println!("{} datagrams did not arrive", net.host(1).lost()?);
//!     Ok(())
//! }
//! ```
//!
//! Nothing of a network is seen outside of it, so tests may run beside each other and all use the
//! same addresses. Whatever a test makes goes when it is dropped; what a killed run has left is
//! cleared away by the next one.
#![forbid(unsafe_code)]

mod actor;
mod host;
mod loss;
mod namespace;
mod network;
mod process;
mod requirements;
mod rights;
mod tool;
mod wait;

pub use actor::{Actor, Left};
pub use host::{Host, Sent};
pub use loss::{Loss, Traffic};
pub use namespace::clear_stale;
pub use network::Network;
pub use process::{Done, Process};
pub use requirements::possible;
pub use rights::without;
pub use wait::wait_for;
