//! Control frames of a member, on their way out.

use crate::Nanos;
use crate::outlet::Outlet;
use crate::view::MemberId;
use lanecast_wire::group::GroupFrame;

/// Repetitions of a leader's frames in a round's time.
pub(crate) const REPETITIONS: Nanos = 8;
/// Time after which a frame is offered to a full transport again.
pub(crate) const AGAIN: Nanos = 2_000_000;

/// Writes frames under the member's name and view.
#[derive(Clone, Debug)]
pub(crate) struct FrameSender {
    group: u32,
    me: MemberId,
    /// The epoch of the member's view.
    pub(crate) epoch: u64,
    frame: Vec<u8>,
}

impl FrameSender {
    pub(crate) const fn new(group: u32, me: MemberId) -> Self {
        Self { group, me, epoch: 0, frame: Vec::new() }
    }

    pub(crate) const fn envelope(&self) -> (u32, u64, u64) {
        (self.group, self.me.0, self.epoch)
    }

    /// Sends a frame to all; false if the transport has no room.
    pub(crate) fn broadcast(&mut self, frame: &GroupFrame<'_>, out: &mut impl Outlet) -> bool {
        frame.write(self.envelope(), &mut self.frame);
        out.broadcast(&self.frame, &[])
    }

    /// Sends a frame of a round to one member. Where the way to it alone is not open yet, all hear
    /// it, and the others pass it over: a round does not wait for a connection. One that is refused
    /// counts as lost: its receiver asks again.
    pub(crate) fn direct(&mut self, to: MemberId, frame: &GroupFrame<'_>, out: &mut impl Outlet) {
        frame.write(self.envelope(), &mut self.frame);
        if !out.direct(to, &self.frame, &[]) {
            out.broadcast(&self.frame, &[]);
        }
    }
}
