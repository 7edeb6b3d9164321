//! The reading end of all lanes.

use super::lane_reader::LaneReader;
use crate::cursor::sleep_on_any;
use crate::producer_lane::PARK_TIME_MAX;
use lanecast_base::{WaitStep, WaitStrategy, Waiter, spin};

/// Reads messages. Dropping it detaches it: it holds nobody up any more.
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

    /// Hands what is there to `handler`, at most `limit` messages; returns how many. Never blocks.
    ///
    /// Messages are read in place and are done with when the handler returns. A handler that panics
    /// has consumed its message. With several producers each poll begins with another one's lane,
    /// so none is starved.
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

    /// Waits by the ring's strategy after a poll that returned `work`: not at all if there was
    /// some. Returns after a tenth of a second at the latest, messages or not.
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

    /// Whether every producer is gone and everything has been read.
    pub fn is_closed(&self) -> bool {
        self.readers.iter().all(LaneReader::is_closed)
    }

    #[cold]
    fn park(&mut self) {
        if self.mark_asleep() {
            sleep_on_any(self.readers.iter().filter_map(LaneReader::word), PARK_TIME_MAX);
        }
    }

    /// Marks the consumer asleep in each lane that goes on; whether there is nothing to read.
    fn mark_asleep(&mut self) -> bool {
        // No lane is left out, even if one before it has something.
        self.readers.iter_mut().fold(true, |asleep, reader| asleep & reader.mark())
    }
}
