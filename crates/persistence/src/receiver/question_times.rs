//! When a receiver asks its stores for the streams of the topic.

use crate::Nanos;

/// Share of the repetition interval after which stores are asked for a session that is new.
const SOON: Nanos = 20;

/// Times of the questions for streams.
#[derive(Clone, Debug)]
pub(super) struct QuestionTimes {
    retry: Nanos,
    /// The next one.
    pub(super) at: Nanos,
    /// The last one.
    asked: Nanos,
    /// The question whose answers have decided too little last, and the pause after it.
    undecided: (u64, Nanos),
}

impl QuestionTimes {
    /// Questions that are repeated after `retry`.
    pub(super) const fn new(retry: Nanos, now: Nanos) -> Self {
        Self { retry, at: now, asked: 0, undecided: (0, 0) }
    }

    /// A question was asked.
    pub(super) const fn on_asked(&mut self, now: Nanos) {
        (self.asked, self.at) = (now, now + self.retry);
    }

    /// There is something new to ask for.
    pub(super) fn ask_soon(&mut self) {
        self.at = self.at.min(self.asked + self.retry / SOON);
    }

    /// A session is new, and waits to be named.
    pub(super) fn ask_for_session(&mut self) {
        self.undecided = (0, 0);
        self.ask_soon();
    }

    /// The answers to the question `token` have decided too little: asks again, each time after a
    /// longer pause. A store that has to say more may be away.
    pub(super) fn ask_again(&mut self, token: u64) {
        let (before, pause) = self.undecided;
        if before != token {
            self.undecided = (token, (2 * pause).clamp(self.retry / SOON, self.retry));
        }
        self.at = self.at.min(self.asked + self.undecided.1);
    }
}
