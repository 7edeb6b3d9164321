//! Token bucket in bytes: limits the data rate, the repairs and the searches of the window.

use crate::{Nanos, SECOND};

/// Bytes per second with room for bursts; one run may drive the level below zero.
#[derive(Debug)]
pub(super) struct TokenBucket {
    rate: u64,
    burst: i64,
    level: i64,
    updated_at: Nanos,
}

impl TokenBucket {
    /// Creates a full bucket; a burst is 2 ms of the rate, at least 64 KiB.
    pub(super) fn new(rate: u64, now: Nanos) -> Self {
        let rate = rate.clamp(1, 1 << 40);
        let burst = (rate as i64 / 500).max(1 << 16);
        Self { rate, burst, level: burst, updated_at: now }
    }

    /// Changes the rate and keeps the burst.
    pub(super) fn set_rate(&mut self, rate: u64) {
        self.rate = rate.clamp(1, 1 << 40);
    }

    /// Refills the bucket; returns whether sending is allowed.
    pub(super) fn is_ready(&mut self, now: Nanos) -> bool {
        // In 128 bits: nanoseconds times bytes per second soon overflow 64 bits.
        let passed = u128::from(now.saturating_sub(self.updated_at));
        let added = passed * u128::from(self.rate) / u128::from(SECOND);
        // Less than a token keeps the old time: frequent calls must not lose fractions.
        if added > 0 {
            let added = added.min(1 << 50) as i64;
            self.level = self.level.saturating_add(added).min(self.burst);
            self.updated_at = now;
        }
        // One token is enough: a run goes out whole, and the debt delays the next one.
        self.level > 0
    }

    /// Whether sending has to wait.
    pub(super) const fn is_spent(&self) -> bool {
        self.level <= 0
    }

    /// Whether the whole burst is available.
    pub(super) const fn is_full(&self) -> bool {
        self.level >= self.burst
    }

    /// Whether half of the burst is available.
    pub(super) const fn is_half_full(&self) -> bool {
        self.level >= self.burst / 2
    }

    /// Takes the tokens of `bytes` sent.
    pub(super) const fn take(&mut self, bytes: usize) {
        self.level -= bytes as i64;
    }

    /// Time from which sending is allowed.
    pub(super) fn ready_at(&self) -> Nanos {
        // Rounded up below: a wake-up just before would find nothing.
        let missing = (1 - self.level).max(0) as u128;
        let wait = (missing * u128::from(SECOND)).div_ceil(u128::from(self.rate));
        self.updated_at.saturating_add(wait.min(u128::from(u64::MAX)) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_keeps_its_rate_and_says_when() {
        let mut bucket = TokenBucket::new(1_000_000, 0);
        let (mut now, mut sent) = (0, 0usize);
        while now < SECOND {
            if bucket.is_ready(now) {
                bucket.take(1_000);
                sent += 1_000;
            } else {
                assert!(bucket.ready_at() > now);
                now = bucket.ready_at();
            }
        }
        assert!((1_000_000..=1_000_000 + (1 << 16) + 2_000).contains(&sent), "{sent}");
        assert!(TokenBucket::new(u64::MAX, 0).is_ready(u64::MAX));
    }
}
