//! Words for a user whose command waits longer than expected, for subscribers or for room.

use std::time::{Duration, Instant};

/// Time after which a wait is explained: programs that find each other have done so by then.
const PATIENCE: Duration = Duration::from_secs(2);

/// A wait of a command, which is explained once if it lasts.
#[derive(Debug)]
pub(crate) struct LongWait {
    /// When it is explained; `None` afterwards.
    due: Option<Instant>,
}

impl LongWait {
    /// A wait that begins now.
    pub(crate) fn begin() -> Self {
        Self { due: Some(Instant::now() + PATIENCE) }
    }

    /// Tells the user `words`, the first time that the wait has lasted for long.
    pub(crate) fn explain(&mut self, words: impl FnOnce() -> String) {
        if self.take_due(Instant::now()) {
            crate::output::warn(&words());
        }
    }

    /// Whether the wait is to be explained at `now`; true once.
    fn take_due(&mut self, now: Instant) -> bool {
        self.due.take_if(|due| now >= *due).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_that_lasts_is_explained_once() {
        let mut wait = LongWait::begin();
        let begin = Instant::now();
        assert!(!wait.take_due(begin));
        assert!(wait.take_due(begin + PATIENCE));
        assert!(!wait.take_due(begin + 2 * PATIENCE));
    }
}
