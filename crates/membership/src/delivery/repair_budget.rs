//! Limits the bytes that a member spends on repairs.

use crate::Nanos;

/// Bytes per second.
const RATE: u64 = 64 << 20;
/// Most bytes at once.
const BURST: i64 = 512 << 10;

/// Token bucket: many members that ask at once do not make a member neglect its own stream.
#[derive(Clone, Debug)]
pub(crate) struct RepairBudget {
    /// Below zero: the last frame was longer than what was left.
    bytes: i64,
    filled: Nanos,
}

impl RepairBudget {
    pub(crate) const fn new() -> Self {
        Self { bytes: BURST, filled: 0 }
    }

    /// Takes `length` bytes, if there are any at all.
    pub(crate) fn take(&mut self, now: Nanos, length: usize) -> bool {
        let passed = now.saturating_sub(self.filled).min(1_000_000_000);
        let gained = passed * RATE / 1_000_000_000;
        if gained > 0 {
            self.bytes = self.bytes.saturating_add(gained as i64).min(BURST);
            self.filled = now;
        }
        // The last one may overdraw, so that a frame longer than the burst passes too; the next
        // ones wait until that is paid back.
        let granted = self.bytes > 0;
        if granted {
            self.bytes -= length as i64;
        }
        granted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_then_the_rate() {
        let mut budget = RepairBudget::new();
        let taken = |budget: &mut RepairBudget, now| {
            (0..9_999).take_while(|_| budget.take(now, 1024)).count()
        };
        assert_eq!(taken(&mut budget, 1), 512);
        assert_eq!(taken(&mut budget, 1), 0);
        assert_eq!(taken(&mut budget, 1_000_001), 66, "64 MiB/s for one millisecond");
        assert_eq!(taken(&mut budget, 60_000_000_000), 512);
    }

    #[test]
    fn frames_asked_for_one_by_one_keep_to_the_rate() {
        let mut budget = RepairBudget::new();
        // A poll every 5 µs, each with one frame to repair.
        let times = (0..200_000_u64).map(|poll| poll * 5_000);
        let bytes = times.filter(|now| budget.take(*now, 1_400)).count() as u64 * 1_400;
        assert!((RATE..RATE + BURST as u64 + 1_400).contains(&bytes), "{bytes} in a second");
    }
}
