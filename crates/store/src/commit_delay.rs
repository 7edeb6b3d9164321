//! Time for which messages that keep coming are gathered before they are written.

use lanecast_persistence::Nanos;
use std::time::Duration;

/// Messages of a poll beyond which they are written at once: there are many to each write anyway.
pub(crate) const MANY: usize = 64;
/// Pause between two polls while messages keep coming and no publisher waits.
const LOOK: Duration = Duration::from_micros(250);

/// Decides after each poll whether its messages are written now.
///
/// A write, its synchronization and the answers to publishers cost the same for one message and for
/// fifty. But a publisher may send no more until it has the answer: it has as many messages in
/// flight as it wants, or waits for each. The store learns that from silence: if no message came
/// while some were held, publishers may stop at so many, and from half as many on nothing is held
/// any more. More unstable messages than that prove the opposite.
///
/// PostgreSQL's `commit_delay` does the same for transactions, by a fixed time.
#[derive(Debug)]
pub(crate) struct CommitDelay {
    longest: Nanos,
    /// Time since which messages have been held.
    since: Option<Nanos>,
    /// Unstable messages at which publishers may stop.
    stalled_at: u64,
    /// Polls in a row that have found messages.
    polls: u32,
}

impl CommitDelay {
    pub(crate) fn new(longest: Duration) -> Self {
        let longest = Nanos::try_from(longest.as_nanos()).unwrap_or(Nanos::MAX);
        Self { longest, since: None, stalled_at: u64::MAX, polls: 0 }
    }

    /// Whether the messages of a poll are held: it has found so many, and so many are unstable.
    pub(crate) fn holds(&mut self, found: usize, unstable: u64, now: Nanos) -> bool {
        if unstable > self.stalled_at {
            self.stalled_at = u64::MAX;
        }
        // As many as filled the pause may be all that a publisher sends before it waits.
        if found > MANY || found == 0 && self.since.is_some() {
            self.stalled_at = unstable;
        }
        if found > MANY || found == 0 {
            (self.since, self.polls) = (None, 0);
            return false;
        }
        self.polls = self.polls.saturating_add(1);
        let is_early = self.since.is_none_or(|since| now < since.saturating_add(self.longest));
        let holds = is_early && self.is_flowing(unstable);
        self.since = holds.then(|| self.since.unwrap_or(now));
        holds
    }

    /// Pause before the next poll if messages keep coming, and no publisher waits although so many
    /// are unstable.
    pub(crate) fn pause(&self, unstable: u64) -> Option<Duration> {
        self.is_flowing(unstable).then(|| LOOK.min(Duration::from_nanos(self.longest)))
    }

    const fn is_flowing(&self, unstable: u64) -> bool {
        self.polls > 1 && self.longest > 0 && unstable < self.stalled_at / 2
    }

    /// Messages were written for another reason than a poll's.
    pub(crate) const fn written(&mut self) {
        self.since = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Time between two polls: a tenth of the longest delay.
    const STEP: Nanos = 100_000;

    fn delay() -> CommitDelay {
        CommitDelay::new(Duration::from_nanos(10 * STEP))
    }

    /// Polls that each find `found` messages, of which none becomes stable; whether they are held.
    fn polls(delay: &mut CommitDelay, found: usize, count: u64) -> Vec<bool> {
        let holds = |poll| delay.holds(found, poll * found as u64, poll * STEP);
        (1..=count).map(holds).collect()
    }

    #[test]
    fn messages_that_keep_coming_are_held_for_the_longest_time() {
        let held = polls(&mut delay(), 5, 13);
        assert!(!held[0], "the first one may be the only one");
        assert_eq!(held[1..11], [true; 10]);
        assert_eq!(held[11..], [false, true], "and again");
        let mut none = CommitDelay::new(Duration::ZERO);
        assert_eq!((polls(&mut none, 5, 13), none.pause(0)), (vec![false; 13], None));
    }

    #[test]
    fn a_message_that_its_publisher_waits_for_is_not_held() {
        let mut delay = delay();
        for poll in 0..100 {
            let found = usize::from(poll % 2 == 0);
            assert!(!delay.holds(found, 1, poll * STEP), "{poll}");
            assert_eq!(delay.pause(1), None, "{poll}");
        }
    }

    #[test]
    fn nothing_is_held_of_publishers_that_stopped_until_they_send_more() {
        let mut delay = delay();
        assert_eq!(polls(&mut delay, 5, 2), [false, true]);
        assert_eq!(delay.pause(10), Some(LOOK));
        assert!(!delay.holds(0, 10, 0), "silence");
        assert_eq!(delay.pause(10), None);
        assert_eq!(polls(&mut delay, 5, 2), [false, false], "ten again, and no word");
        assert!(!delay.holds(0, 10, 0));
        assert_eq!(polls(&mut delay, 2, 3), [false, true, false], "less than half of ten");
        assert!(delay.holds(2, 11, 0), "more than ten: they do not stop there");
    }

    #[test]
    fn many_messages_are_written_at_once() {
        let mut delay = delay();
        assert_eq!(polls(&mut delay, MANY + 1, 5), [false; 5]);
        let unstable = 5 * (MANY as u64 + 1);
        assert!(!delay.holds(1, unstable, 0), "after a pause they begin anew");
        assert!(!delay.holds(1, unstable, 0), "they may stop at so many");
        assert!(delay.holds(1, unstable + 1, 0));
    }

    #[test]
    fn the_time_begins_anew_when_messages_were_written() {
        let mut delay = delay();
        assert_eq!(polls(&mut delay, 1, 2), [false, true]);
        delay.written();
        assert!(delay.holds(1, 3, 20 * STEP));
        assert!(!delay.holds(1, 3, 30 * STEP));
    }
}
