//! Silence of a store, as the end that asks it counts it.

use crate::Nanos;

/// Requests without an answer until a store counts as lost.
const UNANSWERED_MAX: u64 = 10;

/// Requests of one store since its last answer.
///
/// Only requests count, not the time since an answer: a program that polls rarely asks rarely, and
/// its store has nothing to answer meanwhile.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Silence {
    unanswered: u64,
    /// Time of the first of them.
    since: Nanos,
}

impl Silence {
    /// The store was asked.
    pub(crate) const fn on_request(&mut self, now: Nanos) {
        if self.unanswered == 0 {
            self.since = now;
        }
        self.unanswered += 1;
    }

    /// The store has answered.
    pub(crate) const fn on_answer(&mut self) {
        self.unanswered = 0;
    }

    /// Requests since the last answer.
    pub(crate) const fn unanswered(&self) -> u64 {
        self.unanswered
    }

    /// Whether the store counts as lost, with requests that are repeated after `retry`. Requests
    /// that follow each other faster leave it the same time.
    pub(crate) const fn is_loss(&self, now: Nanos, retry: Nanos) -> bool {
        self.unanswered > UNANSWERED_MAX && now.saturating_sub(self.since) >= UNANSWERED_MAX * retry
    }
}
