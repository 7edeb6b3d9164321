//! The group test of the JGroups document: all members of a group receive all messages of its
//! senders.
//!
//! N members start, wait until all are there, and the senders send M messages each to the whole
//! group. A receiver's clock runs from its first message to its last one. At the end all members
//! exchange their results and compute the same table. Unlike the document's program, every message
//! is checked: sender, number, content, order, loss and repetition.
//!
//! The test runs over any [`GroupTransport`]. [`UdpTransport`] and [`TcpTransport`] are bare
//! sockets, for comparison; transports of lanecast are implemented where this crate is used.
//!
//! The path of a run: [`GroupConfig`] (the file that all members share) → [`Member::run`]
//! (`roster`: the others and their phases, exchanged as `status` messages; `payload`: bytes of a
//! message; `check`: order and loss) → [`MemberResult`] of each → [`GroupResult`].

mod check;
mod config;
mod interval;
mod member;
mod payload;
mod reception;
mod reference;
mod result;
mod roster;
mod run_error;
mod status;
mod tcp;
mod transport;
mod udp;

pub use config::{ConfigError, GroupConfig, TransportKind};
pub use interval::{IntervalSample, Memory};
pub use member::{Member, MemberSettings, Progress};
pub use payload::HEADER_BYTES;
pub use reference::GroupReference;
pub use result::{Blocking, GroupResult, MemberResult, SenderCount};
pub use run_error::GroupError;
pub use tcp::TcpTransport;
pub use transport::{GroupEvent, GroupTransport, SendRefusal, SenderId};
pub use udp::UdpTransport;

#[cfg(test)]
mod tests;
