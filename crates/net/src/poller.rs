//! Sleeping on descriptors: poll(2) over sockets that an owner and the conductor share.

use lanecast_os::poll::{PollBuffer, PollSet};
use std::fmt;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

/// Anything with a descriptor to sleep on.
pub(crate) trait Socket: AsFd + fmt::Debug + Send + Sync {}

impl<T: AsFd + fmt::Debug + Send + Sync> Socket for T {}

/// A socket that a session's owner and the conductor share: neither can be left with a closed one.
pub(crate) type Descriptor = Arc<dyn Socket>;

/// Reusable buffer of a thread's poll(2) calls.
#[derive(Debug, Default)]
pub(crate) struct Poller {
    room: PollBuffer,
}

impl Poller {
    /// Sleeps until one of `descriptors` is readable, or writable where the flag is set; at most
    /// `limit`.
    pub(crate) fn sleep(&mut self, descriptors: &[(Descriptor, bool)], limit: Duration) {
        self.sleep_with_wakers(&[], descriptors, Some(limit));
    }

    /// Same as [`sleep`](Self::sleep), also ended by one of `wakers`; returns whether a
    /// descriptor ended the sleep.
    pub(crate) fn sleep_with_wakers(
        &mut self,
        wakers: &[BorrowedFd<'_>],
        descriptors: &[(Descriptor, bool)],
        limit: Option<Duration>,
    ) -> bool {
        self.wait(wakers, descriptors, limit).1 > 0
    }

    /// As [`sleep_with_wakers`](Self::sleep_with_wakers); returns which of the wakers are set, and
    /// tells in `ready` which of the descriptors are ready, in their order.
    pub(crate) fn sleep_and_tell<const N: usize>(
        &mut self,
        wakers: [BorrowedFd<'_>; N],
        descriptors: &[(Descriptor, bool)],
        limit: Option<Duration>,
        ready: &mut Vec<bool>,
    ) -> [bool; N] {
        let (set, _) = self.wait(&wakers, descriptors, limit);
        ready.clear();
        ready.extend((N..N + descriptors.len()).map(|index| set.ready(index)));
        std::array::from_fn(|index| set.ready(index))
    }

    fn wait<'a, 'fd>(
        &'a mut self,
        wakers: &[BorrowedFd<'fd>],
        descriptors: &'fd [(Descriptor, bool)],
        limit: Option<Duration>,
    ) -> (PollSet<'a, 'fd>, usize) {
        let mut set = self.room.clear();
        for waker in wakers {
            set.add(*waker, false);
        }
        for (descriptor, writable) in descriptors {
            set.add(descriptor.as_fd(), *writable);
        }
        let found = set.wait(limit);
        (set, found)
    }
}
