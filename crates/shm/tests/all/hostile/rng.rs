//! Random numbers from a seed.

use std::time::SystemTime;

/// A small generator (xorshift).
pub(crate) struct Rng(u64);

impl Rng {
    /// Seeds from the environment, or from the clock; prints the seed.
    pub(crate) fn new() -> Self {
        let clock = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok());
        let seed: u64 =
            seed.unwrap_or_else(|| clock().map_or(1, |time| time.as_nanos() as u64)) | 1;
        println!("SEED={seed}");
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// A word that is often at an edge.
    pub(crate) fn word(&mut self) -> u64 {
        match self.below(6) {
            0 => 0,
            1 => u64::MAX,
            2 => 1 << self.below(64),
            3 => self.next() & 0xffff,
            4 => u64::MAX - (self.next() & 0xffff),
            _ => self.next(),
        }
    }

    /// Spoils up to eight places of `bytes`: bits, bytes or aligned words.
    pub(crate) fn spoil(&mut self, bytes: &mut [u8]) {
        for _ in 0..=self.below(8) {
            let at = self.below(bytes.len());
            match self.below(3) {
                0 => bytes[at] ^= 1 << self.below(8),
                1 => bytes[at] = self.next() as u8,
                _ => {
                    let at = (at & !7).min(bytes.len() - 8);
                    let word = self.word();
                    bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
                }
            }
        }
    }
}
