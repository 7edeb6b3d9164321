//! Where in 64 bytes certain bytes stand, as one bit for each: what readers of delimited text walk.
//!
//! A reader is a [`Scan`]: written once for any [`Masks`], compiled once for each instruction set,
//! and run by [`scan`] on the best one that this processor has. So the choice is made once for a
//! message and not for each block, and what the reader does between blocks is compiled for the
//! same processor.

/// Bytes that one mask is about.
pub const BLOCK: usize = 64;

/// Makes masks of blocks with one instruction set.
pub trait Masks: Copy {
    /// Bit `i` is set if byte `i` of `block` is any of `wanted`.
    fn any<const N: usize>(self, block: &[u8; BLOCK], wanted: [u8; N]) -> u64;
}

/// Something to run with the best masks there are.
///
/// Implementations mark [`Scan::run`] `#[inline(always)]`, and so everything hot that it calls:
/// only then is it compiled for the instruction set of `masks`.
pub trait Scan {
    /// What comes of it.
    type Output;

    /// Runs with `masks`.
    fn run<M: Masks>(self, masks: M) -> Self::Output;
}

/// Runs `job` with the fastest masks of this processor.
#[inline]
pub fn scan<S: Scan>(job: S) -> S::Output {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if is_x86_64_v3() {
        // SAFETY: the processor has what the function is compiled for.
        return unsafe { scan_avx2(job) };
    }
    job.run(Baseline)
}

/// Bytes cut into blocks, of which the last is rarely full.
#[derive(Clone, Copy, Debug)]
pub struct Blocks<'a> {
    bytes: &'a [u8],
    /// All of them at the end of a block, if they are fewer than that.
    short: &'a [u8; BLOCK],
}

/// One block of [`Blocks`].
#[derive(Clone, Copy, Debug)]
pub struct Block<'a> {
    bytes: &'a [u8; BLOCK],
    /// Bytes at its start that belong to the block before.
    shift: u32,
}

impl<'a> Blocks<'a> {
    /// Cuts `bytes`. If they are fewer than a block, they are copied to `short`.
    #[inline(always)]
    pub fn new(bytes: &'a [u8], short: &'a mut [u8; BLOCK]) -> Self {
        if let Some(gap) = BLOCK.checked_sub(bytes.len()) {
            short[gap..].copy_from_slice(bytes);
        }
        Self { bytes, short }
    }

    /// The block that starts at `start`, a multiple of [`BLOCK`], if anything does.
    #[inline(always)]
    pub fn get(self, start: usize) -> Option<Block<'a>> {
        if let Some(bytes) = self.bytes.get(start..start + BLOCK).and_then(<[u8]>::first_chunk) {
            return Some(Block { bytes, shift: 0 });
        }
        // The last bytes there are, so that nothing behind the end is read.
        let missing = (start + BLOCK).checked_sub(self.bytes.len()).filter(|gap| *gap < BLOCK)?;
        Some(Block { bytes: self.bytes.last_chunk().unwrap_or(self.short), shift: missing as u32 })
    }
}

impl Block<'_> {
    /// Bit `i` is set if byte `i` of the block is any of `wanted`.
    #[inline(always)]
    pub fn any<M: Masks, const N: usize>(self, masks: M, wanted: [u8; N]) -> u64 {
        masks.any(self.bytes, wanted) >> self.shift
    }
}

/// What every processor of the architecture has: SSE2, NEON, or a loop that compilers vectorise.
#[derive(Clone, Copy, Debug)]
pub struct Baseline;

/// Without any particular instructions: the measure of the others.
#[derive(Clone, Copy, Debug)]
pub struct Portable;

impl Masks for Portable {
    #[inline(always)]
    fn any<const N: usize>(self, block: &[u8; BLOCK], wanted: [u8; N]) -> u64 {
        let mut mask = 0;
        for (at, byte) in block.iter().enumerate() {
            mask |= u64::from(wanted.contains(byte)) << at;
        }
        mask
    }
}

#[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri))))]
impl Masks for Baseline {
    #[inline(always)]
    fn any<const N: usize>(self, block: &[u8; BLOCK], wanted: [u8; N]) -> u64 {
        Portable.any(block, wanted)
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
use x86_64::{is_x86_64_v3, scan_avx2};

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod x86_64 {
    use super::{BLOCK, Baseline, Masks, Scan};
    use core::arch::x86_64::{
        __m128i, __m256i, _mm_cmpeq_epi8, _mm_loadu_si128, _mm_movemask_epi8, _mm_or_si128,
        _mm_set1_epi8, _mm_setzero_si128, _mm256_cmpeq_epi8, _mm256_loadu_si256,
        _mm256_movemask_epi8, _mm256_or_si256, _mm256_set1_epi8, _mm256_setzero_si256,
    };

    /// Proof that the processor has AVX2 and what comes with it: made in [`scan_avx2`] alone.
    #[derive(Clone, Copy, Debug)]
    pub(super) struct Avx2(());

    #[inline(always)]
    pub(super) fn is_x86_64_v3() -> bool {
        // Each is a load and a test: the standard library keeps the answers.
        is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
    }

    /// # Safety
    ///
    /// The processor must have AVX2, BMI1 and BMI2.
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt,lzcnt")]
    pub(super) unsafe fn scan_avx2<S: Scan>(job: S) -> S::Output {
        job.run(Avx2(()))
    }

    impl Masks for Baseline {
        #[inline(always)]
        fn any<const N: usize>(self, block: &[u8; BLOCK], wanted: [u8; N]) -> u64 {
            let (parts, _) = block.as_chunks::<16>();
            let mut mask = 0;
            for (index, part) in parts.iter().enumerate() {
                // SAFETY: every x86-64 has SSE2.
                let found = unsafe { any_16(part, wanted) };
                mask |= u64::from(found) << (16 * index);
            }
            mask
        }
    }

    /// # Safety
    ///
    /// The processor must have SSE2.
    #[inline]
    #[target_feature(enable = "sse2")]
    unsafe fn any_16<const N: usize>(part: &[u8; 16], wanted: [u8; N]) -> u16 {
        // SAFETY: the array has 16 bytes, and the load needs no alignment.
        let bytes = unsafe { _mm_loadu_si128(part.as_ptr().cast::<__m128i>()) };
        let mut found = _mm_setzero_si128();
        for byte in wanted {
            found = _mm_or_si128(found, _mm_cmpeq_epi8(bytes, _mm_set1_epi8(byte.cast_signed())));
        }
        _mm_movemask_epi8(found) as u16
    }

    impl Masks for Avx2 {
        #[inline(always)]
        fn any<const N: usize>(self, block: &[u8; BLOCK], wanted: [u8; N]) -> u64 {
            let (parts, _) = block.as_chunks::<32>();
            // SAFETY: an `Avx2` exists only where the processor has it.
            let low = unsafe { any_32(&parts[0], wanted) };
            // SAFETY: as above.
            let high = unsafe { any_32(&parts[1], wanted) };
            u64::from(low) | u64::from(high) << 32
        }
    }

    /// # Safety
    ///
    /// The processor must have AVX2.
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn any_32<const N: usize>(part: &[u8; 32], wanted: [u8; N]) -> u32 {
        // SAFETY: the array has 32 bytes, and the load needs no alignment.
        let bytes = unsafe { _mm256_loadu_si256(part.as_ptr().cast::<__m256i>()) };
        let mut found = _mm256_setzero_si256();
        for byte in wanted {
            let wanted = _mm256_set1_epi8(byte.cast_signed());
            found = _mm256_or_si256(found, _mm256_cmpeq_epi8(bytes, wanted));
        }
        _mm256_movemask_epi8(found).cast_unsigned()
    }
}

#[cfg(all(target_arch = "aarch64", not(miri)))]
mod aarch64 {
    use super::{BLOCK, Baseline, Masks};
    use core::arch::aarch64::{
        uint8x16_t, vandq_u8, vceqq_u8, vdupq_n_u8, vgetq_lane_u64, vld1q_u8, vorrq_u8, vpaddq_u8,
        vreinterpretq_u64_u8,
    };

    const BITS: [u8; 16] = [1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128];

    impl Masks for Baseline {
        #[inline(always)]
        fn any<const N: usize>(self, block: &[u8; BLOCK], wanted: [u8; N]) -> u64 {
            // SAFETY: every aarch64 has NEON.
            unsafe { any_64(block, wanted) }
        }
    }

    /// # Safety
    ///
    /// The processor must have NEON.
    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn any_64<const N: usize>(block: &[u8; BLOCK], wanted: [u8; N]) -> u64 {
        let (parts, _) = block.as_chunks::<16>();
        // SAFETY: the caller's promise.
        let [a, b, c, d] = [0, 1, 2, 3].map(|index| unsafe { bits_16(&parts[index], wanted) });
        // Three rounds of adding neighbours bring the 64 bits together, in order.
        let sums = vpaddq_u8(vpaddq_u8(a, b), vpaddq_u8(c, d));
        vgetq_lane_u64::<0>(vreinterpretq_u64_u8(vpaddq_u8(sums, sums)))
    }

    /// For each byte that is found, its bit within its half.
    ///
    /// # Safety
    ///
    /// The processor must have NEON.
    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn bits_16<const N: usize>(part: &[u8; 16], wanted: [u8; N]) -> uint8x16_t {
        // SAFETY: the array has 16 bytes.
        let bytes = unsafe { vld1q_u8(part.as_ptr()) };
        let mut found = vdupq_n_u8(0);
        for byte in wanted {
            found = vorrq_u8(found, vceqq_u8(bytes, vdupq_n_u8(byte)));
        }
        // SAFETY: as above.
        vandq_u8(found, unsafe { vld1q_u8(BITS.as_ptr()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The masks of one kind, of whatever processor the job runs on.
    struct Both<'a>(&'a [u8; BLOCK], [u8; 3]);

    impl Scan for Both<'_> {
        type Output = (u64, u64);

        #[inline(always)]
        fn run<M: Masks>(self, masks: M) -> (u64, u64) {
            (masks.any(self.0, self.1), masks.any(self.0, [self.1[0]]))
        }
    }

    /// Bytes that look random and of which few differ.
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
            let slow = block
                .iter()
                .rev()
                .fold(0, |mask: u64, byte| mask << 1 | u64::from(wanted.contains(byte)));
            assert_eq!(Portable.any(&block, wanted), slow);
            assert_eq!(Baseline.any(&block, wanted), slow);
            assert_eq!(scan(Both(&block, wanted)), (slow, Portable.any(&block, [1])));
        }
    }

    #[test]
    fn every_byte_is_in_one_block() {
        let all = block(7).repeat(3);
        for length in 0..all.len() {
            // Nothing behind the end may show.
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
