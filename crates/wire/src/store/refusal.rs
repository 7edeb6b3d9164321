//! Refusals: what a store does not keep, and why.

use super::lists::bounded;
use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, Unaligned};

/// A store's refusal of a stream, or of a receiver's position in one. The store goes on to refuse
/// repeated requests until their cause is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreRefusal {
    /// The store has as many streams as it may.
    #[error(
        "it keeps {most} streams, as many as it may: name another store, or start one that may \
         keep more"
    )]
    Streams {
        /// The most streams.
        most: u64,
    },
    /// The store's transport has no room for a subscription to the topic.
    #[error(
        "its transport has no room for another topic: see the store's output, and raise its limit \
         of open files or of subscribers"
    )]
    Topic,
    /// The store's log has no room.
    #[error("its log has no room: its disk is full, or too slow")]
    Log,
    /// The stream has as many receivers as it may.
    #[error(
        "the stream has {most} registered receivers, as many as it may: end registrations that \
         are not needed by lanecast store deregister"
    )]
    Receivers {
        /// The receiver that is not registered.
        receiver: u64,
        /// The most receivers.
        most: u64,
    },
}

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct RefusedBody {
    pub(super) reason: u8,
    pub(super) reserved: [u8; 7],
    pub(super) receiver: U64,
    pub(super) most: U64,
}

impl StoreRefusal {
    pub(super) fn read(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (body, rest) = RefusedBody::read_from_prefix(bytes).ok()?;
        let (receiver, most) = (body.receiver.get(), bounded(body.most)?);
        let refusal = match body.reason {
            1 => Self::Streams { most },
            2 => Self::Topic,
            3 => Self::Log,
            4 => Self::Receivers { receiver, most },
            _ => return None,
        };
        Some((refusal, rest))
    }

    pub(super) fn write(self, frame: &mut Vec<u8>) {
        let (reason, receiver, most) = match self {
            Self::Streams { most } => (1, 0, most),
            Self::Topic => (2, 0, 0),
            Self::Log => (3, 0, 0),
            Self::Receivers { receiver, most } => (4, receiver, most),
        };
        let (receiver, most) = (receiver.into(), most.into());
        frame.extend(RefusedBody { reason, reserved: [0; 7], receiver, most }.as_bytes());
    }
}
