//! A pipe, with a signal for its reader.

use super::link::{Reads, Writes};
use crate::threads::Failed;
use lanecast_base::{WaitStep, WaitStrategy, Waiter, spin};
use lanecast_ring::pipe::{self, Bounded, Full, Peer, Reader, Writer};
use lanecast_ring::signal::{Signal, Signals};
use std::time::Duration;

/// Capacity in messages: far more than any batch, so that only a reader kept from its CPU blocks a
/// writer.
const CAPACITY: usize = 1 << 16;
/// Longest sleep of a reader without a signal.
const NAP: Duration = Duration::from_millis(100);

/// The writing end.
#[derive(Debug)]
pub(super) struct PipedWriter<S> {
    writer: Writer<u64, Bounded>,
    signal: S,
    signals: u64,
}

/// The reading end.
#[derive(Debug)]
pub(super) struct PipedReader<W> {
    reader: Reader<u64>,
    signals: W,
    waiter: Waiter,
}

/// Two ends of one direction, whose reader waits by `wait`, and sleeps until `signals` tell it.
pub(super) fn pair<W: Signals>(
    signals: W,
    wait: WaitStrategy,
) -> Result<(PipedWriter<W::Signal>, PipedReader<W>), Failed> {
    let (writer, reader) = pipe::bounded(CAPACITY)?;
    let signal = signals.bind(0)?;
    let writer = PipedWriter { writer, signal, signals: 0 };
    Ok((writer, PipedReader { reader, signals, waiter: Waiter::new(wait) }))
}

impl<S: Signal> PipedWriter<S> {
    fn tell(&mut self, peer: Peer) {
        if peer == Peer::Asleep {
            self.signals += 1;
            self.signal.signal();
        }
    }

    #[cold]
    fn write_later(&mut self, mut message: u64) {
        loop {
            // The reader can free space only by reading messages it sees.
            self.flush();
            if self.writer.is_closed() {
                return;
            }
            std::thread::yield_now();
            match self.writer.try_write(message) {
                Ok(()) => return,
                Err(Full(back)) => message = back,
            }
        }
    }
}

impl<S: Signal> Writes for PipedWriter<S> {
    #[inline(always)]
    fn write(&mut self, message: u64) {
        if let Err(Full(message)) = self.writer.try_write(message) {
            self.write_later(message);
        }
    }

    #[inline(always)]
    fn flush(&mut self) {
        let peer = self.writer.flush();
        self.tell(peer);
    }

    #[inline(always)]
    fn write_and_flush(&mut self, message: u64) {
        match self.writer.try_write_and_flush(message) {
            Ok(peer) => self.tell(peer),
            Err(Full(message)) => {
                self.write_later(message);
                self.flush();
            }
        }
    }

    fn close(self) -> Option<u64> {
        if self.writer.close() == Peer::Asleep {
            self.signal.signal();
        }
        Some(self.signals)
    }
}

impl<W: Signals> Reads for PipedReader<W> {
    #[inline(always)]
    fn read(&mut self, mut each: impl FnMut(u64)) -> bool {
        loop {
            let work = self.reader.drain(usize::MAX, &mut each);
            if work > 0 {
                self.waiter.found(work);
                return true;
            }
            if !self.wait() {
                return false;
            }
        }
    }
}

impl<W: Signals> PipedReader<W> {
    /// Waits by the strategy; false at the end.
    #[inline(always)]
    fn wait(&mut self) -> bool {
        match self.waiter.next_step() {
            WaitStep::Spin(pauses) => spin(pauses),
            WaitStep::Yield => std::thread::yield_now(),
            WaitStep::Park => {
                // Marks the reader asleep in the same step, if there is nothing.
                if self.reader.check() {
                    return true;
                }
                if !self.reader.is_closed() {
                    self.signals.poll(NAP);
                }
            }
        }
        !self.reader.is_closed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanecast_ring::signal::{PollSet, Semaphore, SocketSignal};

    fn goes_through<W: Signals>(signals: W) {
        let (mut writer, mut reader) = pair(signals, WaitStrategy::Park).unwrap();
        let mut seen = Vec::new();
        (0..3).for_each(|message| writer.write(message));
        writer.flush();
        assert!(reader.read(|message| seen.push(message)));
        assert_eq!(seen, [0, 1, 2]);
        assert!(!reader.reader.check(), "asleep from here on");
        writer.write_and_flush(3);
        writer.write(4);
        writer.flush();
        assert_eq!(writer.signals, 1, "one for each sleep");
        assert!(reader.read(|message| seen.push(message)));
        assert_eq!(writer.close(), Some(1));
        while reader.read(|message| seen.push(message)) {}
        assert_eq!(seen, [0, 1, 2, 3, 4]);
    }

    #[test]
    fn writes_arrive_and_a_sleeper_is_woken_once() {
        goes_through(Semaphore::new());
        goes_through(PollSet::new());
        goes_through(SocketSignal::new().unwrap());
    }

    #[test]
    fn a_full_pipe_is_flushed_and_waited_for() {
        let (mut writer, mut reader) = pair(Semaphore::new(), WaitStrategy::Park).unwrap();
        let all = 3 * CAPACITY as u64;
        let reading = std::thread::spawn(move || {
            let mut next = 0;
            while reader.read(|message| {
                assert_eq!(message, next);
                next += 1;
            }) {}
            next
        });
        (0..all).for_each(|message| writer.write(message));
        writer.flush();
        writer.close();
        assert_eq!(reading.join().unwrap(), all);
    }

    #[test]
    fn a_reader_that_is_gone_keeps_no_writer() {
        let (mut writer, reader) = pair(Semaphore::new(), WaitStrategy::Park).unwrap();
        drop(reader);
        (0..2 * CAPACITY as u64).for_each(|message| writer.write(message));
    }
}
