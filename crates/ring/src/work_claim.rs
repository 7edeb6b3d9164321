//! Work claims: the values of one ring shared among a group of workers.
//!
//! The group has one cursor, before which every value is claimed. A worker first stores the start
//! of its run in its own cursor, then moves the group's cursor past the run by compare-exchange.
//! The producer reads the group's cursor first and the workers' cursors then: if it sees a run
//! claimed, it sees the start of that run until its worker has finished.

use crate::consumer::Consumer;
use crate::cursor::{Cursor, DETACHED, IDLE, SleepWord};
use crate::producer_lane::RingBuffer;
use crate::slots::Slots;
use std::sync::Arc;

/// One worker's claims in one ring.
#[derive(Debug)]
pub(crate) struct WorkClaim<T> {
    /// The worker's consumer; its head is the start of the unfinished run. Dropped before the
    /// group.
    consumer: Consumer<T>,
    group: Arc<WorkerGroup>,
    /// Claims until the next check for contention.
    claims: u32,
}

/// Claims between two checks for contention.
const CLAIMS: u32 = 64;
/// Pauses under contention: about the time of [`CLAIMS`] by one worker alone. Two alternating
/// workers need ten times as long, since every cache line moves back and forth.
const PAUSES: u32 = 64;

/// The workers that share a ring's values; detaches the group's cursor with its last worker.
#[derive(Debug)]
pub(crate) struct WorkerGroup {
    claimed: Arc<Cursor>,
}

impl WorkerGroup {
    /// A group that has claimed everything before `claimed`.
    pub(crate) const fn new(claimed: Arc<Cursor>) -> Self {
        Self { claimed }
    }
}

impl Drop for WorkerGroup {
    fn drop(&mut self) {
        self.claimed.publish(DETACHED);
    }
}

/// A claimed run; its drop releases the slots to the producer.
struct Run<'a> {
    head: &'a Cursor,
    at: u64,
    count: usize,
}

impl Drop for Run<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.head.publish(IDLE);
    }
}

impl<T> WorkClaim<T> {
    /// `consumer` has read nothing, and its head is idle.
    pub(crate) const fn new(consumer: Consumer<T>, group: Arc<WorkerGroup>) -> Self {
        Self { consumer, group, claims: CLAIMS }
    }

    /// Claims a run of at most `max` values and passes it to `handle`, as at most two slices;
    /// returns the number of values. A `handle` that panics has consumed the run.
    #[inline(always)]
    pub(crate) fn take(&mut self, max: usize, handle: &mut impl FnMut(&mut [T])) -> usize {
        let Some((run, slots)) = self.claim(max) else { return 0 };
        let (mut at, mut left) = (run.at, run.count);
        while left > 0 {
            let count = slots.run(at, left as u64);
            // SAFETY: the run is this worker's alone: the others claim behind it, and the
            // producer stops where it begins.
            handle(unsafe { slots.write(at, count) });
            at += count as u64;
            left -= count;
        }
        run.count
    }

    /// Claims the next value and takes it.
    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Option<T>
    where
        T: Default,
    {
        let (run, slots) = self.claim(1)?;
        // SAFETY: as for `take`.
        let slot = unsafe { slots.write(run.at, 1) };
        Some(core::mem::take(&mut slot[0]))
    }

    #[inline(always)]
    fn claim(&mut self, max: usize) -> Option<(Run<'_>, &Slots<T>)> {
        if self.claims == 0 {
            self.give_way();
        }
        let mut is_shown = false;
        loop {
            let at = self.catch_up();
            let count = self.consumer.available(max);
            if count == 0 {
                if is_shown {
                    self.consumer.head.publish(IDLE);
                }
                return None;
            }
            if is_shown {
                // Another worker won the race: a producer that waits for the start shown before
                // must not sleep through the handling of this run.
                self.consumer.head.publish(at);
            } else {
                self.consumer.head.show(at);
                is_shown = true;
            }
            if self.group.claimed.advance(at, at + count as u64) {
                self.claims -= 1;
                self.consumer.at = at + count as u64;
                let head = &*self.consumer.head;
                return Some((Run { head, at, count }, &self.consumer.ring.slots));
            }
        }
    }

    /// Moves to the start of the next run.
    #[inline(always)]
    fn catch_up(&mut self) -> u64 {
        let at = self.group.claimed.get();
        self.consumer.at = at;
        self.consumer.limit = self.consumer.limit.max(at);
        at
    }

    /// Pauses if other workers have claimed values since this worker's last claim.
    #[cold]
    #[inline(never)]
    fn give_way(&mut self) {
        self.claims = CLAIMS;
        if self.group.claimed.get() != self.consumer.at {
            lanecast_base::spin(PAUSES);
        }
    }

    /// Whether more values are known to be available.
    #[inline(always)]
    pub(crate) const fn has_more(&self) -> bool {
        self.consumer.has_more()
    }

    pub(crate) fn ring(&self) -> &RingBuffer<T> {
        &self.consumer.ring
    }

    /// Notes that there were values.
    #[inline(always)]
    pub(crate) fn found(&mut self) {
        self.consumer.found();
    }

    /// As for a consumer.
    pub(crate) fn mark(&mut self) -> bool {
        self.catch_up();
        self.consumer.mark()
    }

    /// As for a consumer.
    pub(crate) fn word(&self) -> Option<SleepWord<'_>> {
        self.consumer.word()
    }

    /// Whether the producer is gone and all values are claimed.
    pub(crate) fn is_closed(&self) -> bool {
        self.consumer.ring.ends_at(self.group.claimed.get())
    }
}
