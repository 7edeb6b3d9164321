//! Timer of heartbeats: soon after the last data, then at growing intervals.

use crate::Nanos;

/// Time of the next heartbeat.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeartbeatTimer {
    pub(super) due: Nanos,
    interval: Nanos,
}

impl HeartbeatTimer {
    /// Starts with a heartbeat after `first`.
    pub(super) const fn new(now: Nanos, first: Nanos) -> Self {
        Self { due: now.saturating_add(first), interval: first }
    }

    /// The same timer with a heartbeat due at once.
    pub(super) const fn at_once(self, now: Nanos) -> Self {
        Self { due: now, ..self }
    }

    /// Whether a heartbeat is due. Doubles the interval up to `longest` if so.
    pub(super) fn is_due(&mut self, now: Nanos, longest: Nanos) -> bool {
        let due = now >= self.due;
        if due {
            // Doubling: soon after data a lost tail is noticed, and a long silence costs little.
            self.interval = self.interval.saturating_mul(2).min(longest);
            self.due = now.saturating_add(self.interval);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_double_up_to_the_longest() {
        let mut timer = HeartbeatTimer::new(0, 100);
        let times: Vec<Nanos> = (0..2_000).filter(|now| timer.is_due(*now, 500)).collect();
        assert_eq!(times, [100, 300, 700, 1_200, 1_700]);
    }
}
