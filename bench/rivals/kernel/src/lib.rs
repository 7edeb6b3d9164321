//! The kernel's own transports between two processes: Unix sockets and pipes.
//!
//! Flat out, messages are gathered and written many at a time; at a fixed rate each one is
//! written as soon as nothing else is due. A stream and a pipe carry bytes, so each message has
//! its length in front; a packet is a message.
//!
//! ```text
//!    0      4                    4 + size
//!    +------+--------------------+------+----
//!    | size | message            | size | ...
//!    +------+--------------------+------+----
//! ```

#![forbid(unsafe_code)]

mod channel;
mod frame;
mod intake;
mod outlet;

use clap::{Args, ValueEnum};

pub use channel::{accept, join};
pub use intake::Intake;
pub use outlet::Outlet;

/// Which of the kernel's means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Over {
    /// A Unix socket, SOCK_STREAM
    Stream,
    /// A Unix socket, SOCK_SEQPACKET
    Packets,
    /// A pipe
    Pipe,
}

/// Choices of the publisher.
#[derive(Args, Clone, Copy, Debug)]
pub struct Means {
    /// Which of the kernel's means
    #[arg(long, value_enum)]
    pub over: Over,
    /// Bytes that are gathered before they are written; one message always fits
    #[arg(long, default_value_t = 256 << 10)]
    pub batch: usize,
    /// Bytes that the kernel holds between the two ends
    #[arg(long, default_value_t = 1 << 20)]
    pub held: usize,
}
