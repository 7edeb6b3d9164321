//! A receiver's question for messages, and its times: how long it waits for the answer, and how
//! long it pauses after one that brought nothing.

use crate::Nanos;

/// Share of the repetition interval after which a message that was not durable yet is asked for.
const SOON: Nanos = 20;
/// Longest wait for the answer of a slow store, in repetition intervals.
const WAIT_MAX: Nanos = 8;

/// A question for messages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fetch {
    /// The store that was asked last.
    pub(super) store: usize,
    /// The sequence that it was asked for.
    from: u64,
    /// The first sequence that any store was asked for since the last answer.
    oldest: u64,
    asked: Nanos,
    /// When another store is asked.
    pub(super) until: Nanos,
    /// The question was asked before, and not answered in time.
    is_repeated: bool,
}

impl Fetch {
    /// A question to a store for the messages from a sequence on; it repeats one that is
    /// `unanswered`.
    pub(super) fn new(
        (store, from): (usize, u64),
        unanswered: Option<Self>,
        asked: Nanos,
        until: Nanos,
    ) -> Self {
        let oldest = unanswered.map_or(from, |before| before.oldest.min(from));
        Self { store, from, oldest, asked, until, is_repeated: unanswered.is_some() }
    }

    /// Whether an answer to a question for `from` is awaited, from whichever store.
    pub(super) fn awaits(&self, from: u64) -> bool {
        (self.oldest..=self.from).contains(&from)
    }
}

/// Times of a stream's questions, as its stores answer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Patience {
    /// Wait for an answer; 0 before the first one.
    wait: Nanos,
    /// Pause after the last answer that brought nothing.
    pause: Nanos,
}

impl Patience {
    /// The wait for an answer before another store is asked.
    pub(super) fn for_answer(&self, retry: Nanos) -> Nanos {
        self.wait.max(retry)
    }

    /// A question was answered. If that took so long that it was repeated, stores would be asked
    /// for everything twice: the next one may take longer.
    pub(super) fn on_answer(&mut self, question: &Fetch, now: Nanos, retry: Nanos) {
        let wait = self.for_answer(retry);
        if question.is_repeated {
            self.wait = (2 * wait).min(WAIT_MAX * retry);
        } else if now.saturating_sub(question.asked) <= wait / 2 {
            self.wait = wait / 2;
        }
    }

    /// The pause before the next question, which grows as long as answers bring nothing.
    pub(super) fn pause(&mut self, has_advanced: bool, retry: Nanos) -> Nanos {
        let longer = (2 * self.pause).clamp(retry / SOON, retry);
        self.pause = if has_advanced { 0 } else { longer };
        self.pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RETRY: Nanos = 200;

    #[test]
    fn a_question_is_not_repeated_for_ever_to_a_store_that_is_slow() {
        let (mut patience, mut repetitions) = (Patience::default(), 0);
        for _ in 0..10 {
            let mut question = Fetch::new((0, 7), None, 0, 0);
            let mut asked = patience.for_answer(RETRY);
            while asked < 6 * RETRY {
                repetitions += 1;
                question = Fetch::new((0, 7), Some(question), asked, 0);
                asked += patience.for_answer(RETRY);
            }
            patience.on_answer(&question, 6 * RETRY, RETRY);
        }
        assert_eq!(repetitions, 5 + 2 + 1);
        for _ in 0..10 {
            patience.on_answer(&Fetch::new((0, 7), None, 0, 0), RETRY / 10, RETRY);
        }
        assert_eq!(patience.for_answer(RETRY), RETRY, "the store is fast again");
    }

    #[test]
    fn pauses_grow_until_an_answer_brings_messages() {
        let mut patience = Patience::default();
        let mut pause = |has_advanced| patience.pause(has_advanced, RETRY);
        assert_eq!([false; 7].map(&mut pause), [10, 20, 40, 80, 160, 200, 200]);
        assert_eq!([true, false].map(&mut pause), [0, 10]);
    }
}
