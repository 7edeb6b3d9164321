//! Deliberate defects, which the oracle has to find.

use lanecast_wire::store::{StoreFrame, StoreKind};

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
}
