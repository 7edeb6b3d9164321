//! The receiver: the receiving end of a channel.

use super::error::{Closed, RecvTimeoutError, TryRecvError};
use super::reader::Reader;
use crate::park_flag::UNCOVERED_PARK_TIME;
use crate::producer_lane::PARK_TIME_MAX;
use crate::signal::{Deadline, Semaphore, Signals};
use lanecast_base::{WaitStep, WaitStrategy, Waiter, spin};
use std::time::Duration;

/// The receiving end of a channel. Dropping it closes the pipe and drops what is in it.
#[derive(Debug)]
pub struct Receiver<T> {
    reader: Reader<T>,
    semaphore: Semaphore,
    waiter: Waiter,
    /// Number of values received at the last empty poll.
    empty_at: u64,
}

impl<T> Receiver<T> {
    pub(super) const fn new(reader: Reader<T>, semaphore: Semaphore, wait: WaitStrategy) -> Self {
        Self { reader, semaphore, waiter: Waiter::new(wait), empty_at: 0 }
    }

    /// Receives the next value, and waits for it if there is none.
    ///
    /// # Errors
    /// If the sender is gone and everything was received.
    #[inline]
    pub fn recv(&mut self) -> Result<T, Closed> {
        loop {
            if let Some(value) = self.reader.try_read() {
                return Ok(value);
            }
            if self.reader.is_closed() {
                return Err(Closed(()));
            }
            self.pause(Duration::MAX);
        }
    }

    /// Receives the next value, and waits for it at most `limit`.
    ///
    /// # Errors
    /// If the time is up, or the sender is gone and everything was received.
    pub fn recv_timeout(&mut self, limit: Duration) -> Result<T, RecvTimeoutError> {
        let deadline = Deadline::after(limit);
        loop {
            match self.try_recv() {
                Ok(value) => return Ok(value),
                Err(TryRecvError::Closed) => return Err(RecvTimeoutError::Closed),
                Err(TryRecvError::Empty) if deadline.is_over() => {
                    return Err(RecvTimeoutError::Timeout);
                }
                Err(TryRecvError::Empty) => self.pause(deadline.left().unwrap_or(Duration::MAX)),
            }
        }
    }

    /// Receives the next value if it is there; never blocks.
    ///
    /// # Errors
    /// If nothing is there, now or for ever.
    #[inline]
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        match self.reader.try_read() {
            Some(value) => Ok(value),
            None if self.reader.is_closed() => Err(TryRecvError::Closed),
            None => Err(TryRecvError::Empty),
        }
    }

    /// Hands at most `limit` of the values that are there now to `sink`, and says how many; never
    /// blocks.
    #[inline]
    pub fn drain(&mut self, limit: usize, sink: impl FnMut(T)) -> usize {
        self.reader.drain(limit, sink)
    }

    /// Waits a little if there was no `work`: until something comes, but not longer than a tenth
    /// of a second. For loops around [`drain`](Self::drain).
    #[inline]
    pub fn wait(&mut self, work: usize) {
        if work == 0 {
            self.pause(PARK_TIME_MAX);
        }
    }

    /// Whether the sender is gone and everything was received.
    #[inline]
    pub fn is_closed(&mut self) -> bool {
        self.reader.is_closed()
    }

    /// Takes the wait strategy's next step after an empty poll, at most for `limit`.
    fn pause(&mut self, limit: Duration) {
        let received = self.reader.position();
        if received != self.empty_at {
            self.waiter.found((received - self.empty_at) as usize);
            self.empty_at = received;
        }
        match self.waiter.next_step() {
            WaitStep::Spin(pauses) => spin(pauses),
            WaitStep::Yield => std::thread::yield_now(),
            WaitStep::Park => self.park(limit),
        }
    }

    #[cold]
    fn park(&mut self, limit: Duration) {
        if !self.reader.check() && !self.reader.is_closed() {
            let is_covered = self.reader.is_covered();
            self.semaphore.poll(if is_covered { limit } else { limit.min(UNCOVERED_PARK_TIME) });
        }
    }
}
