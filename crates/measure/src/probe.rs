//! Probe of interruptions: reads the clock back to back and keeps the longest gap.

use lanecast_base::clock::Clock;

/// Readings of a glance: some hundred nanoseconds.
const GLANCE: u32 = 16;
/// Duration of a look. A longer one would delay the measurement or its result.
const LOOK_NS: u64 = 5_000_000;
/// Most glances of a look, in case the clock stands still.
const MOST_GLANCES: u32 = 1 << 20;

/// Keeps the longest gap between clock readings.
#[derive(Clone, Debug)]
pub(crate) struct Probe {
    clock: Clock,
    longest_ns: Option<u64>,
}

impl Probe {
    pub(crate) const fn new(clock: Clock) -> Self {
        Self { clock, longest_ns: None }
    }

    /// The longest gap so far; none if nothing was watched.
    pub(crate) const fn longest_ns(&self) -> Option<u64> {
        self.longest_ns
    }

    /// Adds a gap measured elsewhere.
    pub(crate) fn note(&mut self, gap_ns: Option<u64>) {
        self.longest_ns = self.longest_ns.max(gap_ns);
    }

    /// Watches for an instant; gives the last reading.
    pub(crate) fn glance(&mut self) -> u64 {
        let (mut last, mut longest) = (self.clock.ticks(), 0);
        for _ in 0..GLANCE {
            let now = self.clock.ticks();
            longest = longest.max(now.saturating_sub(last));
            last = now;
        }
        self.note(Some(self.clock.ns(longest)));
        last
    }

    /// Watches for some milliseconds.
    pub(crate) fn look(&mut self) {
        let end = self.clock.ticks().saturating_add(self.clock.from_ns(LOOK_NS));
        let mut last = None;
        for _ in 0..MOST_GLANCES {
            let start = self.clock.ticks();
            // A glance's end and the next one's beginning are a gap, too.
            let between = last.map(|last| self.clock.ns(start.saturating_sub(last)));
            self.note(between);
            let now = self.glance();
            if now >= end {
                return;
            }
            last = Some(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    thread_local! {
        static NOW: Cell<u64> = const { Cell::new(0) };
        static STEP: Cell<u64> = const { Cell::new(20) };
    }

    /// Held up once for 3 ms, at 1 ms.
    fn read() -> u64 {
        let now = NOW.get() + STEP.get();
        NOW.set(if (1_000_000..4_000_000).contains(&now) { 4_000_000 } else { now });
        NOW.get()
    }

    #[test]
    fn the_longest_gap_of_a_look_is_found() {
        let mut probe = Probe::new(Clock::simulated(read));
        assert_eq!(probe.longest_ns(), None);
        probe.glance();
        assert_eq!(probe.longest_ns(), Some(20));
        probe.look();
        let found = probe.longest_ns().unwrap();
        assert!((2_999_900..=3_000_100).contains(&found), "{found}");
        assert!((5_000_000..6_000_000).contains(&NOW.get()), "{}", NOW.get());
        probe.note(Some(7_000_000));
        assert_eq!(probe.longest_ns(), Some(7_000_000));
    }

    #[test]
    fn a_clock_that_stands_still_ends_a_look() {
        STEP.set(0);
        let mut probe = Probe::new(Clock::simulated(read));
        probe.look();
        assert_eq!(probe.longest_ns(), Some(0));
    }
}
