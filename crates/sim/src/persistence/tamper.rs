//! Deliberate defects, which the oracle has to find.

use crate::ensure;
use crate::violation::Verdict;
use lanecast_wire::store::{StoreAddress, StoreFrame, StoreKind};

/// A defect of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreTamper {
    /// None.
    Nothing,
    /// Disks lose what they were told to keep.
    LieOfDisk,
    /// Stores forget which runs they refuse.
    ForgetPromises,
    /// A store that lost its data comes back as if it had never had any.
    KeepIncarnation,
    /// Frames of a kind never arrive at stores.
    Swallow(StoreKind),
}

impl StoreTamper {
    pub(super) fn swallows(self, frame: &[u8]) -> bool {
        let Self::Swallow(kind) = self else { return false };
        StoreFrame::read(frame).is_ok_and(|(_, frame)| frame.kind() == kind)
    }

    /// A frame; `None` if its bytes are none, which only ends write whose stores have contradicted
    /// each other.
    pub(super) fn read(self, frame: &[u8]) -> Verdict<Option<(StoreAddress<'_>, StoreFrame<'_>)>> {
        let read = StoreFrame::read(frame);
        let is_whole = read.is_ok() || self != Self::Nothing;
        ensure!(is_whole, "{read:?}: a frame contradicts itself");
        Ok(read.ok())
    }
}
