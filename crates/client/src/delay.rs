//! How long to wait before connecting again.

use crate::settings::Reconnect;
use std::time::Duration;

/// Grows with each round of attempts; a random half is left out.
#[derive(Debug)]
pub(crate) struct Delay {
    rounds: u32,
    chance: u64,
}

impl Delay {
    pub(crate) fn new(seed: u64) -> Self {
        Self { rounds: 0, chance: seed | 1 }
    }

    /// The connection was good for a while: begin anew.
    pub(crate) fn reset(&mut self) {
        self.rounds = 0;
    }

    pub(crate) fn next(&mut self, reconnect: Reconnect) -> Duration {
        let factor = 1_u32.checked_shl(self.rounds).unwrap_or(u32::MAX);
        self.rounds = self.rounds.saturating_add(1);
        let whole = reconnect.delay_min.saturating_mul(factor).min(reconnect.delay_max);
        whole.mul_f64(0.5 + self.draw() / 2.0)
    }

    /// A number from 0 to 1, by xorshift.
    fn draw(&mut self) -> f64 {
        self.chance ^= self.chance << 13;
        self.chance ^= self.chance >> 7;
        self.chance ^= self.chance << 17;
        (self.chance >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_to_its_limit_and_differs_between_clients() {
        let (delay_min, delay_max) = (Duration::from_millis(100), Duration::from_secs(1));
        let reconnect = Reconnect { delay_min, delay_max };
        let mut delay = Delay::new(7);
        for whole in [100, 200, 400, 800, 1_000, 1_000] {
            let whole = Duration::from_millis(whole);
            let drawn = delay.next(reconnect);
            assert!(drawn >= whole / 2 && drawn <= whole, "{drawn:?} of {whole:?}");
        }
        let first = |seed| Delay::new(seed).next(reconnect);
        assert_ne!(first(0x9e37_79b9_7f4a_7c15), first(0xd1b5_4a32_d192_ed03));
        delay.rounds = u32::MAX;
        assert!(delay.next(reconnect) <= delay_max);
        delay.reset();
        assert!(delay.next(reconnect) <= delay_min);
    }
}
