//! Waits between attempts to connect.

use crate::settings::Reconnect;
use std::time::Duration;

/// Exponential back-off with jitter over half of the wait.
#[derive(Debug)]
pub(crate) struct Backoff {
    rounds: u32,
    state: u64,
}

impl Backoff {
    pub(crate) fn new(seed: u64) -> Self {
        Self { rounds: 0, state: seed | 1 }
    }

    /// Starts again with the shortest wait, after a connection that lasted.
    pub(crate) fn reset(&mut self) {
        self.rounds = 0;
    }

    pub(crate) fn next(&mut self, reconnect: Reconnect) -> Duration {
        let factor = 1_u32.checked_shl(self.rounds).unwrap_or(u32::MAX);
        self.rounds = self.rounds.saturating_add(1);
        let whole = reconnect.delay_min.saturating_mul(factor).min(reconnect.delay_max);
        whole.mul_f64(0.5 + self.random() / 2.0)
    }

    /// A random number from 0 to 1, by xorshift64 (Marsaglia 2003).
    fn random(&mut self) -> f64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delay_grows_to_its_limit_and_differs_between_clients() {
        let (delay_min, delay_max) = (Duration::from_millis(100), Duration::from_secs(1));
        let reconnect = Reconnect { delay_min, delay_max };
        let mut backoff = Backoff::new(7);
        for whole in [100, 200, 400, 800, 1_000, 1_000] {
            let whole = Duration::from_millis(whole);
            let drawn = backoff.next(reconnect);
            assert!(drawn >= whole / 2 && drawn <= whole, "{drawn:?} of {whole:?}");
        }
        let first = |seed| Backoff::new(seed).next(reconnect);
        assert_ne!(first(0x9e37_79b9_7f4a_7c15), first(0xd1b5_4a32_d192_ed03));
        backoff.rounds = u32::MAX;
        assert!(backoff.next(reconnect) <= delay_max);
        backoff.reset();
        assert!(backoff.next(reconnect) <= delay_min);
    }
}
