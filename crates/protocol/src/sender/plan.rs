//! Datagrams chosen to be sent next.

use super::window::Run;
use std::net::SocketAddr;

/// Datagrams to send with one system call.
#[derive(Clone, Copy, Debug)]
pub struct Transmit<'a> {
    /// Destination.
    pub to: SocketAddr,
    /// 1 to 64 contiguous datagrams, at most 65,507 bytes.
    pub bytes: &'a [u8],
    /// Length of each datagram; the last may be shorter.
    pub segment: usize,
}

/// The block of a parity frame, and why it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ParityOf {
    /// The group's open block.
    Group,
    /// The open block of the receiver at this index.
    Receiver(usize),
    /// The answer to a NAK of the receiver at the index `at` for a block that begins with `first`.
    Answer { at: usize, first: u64 },
}

/// Choice behind the last [`Transmit`].
#[derive(Debug)]
pub(super) enum Planned {
    /// The oldest control frame.
    Control,
    /// A repair for the receiver at this index, sent to it `alone` or to the group.
    Repair { at: usize, alone: bool, to: SocketAddr, run: Run },
    /// The parity frame that was computed.
    Parity { to: SocketAddr, of: ParityOf },
    /// New data for the group.
    Group { to: SocketAddr, run: Run },
    /// New data for the receiver at this index.
    Unicast { at: usize, to: SocketAddr, run: Run },
}
