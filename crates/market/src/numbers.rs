//! Numbers that look random and are the same each time.

/// A small generator (Vigna, splitmix64).
#[derive(Clone, Debug)]
pub struct Numbers(u64);

impl Numbers {
    /// Numbers that depend on `seed` only.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number, less than `below`, which is not 0.
    pub const fn below(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % below
    }

    /// A number less than `below` that is rather small: the lower half comes 7 times in 10.
    pub const fn rather_small(&mut self, below: u64) -> u64 {
        let part = self.below(1 << 20);
        (((part * part) >> 20) * below) >> 20
    }
}
