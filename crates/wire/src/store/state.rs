//! The state of a stream at a store.

use super::lists::{BallotEntry, Position, add_runs, bounded, runs};
use super::{Ballot, Members, Run};
use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, Unaligned};

/// The state of a stream at a store: only what is durable.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreState {
    /// Identity of the store's data.
    pub incarnation: u64,
    /// The last run that was accepted by Open; messages of runs before it are refused.
    pub promised: Ballot,
    /// The last run that was begun: the log is that run's, or a beginning of it.
    pub log: Ballot,
    /// Sequence of the oldest message.
    pub first: u64,
    /// Sequence after the last durable message.
    pub next: u64,
    /// Sequence of the first message that a registered receiver has not consumed; `next` if
    /// receivers have consumed all, or none is registered.
    pub consumed: u64,
    /// The stores that hold the stream.
    pub members: Members,
    /// The runs in the log, oldest first.
    pub runs: Vec<Run>,
}

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct StableBody {
    pub(super) position: Position,
    pub(super) consumed: U64,
}

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct StateBody {
    pub(super) incarnation: U64,
    pub(super) promised: BallotEntry,
    pub(super) log: BallotEntry,
    pub(super) first: U64,
    pub(super) next: U64,
    pub(super) consumed: U64,
}

impl StoreState {
    pub(super) fn read(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (head, rest) = StateBody::read_from_prefix(bytes).ok()?;
        let (members, rest) = Members::read(rest)?;
        let (runs, rest) = runs(rest)?;
        let (first, next) = (bounded(head.first)?, bounded(head.next)?);
        if first > next {
            return None;
        }
        let state = Self {
            incarnation: head.incarnation.get(),
            promised: head.promised.ballot()?,
            log: head.log.ballot()?,
            first,
            next,
            consumed: bounded(head.consumed)?,
            members,
            runs,
        };
        Some((state, rest))
    }

    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        let body = StateBody {
            incarnation: self.incarnation.into(),
            promised: self.promised.into(),
            log: self.log.into(),
            first: self.first.into(),
            next: self.next.into(),
            consumed: self.consumed.into(),
        };
        bytes.extend(body.as_bytes());
        self.members.write(bytes);
        add_runs(&self.runs, bytes);
    }
}
