//! One of several who share the work.

use crate::lanes::Lanes;
use crate::producer_lane::PARK_TIME_MAX;
use crate::sleep_leader::SleepLeader;
use crate::work_claim::WorkClaim;
use lanecast_base::WaitStrategy;
use std::sync::Arc;

/// One of a group that shares a ring's values, or those of several producers' rings: each value
/// goes to one of them.
///
/// With several producers each worker serves lanes of its own, and helps out in the others' when
/// its own have been dry some dozen times: two that take one by one from one lane hinder each
/// other.
///
/// A worker that loses its core inside a run holds up the producer when that comes round to this
/// very run again, and nobody else.
#[derive(Debug)]
pub struct Worker<T> {
    lanes: Lanes<WorkClaim<T>>,
    watch: Arc<SleepLeader>,
}

impl<T> Worker<T> {
    pub(crate) fn new(
        lanes: Box<[WorkClaim<T>]>,
        own: usize,
        watch: Arc<SleepLeader>,
        strategy: WaitStrategy,
    ) -> Self {
        Self { lanes: Lanes::new(lanes, own, strategy), watch }
    }

    /// Claims a run of at most `max` values, all of one producer, and hands it over as at most
    /// two slices, to be read, changed or emptied; returns how many values: 0 if there is none
    /// now in its own lanes. Never blocks.
    ///
    /// The run goes back to the producer when the last call of `handle` has returned. A `handle`
    /// that panics has consumed it.
    #[inline(always)]
    pub fn take(&mut self, max: usize, mut handle: impl FnMut(&mut [T])) -> usize {
        self.lanes.take_from_one(|lane| lane.take(max, &mut handle))
    }

    /// Takes the next value, leaving the default in its slot; `None` if there is none now in its
    /// own lanes.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<T>
    where
        T: Default,
    {
        let mut value = None;
        self.lanes.take_from_one(|lane| {
            value = lane.pop();
            usize::from(value.is_some())
        });
        value
    }

    /// Waits by the ring's strategy after a round that did `work`: not at all if it did some.
    /// Returns after at most 200 ms, values or not.
    ///
    /// Of a group that sleeps, as many are woken as find work, and one more.
    #[inline(always)]
    pub fn wait(&mut self, work: usize) {
        self.wait_unless(work, || false);
    }

    /// As [`wait`](Self::wait), but does not sleep for long if `stop` holds.
    #[inline(always)]
    pub(crate) fn wait_unless(&mut self, work: usize, stop: impl Fn() -> bool) {
        let watch = &self.watch;
        self.lanes.wait_by(work, |lanes| watch.keep(PARK_TIME_MAX, || lanes.sleep_unless(stop)));
    }

    /// Whether all producers are gone and everything is claimed, by this worker or another,
    /// which may still be at work.
    #[inline]
    pub fn is_closed(&self) -> bool {
        self.lanes.is_closed()
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
