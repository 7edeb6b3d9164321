//! The reading end of one lane.

use super::frame_memory::{ByteLane, Frame};
use crate::cursor::{Cursor, DETACHED};
use crate::gating::{GatingCursors, ParkMark};
use lanecast_base::sync::AtomicU32;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[derive(Debug)]
pub(super) struct LaneReader {
    lane: Arc<ByteLane>,
    gates: GatingCursors,
    head: Arc<Cursor>,
    /// What is read next.
    at: u64,
    /// What may be read up to, as of the last look.
    limit: u64,
    /// What those behind may use again.
    released: u64,
    /// After how long without messages it looks at those that a stride holds back.
    pull_after: Option<Duration>,
    /// When it ran dry.
    empty_since: Option<Instant>,
    /// What it sleeps on.
    mark: Option<ParkMark>,
}

impl LaneReader {
    pub(super) fn new(
        lane: Arc<ByteLane>,
        gates: GatingCursors,
        pull_after: Option<Duration>,
    ) -> Self {
        Self {
            lane,
            gates,
            head: Arc::new(Cursor::new(0)),
            at: 0,
            limit: 0,
            released: 0,
            pull_after,
            empty_since: None,
            mark: None,
        }
    }

    pub(super) const fn lane(&self) -> &Arc<ByteLane> {
        &self.lane
    }

    pub(super) const fn head(&self) -> &Arc<Cursor> {
        &self.head
    }

    /// Hands over at most `limit` messages; returns how many.
    #[inline]
    pub(super) fn poll(&mut self, limit: usize, handler: &mut impl FnMut(&[u8])) -> usize {
        if self.at == self.limit && !self.look() {
            return 0;
        }
        let stretch = self.lane.slots.capacity() as u64 / 4;
        let mut count = 0;
        while count < limit && self.at < self.limit {
            count += self.pass(handler);
            // A long poll gives room back on its way.
            if self.at - self.released >= stretch {
                self.release();
            }
        }
        self.release();
        count
    }

    /// Passes one frame; returns how many messages it was. A handler that panics has consumed it.
    #[inline(always)]
    fn pass(&mut self, handler: &mut impl FnMut(&[u8])) -> usize {
        let start = self.at;
        match self.lane.slots.frame(start) {
            Frame::Padding(next) => {
                self.at = next;
                0
            }
            Frame::Message { len, end } => {
                self.at = end;
                let body = self.lane.slots.body(start, len);
                // SAFETY: a whole message within the lane, published and not yet released: nobody
                // writes it before `release`, and the slice does not outlive the call.
                handler(unsafe { body.as_ref() });
                1
            }
        }
    }

    #[inline(always)]
    fn release(&mut self) {
        if self.released != self.at {
            self.released = self.at;
            self.head.publish(self.at);
        }
    }

    /// Whether there is more to read.
    fn look(&mut self) -> bool {
        // After a panic of the handler, its message is still to be released.
        self.release();
        // The tail, at least, is always there.
        let mut limit = self.gates.slowest().unwrap_or(self.at);
        if limit <= self.at && self.is_owed_more() {
            limit = self.lane.written();
        }
        self.limit = limit.max(self.at);
        let found = self.limit > self.at;
        if found {
            self.empty_since = None;
            self.gates.found();
        }
        found
    }

    /// Whether it has been dry for so long that it may look at what a stride holds back.
    fn is_owed_more(&mut self) -> bool {
        self.pull_after.is_some_and(|delay| {
            self.empty_since.get_or_insert_with(Instant::now).elapsed() >= delay
        })
    }

    /// Whether everything has been read and no more comes.
    pub(super) fn is_closed(&self) -> bool {
        self.lane.ends_at(self.at)
    }

    /// Marks this end asleep, if it goes on; whether there is nothing to read.
    pub(super) fn mark(&mut self) -> bool {
        self.mark = None;
        if self.is_closed() {
            return true;
        }
        self.mark = self.gates.mark(self.at);
        let held_back = self.pull_after.is_some() && self.lane.written() > self.at;
        self.mark.is_some() && !held_back && !self.is_closed()
    }

    /// What to sleep on after [`mark`](Self::mark); `None` if nothing more comes.
    pub(super) fn word(&self) -> Option<(&AtomicU32, u32)> {
        self.mark.map(|mark| self.gates.word(mark))
    }
}

impl Drop for LaneReader {
    fn drop(&mut self) {
        self.head.publish(DETACHED);
    }
}
