//! Frames that carry messages and tell how far they got.

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, Unaligned};

/// Flags of a part of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataFlags(pub u16);

impl DataFlags {
    /// The first fragment of a message.
    pub const FIRST: u16 = 1;
    /// The last fragment of a message.
    pub const LAST: u16 = 2;
    /// The body is an order list of the sequencer, not a message.
    pub const ORDER_LIST: u16 = 4;
    /// The message is delivered in the total order.
    pub const AGREED: u16 = 8;
    const ALL: u16 = 15;

    /// Whether a message begins here.
    #[inline]
    pub const fn begins(self) -> bool {
        self.0 & Self::FIRST != 0
    }

    /// Whether a message ends here.
    #[inline]
    pub const fn ends(self) -> bool {
        self.0 & Self::LAST != 0
    }

    /// Whether the body is an order list.
    #[inline]
    pub const fn is_order_list(self) -> bool {
        self.0 & Self::ORDER_LIST != 0
    }

    /// Whether the message is delivered in the total order.
    #[inline]
    pub const fn is_agreed(self) -> bool {
        self.0 & Self::AGREED != 0
    }

    /// Whether this is a whole message in its sender's order.
    #[inline]
    pub const fn is_plain(self) -> bool {
        self.0 & Self::ALL == Self::FIRST | Self::LAST
    }
}

/// An entry of an order list: the next `count` messages of one member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderRun {
    /// The member's rank in the view.
    pub rank: u16,
    /// Messages of that member that are delivered next.
    pub count: u16,
}

/// The entries of an order list; what is no whole entry is left out.
pub fn order_runs(body: &[u8]) -> impl Iterator<Item = OrderRun> {
    body.chunks_exact(4).map(|bytes| OrderRun {
        rank: u16::from_le_bytes([bytes[0], bytes[1]]),
        count: u16::from_le_bytes([bytes[2], bytes[3]]),
    })
}

/// Asks for parts of a stream.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub struct WantBody {
    /// The member whose stream it is.
    pub origin: U64,
    /// The first sequence wanted.
    pub first: U64,
    /// Sequences wanted.
    pub count: U32,
}

/// In front of a repaired part of a stream.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub struct RepairBody {
    /// The member whose stream it is.
    pub origin: U64,
    /// Sequence of the part.
    pub sequence: U64,
    /// [`DataFlags`] of the part.
    pub flags: U16,
}

/// In front of a part of a state.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub struct StateBody {
    /// Bytes of the state in front of this part.
    pub offset: U64,
    /// Bytes of the whole state; 2^64 - 1: the sender has none.
    pub total: U64,
}
