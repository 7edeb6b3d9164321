//! Payloads: a function of session, topic and number, so that every byte can be checked.

use crate::rng::SimRng;
use lanecast_protocol::rng::{Rng, mix};

/// Shortest message that contains its number.
pub const NUMBERED: usize = 8;

/// Lengths of a topic's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// All equal.
    Even(usize),
    /// Uniform, up to this.
    Mixed(usize),
    /// Mostly short, sometimes up to this.
    Rare(usize),
}

/// Payloads of one topic of a session.
#[derive(Clone, Copy, Debug)]
pub struct Payloads {
    seed: u64,
    sizes: Sizes,
}

impl Payloads {
    /// Creates the payloads of a topic.
    pub const fn new(session: u64, topic: u32, sizes: Sizes) -> Self {
        Self { seed: mix(session ^ mix(topic as u64 + 1)), sizes }
    }

    /// Length of message `number`.
    pub fn length(&self, number: u64) -> usize {
        let mut rng = SimRng::new(self.seed ^ mix(number));
        match self.sizes {
            Sizes::Even(length) => length,
            Sizes::Mixed(most) => rng.spread(1..=most as u64 + 1) as usize - 1,
            Sizes::Rare(most) if rng.percent(3) => rng.within(0..=most as u64) as usize,
            Sizes::Rare(most) => rng.within(0..=most.min(200) as u64) as usize,
        }
    }

    /// Writes message `number` into `bytes`.
    pub fn write(&self, number: u64, bytes: &mut [u8]) {
        for (chunk, word) in bytes.chunks_mut(8).zip(self.words(number)) {
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
    }

    /// Whether `bytes` are message `number`.
    pub fn is(&self, number: u64, bytes: &[u8]) -> bool {
        bytes.len() == self.length(number)
            && bytes
                .chunks(8)
                .zip(self.words(number))
                .all(|(chunk, word)| chunk == &word[..chunk.len()])
    }

    /// Number of a message, if it is long enough to contain it.
    pub fn number(bytes: &[u8]) -> Option<u64> {
        bytes.first_chunk::<NUMBERED>().map(|word| u64::from_le_bytes(*word))
    }

    fn words(&self, number: u64) -> impl Iterator<Item = [u8; 8]> {
        let mut chance = Rng::new(self.seed ^ mix(number));
        let rest = std::iter::from_fn(move || Some(chance.next_u64()));
        std::iter::once(number).chain(rest).map(u64::to_le_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_known_by_its_bytes() {
        let speech = Payloads::new(5, 1, Sizes::Mixed(3_000));
        for number in 0..500 {
            let mut bytes = vec![0; speech.length(number)];
            speech.write(number, &mut bytes);
            assert!(speech.is(number, &bytes));
            if bytes.len() < NUMBERED {
                continue;
            }
            assert_eq!(Payloads::number(&bytes), Some(number));
            assert!(!speech.is(number + 1, &bytes));
            assert!(
                !Payloads::new(6, 1, Sizes::Mixed(3_000)).is(number, &bytes) || bytes.len() == 8
            );
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            assert!(!speech.is(number, &bytes));
        }
    }

    #[test]
    fn all_sizes_come_up() {
        let lengths = |sizes| (0..2_000).map(move |n| Payloads::new(1, 0, sizes).length(n));
        assert!(lengths(Sizes::Even(24)).all(|length| length == 24));
        assert!(lengths(Sizes::Mixed(9_000)).any(|length| length == 0));
        assert!(lengths(Sizes::Mixed(9_000)).any(|length| length > 8_000));
        assert!(lengths(Sizes::Rare(9_000)).filter(|length| *length > 200).count() < 100);
    }
}
