//! A subscriber's sessions, as its own thread reaches them.

use crate::counters::SubscriberCounters;
use crate::delivery_queue::DeliveryQueue;
use crate::gap::GapReport;
use crate::poller::Descriptor;
use crate::receive_sessions::ReceiveSessions;
use crate::receive_share::ShareReader;
use crate::wakeup_set::WakeupSet;
use lanecast_os::biased::Owner;
use lanecast_protocol::Nanos;
use std::collections::VecDeque;

/// The most reads of frames without deliveries before a sleep.
const READS_MAX: u32 = 64;

/// The subscriber's end of its sessions. Owned by the subscriber.
#[derive(Debug)]
pub(crate) enum SessionsEnd {
    /// The subscriber's thread drives them, or the conductor does, under one lock.
    Driven(Owner<ReceiveSessions>),
    /// Receive threads serve them, a share each.
    Served(ServedSessions),
}

/// Sessions that receive threads serve.
#[derive(Debug)]
pub(crate) struct ServedSessions {
    shares: Vec<ShareReader>,
    /// Gap reports of all shares, not read yet.
    gaps: VecDeque<GapReport>,
}

impl ServedSessions {
    pub(crate) const fn new(shares: Vec<ShareReader>) -> Self {
        Self { shares, gaps: VecDeque::new() }
    }

    /// Whether a share leaves its sockets unread, and the weight of what is not consumed.
    #[cfg(test)]
    pub(crate) fn unread(&self) -> (bool, u64) {
        let each = self.shares.iter().map(ShareReader::unread);
        each.fold((false, 0), |(any, sum), (is_behind, unread)| (any | is_behind, sum + unread))
    }

    fn next_gap(&mut self, now: Nanos) -> Option<GapReport> {
        if self.gaps.is_empty() {
            // Each share is asked, as it keeps reports from the first call on.
            self.gaps.extend(self.shares.iter().filter_map(|share| share.next_gap(now)));
        }
        self.gaps.pop_front()
    }
}

impl SessionsEnd {
    /// Whether receive threads serve the sessions.
    pub(crate) const fn is_served(&self) -> bool {
        matches!(self, Self::Served(_))
    }

    /// Fills the empty queue, with a look into `all` sockets for an owner that its descriptor has
    /// woken. Returns whether there may be more to read, and the sessions' count of changes.
    #[inline]
    pub(crate) fn refill(
        &mut self,
        now: Nanos,
        queue: &mut DeliveryQueue,
        all: bool,
    ) -> (bool, u64) {
        match self {
            Self::Driven(owner) => {
                let mut sessions = owner.lock();
                (sessions.refill(now, queue, all), sessions.changes())
            }
            Self::Served(served) => {
                served.shares.iter_mut().for_each(|share| share.refill(queue));
                (false, 0)
            }
        }
    }

    /// Fills the empty queue, or empties the sockets if there `may_be_more`, and has `set` watch
    /// what the sessions wait for. Returns whether there may be more to read, and whether the set
    /// watches all.
    pub(crate) fn refill_and_watch(
        &mut self,
        now: Nanos,
        (queue, may_be_more): (&mut DeliveryQueue, bool),
        set: &mut WakeupSet,
    ) -> (bool, bool) {
        // The threads sleep on the sockets.
        let Self::Driven(owner) = self else { return (false, true) };
        let mut sessions = owner.lock();
        let (mut may_have_more, mut reads) = (may_be_more, 0);
        // An edge-triggered loop is not woken for what stays unread.
        while may_have_more && queue.is_empty() && reads < READS_MAX {
            may_have_more = sessions.refill(now, queue, true);
            reads += 1;
        }
        let mut sockets = Vec::new();
        sessions.descriptors(&mut sockets);
        let times = (now, sessions.next_deadline());
        (may_have_more, set.watch(sockets, times, sessions.changes()))
    }

    /// Ends a poll: reports consumption if the queue `is_empty`.
    #[inline]
    pub(crate) fn finish_poll(&mut self, now: impl Fn() -> Nanos, is_empty: bool) {
        match self {
            Self::Driven(owner) => owner.lock().finish_poll(now(), is_empty),
            Self::Served(served) if is_empty => {
                served.shares.iter().for_each(|share| share.report_consumption(&now));
            }
            Self::Served(_) => {}
        }
    }

    /// Adds the sockets that the subscriber's thread sleeps on, and returns the deadline of that.
    pub(crate) fn descriptors(&mut self, into: &mut Vec<(Descriptor, bool)>) -> Nanos {
        match self {
            Self::Driven(owner) => {
                let sessions = owner.lock();
                sessions.descriptors(into);
                sessions.next_deadline()
            }
            // The threads sleep on them.
            Self::Served(_) => Nanos::MAX,
        }
    }

    pub(crate) fn counters(&mut self) -> SubscriberCounters {
        match self {
            Self::Driven(owner) => owner.lock_uncounted().counters(),
            Self::Served(served) => {
                let mut sum = SubscriberCounters::default();
                served.shares.iter().for_each(|share| sum.add(&share.counters()));
                sum
            }
        }
    }

    /// The oldest unread gap report of the sessions, or of one share.
    pub(crate) fn next_gap(&mut self, now: Nanos) -> Option<GapReport> {
        match self {
            Self::Driven(owner) => owner.lock_uncounted().next_gap(now),
            Self::Served(served) => served.next_gap(now),
        }
    }

    /// Leaves all sessions.
    pub(crate) fn leave(&mut self, now: Nanos) {
        match self {
            Self::Driven(owner) => owner.lock().leave(now),
            Self::Served(served) => served.shares.iter().for_each(|share| share.leave(now)),
        }
    }
}
