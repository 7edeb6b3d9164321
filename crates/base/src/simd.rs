//! SIMD bit masks: bit `i` tells whether byte `i` of a 64-byte block is a wanted byte. Parsers of
//! delimited text walk such masks instead of bytes.
//!
//! A parser is a [`Scan`]: written once for any [`Masks`], compiled once for each instruction set,
//! and run by [`scan`] with the best one of this processor. The choice is made once per message
//! rather than per block, and the parser's code between blocks is compiled for the same processor.

mod masks;

pub use masks::{BLOCK, Baseline, Classes, Masks, Portable, Scan};

/// Runs `job` with the fastest masks of this processor.
#[inline]
pub fn scan<S: Scan>(job: S) -> S::Output {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    match x86_64::level() {
        // SAFETY: `level` has detected the instruction set that the function is compiled for.
        Level::Avx512 => return unsafe { x86_64::scan_avx512(job) },
        // SAFETY: as above.
        Level::Avx2 => return unsafe { x86_64::scan_avx2(job) },
        Level::Baseline => {}
    }
    job.run(Baseline)
}

/// A byte slice cut into blocks; the last block is usually partial.
#[derive(Clone, Copy, Debug)]
pub struct Blocks<'a> {
    bytes: &'a [u8],
    /// A copy of `bytes` at the end of a block, if they are fewer than a block.
    short: &'a [u8; BLOCK],
}

/// One block of [`Blocks`].
#[derive(Clone, Copy, Debug)]
pub struct Block<'a> {
    bytes: &'a [u8; BLOCK],
    /// Bytes at its start that belong to the previous block.
    shift: u32,
    ahead: Option<Ahead<'a>>,
}

/// A block and the byte behind it.
#[derive(Clone, Copy, Debug)]
struct Ahead<'a> {
    bytes: &'a [u8; BLOCK + 1],
    /// Bytes at its start that belong to the previous block.
    shift: u32,
}

impl<'a> Blocks<'a> {
    /// Cuts `bytes` into blocks. Fewer bytes than a block are copied to `short`.
    #[inline(always)]
    pub fn new(bytes: &'a [u8], short: &'a mut [u8; BLOCK]) -> Self {
        if let Some(gap) = BLOCK.checked_sub(bytes.len()) {
            short[gap..].copy_from_slice(bytes);
        }
        Self { bytes, short }
    }

    /// The block at `start`, a multiple of [`BLOCK`]; `None` behind the last byte.
    #[inline(always)]
    pub fn get(self, start: usize) -> Option<Block<'a>> {
        self.inner(start).or_else(|| self.last(start))
    }

    /// The block at `start`, if at least one byte follows it.
    #[inline(always)]
    pub fn inner(self, start: usize) -> Option<Block<'a>> {
        let bytes = self.bytes.get(start..start + BLOCK + 1)?.first_chunk()?;
        Some(Block {
            bytes: bytes.first_chunk()?,
            shift: 0,
            ahead: Some(Ahead { bytes, shift: 0 }),
        })
    }

    /// The block at `start`, if the bytes end in it.
    #[inline(always)]
    pub fn last(self, start: usize) -> Option<Block<'a>> {
        // The last 64 bytes, shifted by those of the previous block: no read behind the end.
        let missing = (start + BLOCK).checked_sub(self.bytes.len()).filter(|gap| *gap < BLOCK)?;
        let (bytes, shift) = (self.bytes.last_chunk().unwrap_or(self.short), missing as u32);
        let ahead = self.bytes.last_chunk().map(|bytes| Ahead { bytes, shift: shift + 1 });
        Some(Block { bytes, shift, ahead })
    }
}

impl Block<'_> {
    /// Bit `i` is set if byte `i` of the block is any of `wanted`.
    #[inline(always)]
    pub fn any<M: Masks, const N: usize>(self, masks: M, wanted: [u8; N]) -> u64 {
        masks.any(self.bytes, wanted) >> self.shift
    }

    /// Bit `i` is set if byte `i` of the block is a decimal digit.
    #[inline(always)]
    pub fn digits<M: Masks>(self, masks: M) -> u64 {
        masks.digits(self.bytes) >> self.shift
    }

    /// Bit `i` is set if byte `i` of the block and the byte behind it have a class in common; the
    /// very last byte has no such pair. `None` if there are too few bytes: a block or less.
    #[inline(always)]
    pub fn classes<M: Masks>(self, masks: M, classes: &Classes) -> Option<u64> {
        let Ahead { bytes, shift } = self.ahead?;
        let both = [bytes.first_chunk()?, bytes.last_chunk()?];
        Some(masks.classes(both, classes).checked_shr(shift).unwrap_or(0))
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
use x86_64::Level;

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod x86_64;

#[cfg(all(target_arch = "aarch64", not(miri)))]
mod aarch64;

#[cfg(test)]
mod tests {
    use super::*;

    /// Computes all kinds of masks with one instruction set.
    struct All<'a>([&'a [u8; BLOCK]; 2], [u8; 3], Classes);

    impl Scan for All<'_> {
        type Output = [u64; 4];

        #[inline(always)]
        fn run<M: Masks>(self, masks: M) -> Self::Output {
            let Self(blocks, wanted, classes) = self;
            let digits = masks.digits(blocks[0]);
            let any = [masks.any(blocks[0], wanted), masks.any(blocks[0], [wanted[0]])];
            [any[0], any[1], digits, masks.classes(blocks, &classes)]
        }
    }

    /// Pseudo-random bytes with few distinct values.
    fn block(seed: u64) -> [u8; BLOCK] {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        std::array::from_fn(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(seed);
            let byte = (state >> 56) as u8;
            if byte & 1 == 0 { byte } else { byte % 5 }
        })
    }

    #[test]
    fn every_instruction_set_finds_the_same() {
        for seed in 0..2_000 {
            let (block, wanted) = (block(seed), [1, (seed % 256) as u8, 3]);
            let (mut other, mut classes) = (block, Classes::default());
            other.rotate_left(1);
            classes.put([wanted[1], 3], 1);
            classes.put([4, wanted[1] / 2], 128);
            let slow = |is_set: &dyn Fn(usize) -> bool| {
                (0..BLOCK).rev().fold(0, |mask: u64, at| mask << 1 | u64::from(is_set(at)))
            };
            let expected = [
                slow(&|at| wanted.contains(&block[at])),
                slow(&|at| block[at] == 1),
                slow(&|at| block[at].is_ascii_digit()),
                slow(&|at| classes.of([block[at], other[at]]) != 0),
            ];
            let all = || All([&block, &other], wanted, classes);
            assert_eq!(all().run(Portable), expected);
            assert_eq!(all().run(Baseline), expected);
            assert_eq!(scan(all()), expected);
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            if x86_64::level() != Level::Baseline {
                // SAFETY: the higher level has what the lower one has.
                assert_eq!(unsafe { x86_64::scan_avx2(all()) }, expected);
            }
        }
    }

    #[test]
    fn pairs_share_the_classes_that_they_were_put_into() {
        let mut classes = Classes::default();
        assert!(classes.put(*b"55", 1) && classes.put(*b"3=", 2));
        assert!(!classes.put([b'5', 0x80], 4), "has none");
        assert_eq!((classes.of(*b"55"), classes.of(*b"3=")), (1, 2));
        for other in [*b"35", *b"5=", *b"56", *b"\xb55", *b"5\xb5"] {
            assert_eq!(classes.of(other), 0, "{other:?}");
        }
    }

    #[test]
    fn classes_are_known_of_every_byte_but_the_last() {
        let mut classes = Classes::default();
        classes.put([0, 3], 1);
        let all = block(7).repeat(3);
        for length in 0..all.len() {
            let (bytes, mut short) = (&all[..length], [3; BLOCK]);
            let blocks = Blocks::new(bytes, &mut short);
            for start in (0..length).step_by(BLOCK) {
                let pairs = bytes[start..].windows(2).take(BLOCK).enumerate();
                let found = pairs.filter(|(_, pair)| classes.of([pair[0], pair[1]]) != 0);
                let expected = found.fold(0_u64, |mask, (at, _)| mask | 1 << at);
                let expected = (length > BLOCK).then_some(expected);
                let block = blocks.get(start).expect("bytes");
                assert_eq!(block.classes(Baseline, &classes), expected);
            }
        }
    }

    #[test]
    fn every_byte_is_in_one_block() {
        let all = block(7).repeat(3);
        for length in 0..all.len() {
            // The 3s behind the end must not appear in any mask.
            let (bytes, mut short) = (&all[..length], [3; BLOCK]);
            let blocks = Blocks::new(bytes, &mut short);
            for start in (0..4 * BLOCK).step_by(BLOCK) {
                let rest = bytes.get(start..).unwrap_or_default();
                let rest = &rest[..rest.len().min(BLOCK)];
                let expected = (!rest.is_empty()).then(|| {
                    let found = rest.iter().enumerate().filter(|(_, byte)| [0, 3].contains(*byte));
                    found.fold(0_u64, |mask, (at, _)| mask | 1 << at)
                });
                assert_eq!(blocks.get(start).map(|block| block.any(Baseline, [3, 0])), expected);
            }
        }
    }
}
