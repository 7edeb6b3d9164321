//! Fixed part of a frame that begins a run.

use super::Ballot;
use super::lists::BallotEntry;
use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, Unaligned};

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct BeginBody {
    pub(super) ballot: BallotEntry,
    pub(super) log: BallotEntry,
    pub(super) start: U64,
    pub(super) number: U64,
    pub(super) is_receiver_paced: u8,
    pub(super) reserved: [u8; 7],
}

impl BeginBody {
    /// The run and the log that it continues; sequence and number of its first message.
    pub(super) fn new(
        (ballot, log): (Ballot, Ballot),
        (start, number): (u64, u64),
        is_receiver_paced: bool,
    ) -> Self {
        let (ballot, log) = (ballot.into(), log.into());
        let (start, number, reserved) = (start.into(), number.into(), [0; 7]);
        let is_receiver_paced = is_receiver_paced.into();
        Self { ballot, log, start, number, is_receiver_paced, reserved }
    }
}
