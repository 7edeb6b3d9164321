//! Pseudorandom numbers from a seed: SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom
//! number generators, 2014).

/// Generator; the same seed gives the same numbers.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// Creates the generator of `seed`.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Next number.
    pub const fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// Number below `limit`; 0 if `limit` is 0.
    pub const fn below(&mut self, limit: u64) -> u64 {
        // The high half of a product is nearly uniform, and needs no division.
        ((self.next_u64() as u128 * limit as u128) >> 64) as u64
    }
}

/// Spreads the bits of `x` over all of the result.
pub const fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_below_the_limit_and_repeat() {
        let draw = |seed| {
            let mut rng = Rng::new(seed);
            (0..1_000).map(|_| rng.below(10)).collect::<Vec<_>>()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
        assert!((0..10).all(|digit| draw(1).contains(&digit)));
        assert!(draw(3).iter().all(|number| *number < 10));
        assert_eq!(Rng::new(1).below(0), 0);
    }
}
