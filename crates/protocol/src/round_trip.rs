//! How long a frame takes there and back, in nanoseconds: the estimator of RFC 6298, but for one
//! thing. A sample tells the way, and how long nobody looked at the sockets at its end: so what is
//! longer than expected counts for little, and what is shorter for much.

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

    /// Takes one measured round trip into account, up to the longest patience.
    pub fn note(&mut self, sample: Nanos) {
        let sample = sample.min(Self::PATIENCE_MAX);
        if !self.known {
            *self = Self { smoothed: sample, variation: sample / 2, known: true };
            return;
        }
        let sample = sample.min(self.expected());
        if let Some(longer) = sample.checked_sub(self.smoothed) {
            self.variation = self.variation - self.variation / 4 + longer / 4;
            self.smoothed = self.smoothed.saturating_add(longer / 8);
        } else {
            self.variation /= 2;
            self.smoothed = self.smoothed / 2 + sample / 2;
        }
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
        self.expected().clamp(Self::PATIENCE_MIN, Self::PATIENCE_MAX)
    }

    /// Few samples are longer.
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
        (0..100).for_each(|_| trip.note(10 * MICROSECOND));
        assert!(trip.smoothed().abs_diff(10 * MICROSECOND) < MICROSECOND);
        assert_eq!(trip.patience(), RoundTrip::PATIENCE_MIN);
        (0..100).for_each(|_| trip.note(SECONDS));
        assert_eq!(trip.patience(), RoundTrip::PATIENCE_MAX);
    }

    const SECONDS: Nanos = 5_000 * MILLISECOND;

    #[test]
    fn few_samples_of_who_stood_still_change_little_and_a_bad_first_one_is_forgotten() {
        let mut trip = RoundTrip::new();
        trip.note(10 * MILLISECOND);
        (0..20).for_each(|_| trip.note(20 * MICROSECOND));
        assert_eq!(trip.patience(), RoundTrip::PATIENCE_MIN);
        for round in 0..100 {
            trip.note(if round % 4 == 0 { 10 * MILLISECOND } else { 20 * MICROSECOND });
            assert!(trip.patience() < 200 * MICROSECOND, "{trip:?} in round {round}");
        }
        (0..20).for_each(|_| trip.note(10 * MILLISECOND));
        assert_eq!(trip.patience(), RoundTrip::PATIENCE_MAX, "the way has become longer");
    }

    #[test]
    fn absurd_samples_do_no_harm() {
        let mut trip = RoundTrip::new();
        trip.note(u64::MAX);
        trip.note(0);
        trip.note(u64::MAX);
        assert_eq!(trip.patience(), RoundTrip::PATIENCE_MAX);
    }
}
