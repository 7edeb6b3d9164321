//! The receiving end of many channels.

use super::error::{Closed, RecvTimeoutError, TryRecvError};
use super::reader::Reader;
use crate::park_flag::Fence;
use crate::producer_lane::PARK_TIME_MAX;
use crate::signal::{Deadline, PollSet, Signals};
use lanecast_base::{WaitStep, WaitStrategy, Waiter, spin};
use std::time::Duration;

/// A sender is served for at most so many messages before it is the next one's turn.
const TURN: usize = 64;

/// The receiving end of any number of channels, made by [`fan_in`](super::fan_in).
///
/// Senders are served in turns, up to 64 messages each. A pipe that is found empty while the
/// receiver goes to sleep costs nothing from then on, until its sender signals: several pipes may
/// share a signal, which then makes the receiver look at each of them.
#[derive(Debug)]
pub struct FanIn<T> {
    lanes: Vec<SenderLane<T>>,
    /// The lanes that are looked at, in the order of turns.
    awake: Vec<usize>,
    /// Whose turn it is, as a place in `awake`, and how many messages that still has.
    turn: usize,
    left: usize,
    /// How many senders are not gone.
    open: usize,
    signals: PollSet,
    waiter: Waiter,
    /// Messages since the last time that nothing was there.
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
    /// It is looked at.
    Awake,
    /// It was found empty: its sender will signal.
    Asleep,
    /// Its sender is gone and everything was received.
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

    /// Receives the next value with the number of its sender, and waits for it if there is none.
    ///
    /// # Errors
    /// If all senders are gone and everything was received.
    pub fn recv(&mut self) -> Result<(usize, T), Closed> {
        loop {
            match self.try_recv() {
                Ok(found) => return Ok(found),
                Err(TryRecvError::Closed) => return Err(Closed(())),
                Err(TryRecvError::Empty) => self.pause(Duration::MAX),
            }
        }
    }

    /// Receives the next value with the number of its sender, and waits for it at most `limit`.
    ///
    /// # Errors
    /// If the time is up, or all senders are gone and everything was received.
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

    /// Receives the next value with the number of its sender, if one is there; never blocks.
    ///
    /// # Errors
    /// If nothing is there, now or for ever.
    pub fn try_recv(&mut self) -> Result<(usize, T), TryRecvError> {
        // One more than there are: the first may be at the end of its turn and yet the only one.
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

    /// Hands at most `limit` of the values that are there now to `sink`, with the numbers of their
    /// senders, and says how many; never blocks.
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

    /// Waits a little if there was no `work`: until something comes, but not longer than a tenth
    /// of a second. For loops around [`drain`](Self::drain).
    pub fn wait(&mut self, work: usize) {
        if work == 0 && !self.is_closed() {
            self.pause(PARK_TIME_MAX);
        }
    }

    /// Whether all senders are gone and everything was received.
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

    /// Nothing was there: does the next thing that the strategy says, at most for `limit`.
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

    /// Sleeps until a sender signals, unless one that was awake has something after all.
    #[cold]
    fn park(&mut self, limit: Duration) {
        let Self { lanes, awake, .. } = self;
        // One fence for all of them.
        let fences = awake.iter().map(|&sender| lanes[sender].reader.announce());
        fences.max().unwrap_or(Fence::Own).pass();
        awake.retain(|&sender| {
            let SenderLane { reader, state } = &mut lanes[sender];
            // No signal comes from who is gone.
            let is_found = reader.settle() || reader.is_closed();
            *state = if is_found { State::Awake } else { State::Asleep };
            is_found
        });
        self.turn = 0;
        if self.awake.is_empty() {
            self.poll_signals(limit);
        }
    }

    /// Waits at most `limit` for signals, and looks at their senders from now on.
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
