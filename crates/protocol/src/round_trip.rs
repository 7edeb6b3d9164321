//! Round trip estimator: that of RFC 6298, except for outliers. A sample includes the time until
//! the peer polls its socket, so longer samples than expected count for little, and shorter ones
//! for much.

use crate::{MICROSECOND, MILLISECOND, Nanos};

/// Smoothed round trip and its variation.
#[derive(Clone, Copy, Debug)]
pub struct RoundTrip {
    smoothed: Nanos,
    variation: Nanos,
    known: bool,
}

impl RoundTrip {
    /// Assumption without a sample.
    pub const UNKNOWN: Nanos = 100 * MICROSECOND;
    /// Shortest wait for an answer.
    pub const PATIENCE_MIN: Nanos = 50 * MICROSECOND;
    /// Longest wait for an answer.
    pub const PATIENCE_MAX: Nanos = 10 * MILLISECOND;
    /// Allowance for the peer's polling interval.
    const SLACK: Nanos = 20 * MICROSECOND;

    /// Creates an estimator without samples.
    pub const fn new() -> Self {
        Self { smoothed: Self::UNKNOWN, variation: Self::UNKNOWN / 2, known: false }
    }

    /// Adds a sample, capped at the longest wait.
    pub fn add(&mut self, sample: Nanos) {
        // Bounded: one absurd sample must not spoil the estimate.
        let sample = sample.min(Self::PATIENCE_MAX);
        if !self.known {
            *self = Self { smoothed: sample, variation: sample / 2, known: true };
            return;
        }
        // An outlier counts as the longest expected one: the peer was late, not the path.
        let sample = sample.min(self.expected());
        if let Some(longer) = sample.checked_sub(self.smoothed) {
            self.variation = self.variation - self.variation / 4 + longer / 4;
            self.smoothed = self.smoothed.saturating_add(longer / 8);
        } else {
            // Closer to the true round trip: halve the distance at once.
            self.variation /= 2;
            self.smoothed = self.smoothed / 2 + sample / 2;
        }
    }

    /// Smoothed round trip.
    pub const fn smoothed(&self) -> Nanos {
        self.smoothed
    }

    /// Whether there was a sample.
    pub const fn is_known(&self) -> bool {
        self.known
    }

    /// Time to wait for an answer.
    pub fn patience(&self) -> Nanos {
        self.expected().clamp(Self::PATIENCE_MIN, Self::PATIENCE_MAX)
    }

    /// Time that few samples exceed.
    fn expected(&self) -> Nanos {
        let wait = self.smoothed.saturating_add(self.variation.saturating_mul(4));
        wait.saturating_add(Self::SLACK)
    }
}

impl Default for RoundTrip {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_follows_the_samples() {
        let mut trip = RoundTrip::new();
        assert!(!trip.is_known());
        (0..100).for_each(|_| trip.add(10 * MICROSECOND));
        assert!(trip.smoothed().abs_diff(10 * MICROSECOND) < MICROSECOND);
        assert_eq!(trip.patience(), RoundTrip::PATIENCE_MIN);
        (0..100).for_each(|_| trip.add(SECONDS));
        assert_eq!(trip.patience(), RoundTrip::PATIENCE_MAX);
    }

    const SECONDS: Nanos = 5_000 * MILLISECOND;

    #[test]
    fn outliers_change_little_and_a_bad_first_sample_is_forgotten() {
        let mut trip = RoundTrip::new();
        trip.add(10 * MILLISECOND);
        (0..20).for_each(|_| trip.add(20 * MICROSECOND));
        assert_eq!(trip.patience(), RoundTrip::PATIENCE_MIN);
        for round in 0..100 {
            trip.add(if round % 4 == 0 { 10 * MILLISECOND } else { 20 * MICROSECOND });
            assert!(trip.patience() < 200 * MICROSECOND, "{trip:?} in round {round}");
        }
        (0..20).for_each(|_| trip.add(10 * MILLISECOND));
        assert_eq!(trip.patience(), RoundTrip::PATIENCE_MAX, "the path has become longer");
    }

    #[test]
    fn extreme_samples_do_no_harm() {
        let mut trip = RoundTrip::new();
        trip.add(u64::MAX);
        trip.add(0);
        trip.add(u64::MAX);
        assert_eq!(trip.patience(), RoundTrip::PATIENCE_MAX);
    }
}
