//! A worker's share in one ring.
//!
//! A group of workers shares one cursor, up to which everything is claimed. A worker first shows,
//! on a cursor of its own, where its run would begin, and then moves the group's cursor past the
//! run by compare-exchange. The producer reads the group's cursor first and the workers' then: if
//! it sees a run claimed, it sees where it begins, until its worker is done with it.

use crate::consumer::Consumer;
use crate::cursor::{Cursor, DETACHED, IDLE};
use crate::producer_lane::RingBuffer;
use crate::slots::Slots;
use lanecast_base::sync::AtomicU32;
use std::sync::Arc;

/// One worker's share in one ring.
#[derive(Debug)]
pub(crate) struct WorkClaim<T> {
    /// Its head shows where the unfinished run begins. Gone before the group is.
    consumer: Consumer<T>,
    group: Arc<WorkerGroup>,
    /// Claims until it looks whether it meets others.
    claims: u32,
}

/// Claims between two such looks.
const CLAIMS: u32 = 64;
/// Pauses for those that it has met: about as long as [`CLAIMS`] take one worker alone. Two that
/// alternate need ten times as long, because every line goes back and forth.
const PAUSES: u32 = 64;

/// Those who share a ring's values among themselves; gone with the last of them.
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

/// A claimed run: dropped, its slots go back to the producer.
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

    /// Claims a run of at most `max` values and hands it over, as at most two slices; returns
    /// how many values. A `handle` that panics has consumed the run.
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

    /// Takes the next value that nobody has claimed.
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
            self.consumer.head.show(at);
            is_shown = true;
            if self.group.claimed.advance(at, at + count as u64) {
                self.claims -= 1;
                self.consumer.at = at + count as u64;
                let head = &*self.consumer.head;
                return Some((Run { head, at, count }, &self.consumer.line.slots));
            }
        }
    }

    /// Goes where the next run begins.
    #[inline(always)]
    fn catch_up(&mut self) -> u64 {
        let at = self.group.claimed.get();
        self.consumer.at = at;
        self.consumer.limit = self.consumer.limit.max(at);
        at
    }

    /// Leaves the ring for a moment to others, if some have been here since the last claim.
    #[cold]
    #[inline(never)]
    fn give_way(&mut self) {
        self.claims = CLAIMS;
        if self.group.claimed.get() != self.consumer.at {
            lanecast_base::spin(PAUSES);
        }
    }

    /// Whether there is more to take, as far as known.
    #[inline(always)]
    pub(crate) const fn has_more(&self) -> bool {
        self.consumer.has_more()
    }

    pub(crate) fn line(&self) -> &RingBuffer<T> {
        &self.consumer.line
    }

    /// There was something to take.
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
    pub(crate) fn word(&self) -> Option<(&AtomicU32, u32)> {
        self.consumer.word()
    }

    /// Whether the producer is gone and everything is claimed.
    pub(crate) fn is_closed(&self) -> bool {
        self.consumer.line.ends_at(self.group.claimed.get())
    }
}
