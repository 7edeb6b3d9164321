//! The lane reader: a consumer's reading end of one lane.

use super::frame_memory::{ByteLane, Frame};
use crate::cursor::{Cursor, DETACHED, SleepWord};
use crate::gating::{GatingCursors, ParkMark};
use std::sync::Arc;
use std::time::{Duration, Instant};

#[derive(Debug)]
pub(super) struct LaneReader {
    lane: Arc<ByteLane>,
    gates: GatingCursors,
    head: Arc<Cursor>,
    /// Position of the next frame.
    at: u64,
    /// Known limit of reading.
    limit: u64,
    /// Position up to which frames are released.
    released: u64,
    /// Time without messages after which those that a stride holds back are read.
    pull_after: Option<Duration>,
    /// Time since which the lane has been empty.
    empty_since: Option<Instant>,
    /// Park flag set for a sleep.
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

    pub(super) const fn head(&self) -> &Arc<Cursor> {
        &self.head
    }

    /// Passes at most `limit` messages to `handler`; returns their number.
    #[inline]
    pub(super) fn poll(&mut self, limit: usize, handler: &mut impl FnMut(&[u8])) -> usize {
        if self.at == self.limit && !self.poll_tail() {
            return 0;
        }
        let stretch = self.lane.slots.capacity() as u64 / 4;
        let mut count = 0;
        while count < limit && self.at < self.limit {
            count += self.pass(handler);
            // A long poll releases space on the way.
            if self.at - self.released >= stretch {
                self.release();
            }
        }
        self.release();
        count
    }

    /// Passes one frame; returns its number of messages, 0 or 1. A handler that panics has consumed
    /// it.
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
                // SAFETY: a whole message within the lane, published and not yet released: the
                // producer writes it only after `release`, and the slice does not outlive the call.
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

    /// Reads the gating cursors; returns whether there are messages.
    fn poll_tail(&mut self) -> bool {
        // After a panic of the handler its message is still unreleased.
        self.release();
        // The producer's tail is always among them.
        let mut limit = self.gates.slowest().unwrap_or(self.at);
        if limit <= self.at && self.may_pull() {
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

    /// Whether the lane has been empty long enough to read messages that a stride holds back.
    fn may_pull(&mut self) -> bool {
        self.pulls_after().is_some_and(|delay| {
            self.empty_since.get_or_insert_with(Instant::now).elapsed() >= delay
        })
    }

    /// Time after which messages that a stride holds back are this reader's: it follows no other,
    /// or all others have left.
    fn pulls_after(&self) -> Option<Duration> {
        self.pull_after.filter(|_| self.gates.is_only(&self.lane.tail))
    }

    /// Whether the stream has ended and all messages are read.
    pub(super) fn is_closed(&self) -> bool {
        self.lane.ends_at(self.at)
    }

    /// Sets a park flag unless the stream has ended; returns whether there is nothing to read.
    pub(super) fn mark(&mut self) -> bool {
        self.mark = None;
        if self.is_closed() {
            return true;
        }
        self.mark = self.gates.mark(self.at);
        let held_back = self.pulls_after().is_some() && self.lane.written() > self.at;
        let may_come = held_back || self.pull_after.is_some() && self.gates.has_departed();
        self.mark.is_some() && !may_come && !self.is_closed()
    }

    /// The word to sleep on after [`mark`](Self::mark); `None` if the stream has ended.
    pub(super) fn word(&self) -> Option<SleepWord<'_>> {
        self.mark.map(|mark| self.gates.word(mark))
    }
}

impl Drop for LaneReader {
    fn drop(&mut self) {
        self.head.publish(DETACHED);
    }
}
