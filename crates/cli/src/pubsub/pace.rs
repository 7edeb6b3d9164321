//! At most so many messages per second, evenly spaced.

use std::time::{Duration, Instant};

/// After a pause, at most the messages of so long a time follow at once: enough to make up for
/// a sleep that took longer than asked for, too little for a burst.
const SLACK: Duration = Duration::from_millis(10);

/// When the next message may go.
#[derive(Debug)]
pub(crate) struct Pace {
    interval: Duration,
    due: Instant,
}

impl Pace {
    /// The first message may go `now`.
    pub(crate) fn new(per_second: u64, now: Instant) -> Self {
        Self { interval: Duration::from_secs(1) / per_second.clamp(1, 1 << 31) as u32, due: now }
    }

    /// Time until the next message is due; `None` if it is due now.
    pub(crate) fn wait(&self, now: Instant) -> Option<Duration> {
        self.due.checked_duration_since(now).filter(|left| !left.is_zero())
    }

    /// Notes that a message went.
    pub(crate) fn sent(&mut self, now: Instant) {
        let due = self.due + self.interval;
        self.due = now.checked_sub(SLACK).map_or(due, |earliest| due.max(earliest));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of messages released together at `now`.
    fn burst(pace: &mut Pace, now: Instant) -> u32 {
        let mut count = 0;
        while pace.wait(now).is_none() {
            pace.sent(now);
            count += 1;
        }
        count
    }

    #[test]
    fn messages_are_evenly_spaced_and_late_ones_catch_up() {
        let start = Instant::now() + Duration::from_secs(1);
        let mut pace = Pace::new(1000, start);
        let at = |ms| start + Duration::from_millis(ms);
        assert_eq!([0, 0, 1, 2, 6].map(|ms| burst(&mut pace, at(ms))), [1, 0, 1, 1, 4]);
    }

    #[test]
    fn a_pause_is_not_made_up_for() {
        let start = Instant::now() + Duration::from_secs(1);
        let mut pace = Pace::new(1000, start);
        assert_eq!(burst(&mut pace, start), 1);
        let count = burst(&mut pace, start + Duration::from_secs(3600));
        assert!(count <= 12, "{count} at once");
    }
}
