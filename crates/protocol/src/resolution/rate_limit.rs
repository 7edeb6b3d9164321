//! Rate limit of a resolver: names and bytes per second.

use crate::{Nanos, SECOND};

/// Limits of names and of bytes; a frame waits for both.
#[derive(Debug)]
pub(super) struct RateLimit {
    names: TokenBucket,
    bytes: TokenBucket,
}

impl RateLimit {
    /// Creates limits with bursts of `burst_bytes` and, for names, of the same duration.
    pub(super) fn new(names_rate: u64, bytes_rate: u64, burst_bytes: u64) -> Self {
        let burst = cost(burst_bytes, bytes_rate);
        Self {
            names: TokenBucket::new(names_rate, burst),
            bytes: TokenBucket::new(bytes_rate, burst),
        }
    }

    /// Time from which a frame may be sent.
    pub(super) fn ready(&self) -> Nanos {
        self.names.ready().max(self.bytes.ready())
    }

    /// Accounts for a sent frame.
    pub(super) fn spend(&mut self, now: Nanos, names: usize, bytes: usize) {
        self.names.spend(now, names);
        self.bytes.spend(now, bytes);
    }
}

/// Token bucket, stored as the time when it will be full again: no refill step is necessary.
#[derive(Debug)]
struct TokenBucket {
    rate: u64,
    burst: Nanos,
    full: Nanos,
}

impl TokenBucket {
    const fn new(rate: u64, burst: Nanos) -> Self {
        Self { rate, burst, full: 0 }
    }

    const fn ready(&self) -> Nanos {
        self.full.saturating_sub(self.burst)
    }

    fn spend(&mut self, now: Nanos, units: usize) {
        // One time instead of level and refill: the bucket is full again then.
        self.full = self.full.max(now).saturating_add(cost(units as u64, self.rate));
    }
}

/// Time that `units` take at `rate`.
fn cost(units: u64, rate: u64) -> Nanos {
    units.saturating_mul(SECOND) / rate.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MILLISECOND;

    #[test]
    fn a_burst_passes_and_then_the_rate_holds() {
        let mut limit = RateLimit::new(u64::MAX, 1_000_000, 10_000);
        let mut now = 5 * SECOND;
        let (mut sent, end) = (0, now + SECOND);
        while now < end {
            while limit.ready() <= now {
                limit.spend(now, 1, 1_000);
                sent += 1_000;
            }
            now += MILLISECOND;
        }
        assert!((1_009_000..=1_012_000).contains(&sent), "{sent}");
    }

    #[test]
    fn names_count_as_well() {
        let mut limit = RateLimit::new(1_000, 1_000_000, 1_000);
        limit.spend(0, 500, 1);
        assert_eq!(limit.ready(), 499 * MILLISECOND);
    }
}
