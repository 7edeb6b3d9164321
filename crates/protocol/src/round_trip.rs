//! How long a frame takes there and back: the estimator of RFC 6298, in nanoseconds.

use crate::{MICROSECOND, MILLISECOND, Nanos};

/// A smoothed round trip and its variation.
#[derive(Clone, Copy, Debug)]
pub struct RoundTrip {
    smoothed: Nanos,
    variation: Nanos,
    known: bool,
}

impl RoundTrip {
    /// Assumed before there is a sample.
    pub const UNKNOWN: Nanos = 100 * MICROSECOND;
    /// The shortest time to wait for an answer.
    pub const PATIENCE_MIN: Nanos = 50 * MICROSECOND;
    /// The longest time to wait for an answer before asking again.
    pub const PATIENCE_MAX: Nanos = 10 * MILLISECOND;
    /// What the other side's duty cycle may take.
    const SLACK: Nanos = 20 * MICROSECOND;

    /// Nothing is known.
    pub const fn new() -> Self {
        Self { smoothed: Self::UNKNOWN, variation: Self::UNKNOWN / 2, known: false }
    }

    /// Takes one measured round trip into account.
    pub fn note(&mut self, sample: Nanos) {
        if !self.known {
            *self = Self { smoothed: sample, variation: sample / 2, known: true };
            return;
        }
        let deviation = self.smoothed.abs_diff(sample);
        self.variation = self.variation - self.variation / 4 + deviation / 4;
        self.smoothed = self.smoothed - self.smoothed / 8 + sample / 8;
    }

    /// The smoothed round trip.
    pub const fn smoothed(&self) -> Nanos {
        self.smoothed
    }

    /// Whether there has been a sample.
    pub const fn is_known(&self) -> bool {
        self.known
    }

    /// How long to wait for an answer.
    pub fn patience(&self) -> Nanos {
        let wait = self.smoothed.saturating_add(self.variation.saturating_mul(4));
        wait.saturating_add(Self::SLACK).clamp(Self::PATIENCE_MIN, Self::PATIENCE_MAX)
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
        (0..100).for_each(|_| trip.note(10 * MICROSECOND));
        assert!(trip.smoothed().abs_diff(10 * MICROSECOND) < MICROSECOND);
        assert_eq!(trip.patience(), RoundTrip::PATIENCE_MIN);
        (0..100).for_each(|_| trip.note(SECONDS));
        assert_eq!(trip.patience(), RoundTrip::PATIENCE_MAX);
    }

    const SECONDS: Nanos = 5_000 * MILLISECOND;

    #[test]
    fn absurd_samples_do_no_harm() {
        let mut trip = RoundTrip::new();
        trip.note(u64::MAX);
        trip.note(0);
        trip.note(u64::MAX);
        assert_eq!(trip.patience(), RoundTrip::PATIENCE_MAX);
    }
}
