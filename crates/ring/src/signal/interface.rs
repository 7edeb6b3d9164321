//! Interface of all signals: the sending and the waiting half.

use super::numbers::SignalSet;
use std::time::{Duration, Instant};

/// The sending half, bound to one signal of one waiter.
pub trait Signal: Clone + Send + Sync {
    /// Sends the signal. The waiter that takes it sees everything that the caller did before.
    fn signal(&self);
}

/// The waiting half, used by one thread.
pub trait Signals {
    /// Sending half of this waiter.
    type Signal: Signal;

    /// Number of signals; they are numbered from 0.
    const COUNT: usize;

    /// A sender of the signal `number`.
    ///
    /// # Errors
    /// If there is no such signal here.
    fn bind(&self, number: usize) -> Result<Self::Signal, NoSuchSignal>;

    /// Takes the pending signals; never blocks.
    fn check(&mut self) -> SignalSet;

    /// Takes the pending signals, or waits for some, at most `limit` (for ever with
    /// [`Duration::MAX`]). Empty if the time is up.
    fn poll(&mut self, limit: Duration) -> SignalSet;
}

/// A signal number beyond those of the waiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no signal {number}: this waiter knows 0 to {last}", last = .count - 1)]
pub struct NoSuchSignal {
    number: usize,
    count: usize,
}

impl NoSuchSignal {
    /// Checks that `number` is one of `count` signals.
    pub(super) fn check(number: usize, count: usize) -> Result<(), Self> {
        if number < count { Ok(()) } else { Err(Self { number, count }) }
    }
}

/// Deadline of a wait; reads the clock only if there is a limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(Option<Instant>);

impl Deadline {
    pub(crate) fn after(limit: Duration) -> Self {
        let unlimited = limit == Duration::MAX;
        Self(if unlimited { None } else { Instant::now().checked_add(limit) })
    }

    /// Remaining time: zero when it is up, `None` without a limit.
    pub(crate) fn left(self) -> Option<Duration> {
        self.0.map(|until| until.saturating_duration_since(Instant::now()))
    }

    pub(crate) fn is_over(self) -> bool {
        self.left() == Some(Duration::ZERO)
    }
}

/// Makes the system call that wakes a sleeper.
#[cold]
pub(super) fn wake_up<R>(wake: impl FnOnce() -> R) {
    #[cfg(test)]
    WAKES.set(WAKES.get() + 1);
    wake();
}

#[cfg(test)]
std::thread_local! {
    /// Wake-up calls of this thread.
    pub(crate) static WAKES: core::cell::Cell<u32> = const { core::cell::Cell::new(0) };
}
