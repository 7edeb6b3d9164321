//! Sleeping on descriptors.

use crate::presence::Descriptor;
use lanecast_os::poll::PollRoom;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// Room for the descriptors of one sleep, used again for the next.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    room: PollRoom,
}

impl Watch {
    /// Sleeps until one of `descriptors` has something to read, or where asked for room to write,
    /// at most `limit`.
    pub(crate) fn sleep(&mut self, descriptors: &[(Descriptor, bool)], limit: Duration) {
        self.sleep_beside(&[], descriptors, Some(limit));
    }

    /// As [`sleep`](Self::sleep), also ended by one of `bells`; says whether anything ended it.
    pub(crate) fn sleep_beside(
        &mut self,
        bells: &[BorrowedFd<'_>],
        descriptors: &[(Descriptor, bool)],
        limit: Option<Duration>,
    ) -> bool {
        let mut set = self.room.clear();
        for bell in bells {
            set.add(*bell, false);
        }
        for (descriptor, for_room) in descriptors {
            set.add(descriptor.as_fd(), *for_room);
        }
        set.wait(limit) > 0
    }
}
