//! Fan-in: the receiving end of many channels.

use super::error::{Closed, RecvTimeoutError, TryRecvError};
use super::reader::Reader;
use crate::park_flag::{Fence, UNCOVERED_PARK_TIME};
use crate::producer_lane::PARK_TIME_MAX;
use crate::signal::{Deadline, PollSet, Signals};
use lanecast_base::{WaitStep, WaitStrategy, Waiter, spin};
use std::time::Duration;

/// Most messages of one sender before the next sender's turn.
const TURN: usize = 64;

/// The receiving end of any number of channels, made by [`fan_in`](super::fan_in).
///
/// Serves senders in turns, up to 64 messages each. A pipe found empty before a sleep is not polled
/// again until its sender signals. Several pipes may share a signal, which makes the receiver poll
/// each of them.
#[derive(Debug)]
pub struct FanIn<T> {
    lanes: Vec<SenderLane<T>>,
    /// The polled lanes, in the order of turns.
    awake: Vec<usize>,
    /// Index in `awake` of the current turn, and the messages left in it.
    turn: usize,
    left: usize,
    /// Number of senders that are not gone.
    open: usize,
    signals: PollSet,
    waiter: Waiter,
    /// Messages since the last empty poll.
    run: usize,
}

/// One sender's pipe.
#[derive(Debug)]
struct SenderLane<T> {
    reader: Reader<T>,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Polled.
    Awake,
    /// Empty: its sender will signal.
    Asleep,
    /// Ended: its sender is gone and all messages are received.
    Gone,
}

impl<T> FanIn<T> {
    pub(super) fn new(readers: Vec<Reader<T>>, signals: PollSet, wait: WaitStrategy) -> Self {
        let count = readers.len();
        Self {
            lanes: readers
                .into_iter()
                .map(|reader| SenderLane { reader, state: State::Awake })
                .collect(),
            awake: (0..count).collect(),
            turn: 0,
            left: TURN,
            open: count,
            signals,
            waiter: Waiter::new(wait),
            run: 0,
        }
    }

    /// Receives the next value with the number of its sender; waits for one if necessary.
    ///
    /// # Errors
    /// If all senders are gone and all messages are received.
    pub fn recv(&mut self) -> Result<(usize, T), Closed> {
        loop {
            match self.try_recv() {
                Ok(found) => return Ok(found),
                Err(TryRecvError::Closed) => return Err(Closed(())),
                Err(TryRecvError::Empty) => self.pause(Duration::MAX),
            }
        }
    }

    /// Receives the next value with the number of its sender; waits for one at most `limit`.
    ///
    /// # Errors
    /// If the time is up, or all senders are gone and all messages are received.
    pub fn recv_timeout(&mut self, limit: Duration) -> Result<(usize, T), RecvTimeoutError> {
        let deadline = Deadline::after(limit);
        loop {
            match self.try_recv() {
                Ok(found) => return Ok(found),
                Err(TryRecvError::Closed) => return Err(RecvTimeoutError::Closed),
                Err(TryRecvError::Empty) if deadline.is_over() => {
                    return Err(RecvTimeoutError::Timeout);
                }
                Err(TryRecvError::Empty) => self.pause(deadline.left().unwrap_or(Duration::MAX)),
            }
        }
    }

    /// Receives the next value with the number of its sender, if one is available; never blocks.
    ///
    /// # Errors
    /// If no value is available, now or for ever.
    pub fn try_recv(&mut self) -> Result<(usize, T), TryRecvError> {
        // One more than there are: the only sender may be at the end of its turn.
        for _ in 0..=self.awake.len() {
            let Some(&sender) = self.awake.get(self.turn) else { break };
            if self.left > 0
                && let Some(value) = self.lanes[sender].reader.try_read()
            {
                self.left -= 1;
                self.run += 1;
                return Ok((sender, value));
            }
            self.pass_turn();
        }
        Err(if self.is_closed() { TryRecvError::Closed } else { TryRecvError::Empty })
    }

    /// Passes at most `limit` available values to `sink`, with the numbers of their senders;
    /// returns the number of values. Never blocks.
    pub fn drain(&mut self, limit: usize, mut sink: impl FnMut(usize, T)) -> usize {
        let mut left = limit;
        let mut idle = 0;
        while left > 0 && idle < self.awake.len() {
            let sender = self.awake[self.turn];
            let run = self.lanes[sender].reader.drain(TURN.min(left), |value| sink(sender, value));
            left -= run;
            idle = if run == 0 { idle + 1 } else { 0 };
            self.pass_turn();
        }
        self.run += limit - left;
        limit - left
    }

    /// Waits for a value if there was no `work`, at most for a tenth of a second. For loops around
    /// [`drain`](Self::drain).
    pub fn wait(&mut self, work: usize) {
        if work == 0 && !self.is_closed() {
            self.pause(PARK_TIME_MAX);
        }
    }

    /// Whether all senders are gone and all messages are received.
    pub fn is_closed(&mut self) -> bool {
        let Self { lanes, awake, open, .. } = self;
        awake.retain(|&sender| {
            let is_closed = lanes[sender].reader.is_closed();
            if is_closed {
                lanes[sender].state = State::Gone;
                *open -= 1;
            }
            !is_closed
        });
        self.turn = if self.turn < self.awake.len() { self.turn } else { 0 };
        self.open == 0
    }

    fn pass_turn(&mut self) {
        self.turn = if self.turn + 1 < self.awake.len() { self.turn + 1 } else { 0 };
        self.left = TURN;
    }

    /// Takes the wait strategy's next step after an empty poll, at most for `limit`.
    fn pause(&mut self, limit: Duration) {
        let run = core::mem::take(&mut self.run);
        if run > 0 {
            self.waiter.found(run);
        }
        match self.waiter.next_step() {
            WaitStep::Spin(pauses) => spin(pauses),
            WaitStep::Yield => std::thread::yield_now(),
            WaitStep::Park => self.park(limit),
        }
        if self.awake.len() < self.open {
            self.poll_signals(Duration::ZERO);
        }
    }

    /// Sleeps until a sender signals, unless a polled lane has a value after all.
    #[cold]
    fn park(&mut self, limit: Duration) {
        let Self { lanes, awake, .. } = self;
        // One fence for all of them.
        let fences = awake.iter().map(|&sender| lanes[sender].reader.announce());
        let is_covered = fences.max().unwrap_or(Fence::Own).pass();
        let mut is_any_found = false;
        awake.retain(|&sender| {
            let SenderLane { reader, state } = &mut lanes[sender];
            reader.note_coverage(is_covered);
            // A sender that is gone sends no signal.
            let is_found = reader.settle() || reader.is_closed();
            is_any_found |= is_found;
            // Nor one that may not see the flag.
            let stays = is_found || !is_covered;
            *state = if stays { State::Awake } else { State::Asleep };
            stays
        });
        self.turn = 0;
        if !is_any_found {
            self.poll_signals(if is_covered { limit } else { limit.min(UNCOVERED_PARK_TIME) });
        }
    }

    /// Waits at most `limit` for signals; their senders' lanes are polled from then on.
    fn poll_signals(&mut self, limit: Duration) {
        let signals = if limit.is_zero() { self.signals.check() } else { self.signals.poll(limit) };
        for signal in signals {
            for sender in (signal..self.lanes.len()).step_by(PollSet::COUNT) {
                if self.lanes[sender].state == State::Asleep {
                    self.lanes[sender].state = State::Awake;
                    self.awake.push(sender);
                }
            }
        }
    }
}
