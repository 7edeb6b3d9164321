//! The sender: the sending end of a channel.

use super::error::{Closed, Full, TrySendError};
use super::peer::{Bounded, Peer};
use super::writer::Writer;
use crate::producer_lane::PARK_TIME_MAX;
use crate::signal::{SemaphoreSignal, Signal};
use lanecast_base::{WaitStep, WaitStrategy, Waiter, spin};

/// The sending end of a channel. Dropping it closes its pipe.
///
/// Signals a sleeping receiver, and waits for space by the channel's strategy.
#[derive(Debug)]
pub struct Sender<T, S: Signal = SemaphoreSignal> {
    writer: Writer<T, Bounded>,
    signal: S,
    waiter: Waiter,
}

impl<T, S: Signal> Sender<T, S> {
    pub(super) const fn new(writer: Writer<T, Bounded>, signal: S, wait: WaitStrategy) -> Self {
        Self { writer, signal, waiter: Waiter::new(wait) }
    }

    /// Sends `value`; waits for space if the pipe is full.
    ///
    /// # Errors
    /// The value comes back if the receiver is gone.
    #[inline]
    pub fn send(&mut self, value: T) -> Result<(), Closed<T>> {
        if self.writer.is_closed() {
            return Err(Closed(value));
        }
        match self.writer.try_write_and_flush(value) {
            Ok(receiver) => self.wake(receiver),
            Err(Full(value)) => {
                self.write_later(value)?;
                self.flush();
            }
        }
        Ok(())
    }

    /// Sends all `values`, which become visible at the end, or when the pipe is full.
    ///
    /// # Errors
    /// If the receiver is gone, with the first unsent value; the values behind it are dropped.
    pub fn send_all(&mut self, values: impl IntoIterator<Item = T>) -> Result<(), Closed<T>> {
        for value in values {
            self.write(value)?;
        }
        self.flush();
        Ok(())
    }

    /// Sends `value` if there is space; never blocks.
    ///
    /// # Errors
    /// Returns the value if the pipe is full or the receiver is gone.
    #[inline]
    pub fn try_send(&mut self, value: T) -> Result<(), TrySendError<T>> {
        if self.writer.is_closed() {
            return Err(TrySendError::Closed(value));
        }
        let receiver = self.writer.try_write_and_flush(value);
        self.wake(receiver.map_err(|Full(value)| TrySendError::Full(value))?);
        Ok(())
    }

    /// Whether the receiver is gone.
    #[inline]
    pub fn is_closed(&self) -> bool {
        self.writer.is_closed()
    }

    /// Writes `value` without a flush, unless it must wait for space.
    #[inline(always)]
    fn write(&mut self, value: T) -> Result<(), Closed<T>> {
        if self.writer.is_closed() {
            return Err(Closed(value));
        }
        match self.writer.try_write(value) {
            Ok(()) => Ok(()),
            Err(Full(value)) => self.write_later(value),
        }
    }

    #[cold]
    fn write_later(&mut self, mut value: T) -> Result<(), Closed<T>> {
        // Flush first: the receiver frees space by reading, and it reads flushed values only.
        self.flush();
        loop {
            self.wait();
            if self.writer.is_closed() {
                return Err(Closed(value));
            }
            match self.writer.try_write(value) {
                Ok(()) => break,
                Err(Full(back)) => value = back,
            }
        }
        self.writer.found_space();
        self.waiter.reset();
        Ok(())
    }

    fn wait(&mut self) {
        match self.waiter.next_step() {
            WaitStep::Spin(pauses) => spin(pauses),
            WaitStep::Yield => std::thread::yield_now(),
            WaitStep::Park => self.writer.sleep_until_space(PARK_TIME_MAX),
        }
    }

    #[inline(always)]
    fn flush(&mut self) {
        let receiver = self.writer.flush();
        self.wake(receiver);
    }

    #[inline(always)]
    fn wake(&self, receiver: Peer) {
        if receiver == Peer::Asleep {
            self.signal.signal();
        }
    }
}

impl<T, S: Signal> Drop for Sender<T, S> {
    fn drop(&mut self) {
        if self.writer.finish() == Peer::Asleep {
            self.signal.signal();
        }
    }
}
