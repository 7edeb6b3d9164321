//! The worker: one of a group that shares the values of one or several rings.

use crate::lanes::Lanes;
use crate::producer_lane::PARK_TIME_MAX;
use crate::sleep_leader::SleepLeader;
use crate::work_claim::WorkClaim;
use lanecast_base::WaitStrategy;
use std::sync::Arc;

/// A member of a group that shares a ring's values, or those of several producers' rings: each
/// value goes to one worker.
///
/// With several producers each worker serves its own lanes, and helps in the others after some
/// dozen empty polls: two workers that alternate in one lane contend for its cache lines.
///
/// A worker that loses its core inside a run gates the producer one lap later, and no other worker.
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

    /// Claims a run of at most `max` values of one producer and passes it to `handle` as at most
    /// two slices, to be read, changed or emptied. Returns the number of values: 0 if its own lanes
    /// are empty. Never blocks.
    ///
    /// The run is released to the producer when the last call of `handle` has returned. A `handle`
    /// that panics has consumed it.
    #[inline(always)]
    pub fn take(&mut self, max: usize, mut handle: impl FnMut(&mut [T])) -> usize {
        self.lanes.take_from_one(|lane| lane.take(max, &mut handle))
    }

    /// Takes the next value, leaving the default in its slot; `None` if its own lanes are empty.
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

    /// Lets the next poll look into other workers' lanes without empty polls before.
    pub(crate) fn help_at_once(&mut self) {
        self.lanes.help_at_once();
    }

    /// Waits by the ring's strategy after a poll with `work` values; returns at once if there were
    /// any. Returns after at most 200 ms.
    ///
    /// Of a sleeping group as many workers wake as find work, and one more.
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

    /// Whether all producers are gone and all values are claimed, by this worker or by another one,
    /// which may still be handling its run.
    #[inline]
    pub fn is_closed(&self) -> bool {
        self.lanes.is_closed()
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
