//! How much may be sent.

use crate::{Nanos, SECOND};

/// Limits the rates of names and of bytes; what is over the limit waits.
#[derive(Debug)]
pub(super) struct Budget {
    names: Bucket,
    bytes: Bucket,
}

impl Budget {
    /// At most `burst_bytes` at once, and as many names as go with them.
    pub(super) fn new(names_rate: u64, bytes_rate: u64, burst_bytes: u64) -> Self {
        let burst = cost(burst_bytes, bytes_rate);
        Self { names: Bucket::new(names_rate, burst), bytes: Bucket::new(bytes_rate, burst) }
    }

    /// From when on a frame may be sent.
    pub(super) fn ready(&self) -> Nanos {
        self.names.ready().max(self.bytes.ready())
    }

    /// A frame is sent.
    pub(super) fn spend(&mut self, now: Nanos, names: usize, bytes: usize) {
        self.names.spend(now, names);
        self.bytes.spend(now, bytes);
    }
}

/// A token bucket, kept as the time when it will be full again.
#[derive(Debug)]
struct Bucket {
    rate: u64,
    burst: Nanos,
    full: Nanos,
}

impl Bucket {
    const fn new(rate: u64, burst: Nanos) -> Self {
        Self { rate, burst, full: 0 }
    }

    const fn ready(&self) -> Nanos {
        self.full.saturating_sub(self.burst)
    }

    fn spend(&mut self, now: Nanos, units: usize) {
        self.full = self.full.max(now).saturating_add(cost(units as u64, self.rate));
    }
}

/// The time that so many units take.
fn cost(units: u64, rate: u64) -> Nanos {
    units.saturating_mul(SECOND) / rate.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MILLISECOND;

    #[test]
    fn a_burst_passes_and_then_the_rate_holds() {
        let mut budget = Budget::new(u64::MAX, 1_000_000, 10_000);
        let mut now = 5 * SECOND;
        let (mut sent, end) = (0, now + SECOND);
        while now < end {
            while budget.ready() <= now {
                budget.spend(now, 1, 1_000);
                sent += 1_000;
            }
            now += MILLISECOND;
        }
        assert!((1_009_000..=1_012_000).contains(&sent), "{sent}");
    }

    #[test]
    fn names_count_as_well() {
        let mut budget = Budget::new(1_000, 1_000_000, 1_000);
        budget.spend(0, 500, 1);
        assert_eq!(budget.ready(), 499 * MILLISECOND);
    }
}
