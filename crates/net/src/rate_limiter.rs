//! Token bucket: a rate of events that others cause, and how many may come at once.
//!
//! Owned by what it limits: joins of a subscriber, TLS handshakes of an address.

use lanecast_protocol::{Nanos, SECOND};

/// At most `rate` events a second, and `burst` at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RateLimiter {
    rate: u64,
    burst: u64,
    tokens: u64,
    refilled: Nanos,
}

impl RateLimiter {
    /// A full bucket; `rate` is not 0.
    pub(crate) const fn new(rate: u64, burst: u64, now: Nanos) -> Self {
        Self { rate, burst, tokens: burst, refilled: now }
    }

    /// Takes a token; false if there is none.
    pub(crate) fn take(&mut self, now: Nanos) -> bool {
        let step = SECOND / self.rate;
        let steps = now.saturating_sub(self.refilled) / step;
        if steps > 0 {
            self.tokens = self.tokens.saturating_add(steps).min(self.burst);
            // Whole steps only: the rest of the interval counts towards the next token.
            self.refilled = self.refilled.saturating_add(steps * step);
        }
        let taken = self.tokens > 0;
        self.tokens -= u64::from(taken);
        taken
    }

    /// Time of the last token that came by itself.
    pub(crate) const fn refilled(&self) -> Nanos {
        self.refilled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_come_at_their_rate_and_gather_up_to_the_burst() {
        let mut limiter = RateLimiter::new(500, 128, 0);
        let taken = (0..1_000).filter(|_| limiter.take(SECOND)).count();
        assert_eq!(taken, 128);
        let mut taken = 0;
        for step in 0..2_000 {
            taken += u64::from(limiter.take(SECOND + step * SECOND / 1_000));
        }
        assert!((998..=1_000).contains(&taken), "{taken}");
    }
}
