//! The consumer: the reading end of all lanes.

use super::lane_reader::LaneReader;
use crate::cursor::sleep_on_any;
use crate::producer_lane::PARK_TIME_MAX;
use lanecast_base::{WaitStep, WaitStrategy, Waiter, spin};

/// Reads messages. A drop detaches it: it gates no other end.
#[derive(Debug)]
pub struct ByteConsumer {
    readers: Box<[LaneReader]>,
    /// The lane that the next poll begins with.
    next: usize,
    waiter: Waiter,
}

impl ByteConsumer {
    pub(super) fn new(readers: Box<[LaneReader]>, strategy: WaitStrategy) -> Self {
        Self { readers, next: 0, waiter: Waiter::new(strategy) }
    }

    pub(super) fn readers(&self) -> &[LaneReader] {
        &self.readers
    }

    /// Passes at most `limit` available messages to `handler`; returns their number. Never blocks.
    ///
    /// Messages are read in place and consumed when the handler returns. A handler that panics has
    /// consumed its message. With several producers each poll begins with another lane, so none is
    /// starved.
    #[inline]
    pub fn poll(&mut self, limit: usize, mut handler: impl FnMut(&[u8])) -> usize {
        if let [reader] = &mut *self.readers {
            return reader.poll(limit, &mut handler);
        }
        let (early, late) = self.readers.split_at_mut(self.next);
        self.next = if late.len() > 1 { self.next + 1 } else { 0 };
        let mut count = 0;
        for reader in late.iter_mut().chain(early) {
            if count >= limit {
                break;
            }
            count += reader.poll(limit - count, &mut handler);
        }
        count
    }

    /// Waits by the ring's strategy after a poll that returned `work`; returns at once if there was
    /// any. Returns after at most a tenth of a second.
    #[inline]
    pub fn wait(&mut self, work: usize) {
        if work > 0 {
            self.waiter.found(work);
            return;
        }
        match self.waiter.next_step() {
            WaitStep::Spin(pauses) => spin(pauses),
            WaitStep::Yield => std::thread::yield_now(),
            WaitStep::Park => self.park(),
        }
    }

    /// Whether every producer is gone and all messages are read.
    pub fn is_closed(&self) -> bool {
        self.readers.iter().all(LaneReader::is_closed)
    }

    #[cold]
    fn park(&mut self) {
        if self.mark_asleep() {
            sleep_on_any(self.readers.iter().filter_map(LaneReader::word), PARK_TIME_MAX);
        }
    }

    /// Sets a park flag in each open lane; returns whether there are no messages.
    pub(super) fn mark_asleep(&mut self) -> bool {
        // `&`, not `&&`: every lane is marked, even after one with messages.
        self.readers.iter_mut().fold(true, |asleep, reader| asleep & reader.mark())
    }
}
