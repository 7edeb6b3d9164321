//! Reproducible random numbers.

/// Random number generator (splitmix64, Vigna).
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// A generator that depends on `seed` only.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A random number below `below`, which must not be 0.
    pub const fn below(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % below
    }

    /// A random number below `below`, skewed to small ones: 7 of 10 fall into the lower half.
    pub const fn rather_small(&mut self, below: u64) -> u64 {
        let part = self.below(1 << 20);
        (((part * part) >> 20) * below) >> 20
    }
}
