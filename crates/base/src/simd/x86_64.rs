//! SSE2, which every x86-64 has, AVX2 and AVX-512.

use super::masks::{BLOCK, Baseline, Classes, Masks, Portable, Scan};
use core::arch::x86_64::{
    __m128i, __m256i, _mm_cmpeq_epi8, _mm_loadu_si128, _mm_min_epu8, _mm_movemask_epi8,
    _mm_or_si128, _mm_set1_epi8, _mm_setzero_si128, _mm_sub_epi8, _mm256_and_si256,
    _mm256_broadcastsi128_si256, _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_min_epu8,
    _mm256_movemask_epi8, _mm256_or_si256, _mm256_set1_epi8, _mm256_setzero_si256,
    _mm256_shuffle_epi8, _mm256_sub_epi8, _mm512_broadcast_i32x4, _mm512_cmpeq_epi8_mask,
    _mm512_cmple_epu8_mask, _mm512_loadu_si512, _mm512_set1_epi8, _mm512_shuffle_epi8,
    _mm512_sub_epi8, _mm512_test_epi8_mask,
};
use std::sync::OnceLock;

/// Proof that the processor has [`Level::Avx2`]; only [`scan_avx2`] constructs it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Avx2(());

/// Proof that the processor has [`Level::Avx512`]; only [`scan_avx512`] constructs it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Avx512(());

/// Best instruction set of this processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Baseline,
    Avx2,
    Avx512,
}

#[inline(always)]
pub(super) fn level() -> Level {
    // Cached: asking the standard library for each feature takes longer.
    static LEVEL: OnceLock<Level> = OnceLock::new();
    *LEVEL.get_or_init(detect)
}

#[cold]
fn detect() -> Level {
    let has_avx2 = is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("popcnt")
        && is_x86_feature_detected!("lzcnt");
    let has_avx512 = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
        // Processors without it lower their clock when they use 512-bit registers.
        && is_x86_feature_detected!("avx512vbmi2");
    match (has_avx2, has_avx512) {
        (true, true) => Level::Avx512,
        (true, false) => Level::Avx2,
        _ => Level::Baseline,
    }
}

/// # Safety
///
/// The processor must have [`Level::Avx512`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx2,bmi1,bmi2,popcnt,lzcnt")]
pub(super) unsafe fn scan_avx512<S: Scan>(job: S) -> S::Output {
    job.run(Avx512(()))
}

/// # Safety
///
/// The processor must have [`Level::Avx2`].
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt,lzcnt")]
pub(super) unsafe fn scan_avx2<S: Scan>(job: S) -> S::Output {
    job.run(Avx2(()))
}

impl Masks for Baseline {
    const HAS_CLASSES: bool = false;

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

    #[inline(always)]
    fn digits(self, block: &[u8; BLOCK]) -> u64 {
        let (parts, _) = block.as_chunks::<16>();
        let mut mask = 0;
        for (index, part) in parts.iter().enumerate() {
            // SAFETY: every x86-64 has SSE2.
            let found = unsafe { digits_16(part) };
            mask |= u64::from(found) << (16 * index);
        }
        mask
    }

    #[inline(always)]
    fn classes(self, blocks: [&[u8; BLOCK]; 2], classes: &Classes) -> u64 {
        Portable.classes(blocks, classes)
    }
}

/// # Safety
///
/// The processor must have SSE2.
#[inline]
#[target_feature(enable = "sse2")]
unsafe fn digits_16(part: &[u8; 16]) -> u16 {
    // SAFETY: the array has 16 bytes, and the load needs no alignment.
    let bytes = unsafe { _mm_loadu_si128(part.as_ptr().cast::<__m128i>()) };
    let above = _mm_sub_epi8(bytes, _mm_set1_epi8(b'0'.cast_signed()));
    let is_digit = _mm_cmpeq_epi8(_mm_min_epu8(above, _mm_set1_epi8(9)), above);
    _mm_movemask_epi8(is_digit) as u16
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
    const HAS_CLASSES: bool = true;

    #[inline(always)]
    fn any<const N: usize>(self, block: &[u8; BLOCK], wanted: [u8; N]) -> u64 {
        let (parts, _) = block.as_chunks::<32>();
        // SAFETY: an `Avx2` exists only where the processor has it.
        let low = unsafe { any_32(&parts[0], wanted) };
        // SAFETY: as above.
        let high = unsafe { any_32(&parts[1], wanted) };
        u64::from(low) | u64::from(high) << 32
    }

    #[inline(always)]
    fn digits(self, block: &[u8; BLOCK]) -> u64 {
        let (parts, _) = block.as_chunks::<32>();
        // SAFETY: an `Avx2` exists only where the processor has it.
        let low = unsafe { digits_32(&parts[0]) };
        // SAFETY: as above.
        let high = unsafe { digits_32(&parts[1]) };
        u64::from(low) | u64::from(high) << 32
    }

    #[inline(always)]
    fn classes(self, [first, second]: [&[u8; BLOCK]; 2], classes: &Classes) -> u64 {
        let ((first, _), (second, _)) = (first.as_chunks::<32>(), second.as_chunks::<32>());
        // SAFETY: an `Avx2` exists only where the processor has it.
        let low = unsafe { classes_32(&first[0], &second[0], classes) };
        // SAFETY: as above.
        let high = unsafe { classes_32(&first[1], &second[1], classes) };
        u64::from(low) | u64::from(high) << 32
    }
}

/// # Safety
///
/// The processor must have AVX2.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn digits_32(part: &[u8; 32]) -> u32 {
    // SAFETY: the array has 32 bytes, and the load needs no alignment.
    let bytes = unsafe { _mm256_loadu_si256(part.as_ptr().cast::<__m256i>()) };
    let above = _mm256_sub_epi8(bytes, _mm256_set1_epi8(b'0'.cast_signed()));
    let is_digit = _mm256_cmpeq_epi8(_mm256_min_epu8(above, _mm256_set1_epi8(9)), above);
    _mm256_movemask_epi8(is_digit).cast_unsigned()
}

/// # Safety
///
/// The processor must have AVX2.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn classes_32(first: &[u8; 32], second: &[u8; 32], classes: &Classes) -> u32 {
    let mut common = _mm256_set1_epi8(-1);
    for (part, table) in [first, second].into_iter().zip(&classes.0) {
        // SAFETY: the array has 32 bytes, and the load needs no alignment.
        let bytes = unsafe { _mm256_loadu_si256(part.as_ptr().cast::<__m256i>()) };
        // SAFETY: the table has 16 bytes, and the load needs no alignment.
        let table = unsafe { _mm_loadu_si128(table.as_ptr().cast::<__m128i>()) };
        // The shuffle yields 0 for bytes from 128 on.
        let found = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(table), bytes);
        common = _mm256_and_si256(common, found);
    }
    let is_none = _mm256_cmpeq_epi8(common, _mm256_setzero_si256());
    !_mm256_movemask_epi8(is_none).cast_unsigned()
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

impl Masks for Avx512 {
    const HAS_CLASSES: bool = true;

    #[inline(always)]
    fn any<const N: usize>(self, block: &[u8; BLOCK], wanted: [u8; N]) -> u64 {
        // SAFETY: an `Avx512` exists only where the processor has it.
        unsafe { any_64(block, wanted) }
    }

    #[inline(always)]
    fn digits(self, block: &[u8; BLOCK]) -> u64 {
        // SAFETY: an `Avx512` exists only where the processor has it.
        unsafe { digits_64(block) }
    }

    #[inline(always)]
    fn classes(self, blocks: [&[u8; BLOCK]; 2], classes: &Classes) -> u64 {
        // SAFETY: an `Avx512` exists only where the processor has it.
        unsafe { classes_64(blocks, classes) }
    }
}

/// # Safety
///
/// The processor must have AVX-512 with its instructions for bytes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn any_64<const N: usize>(block: &[u8; BLOCK], wanted: [u8; N]) -> u64 {
    // SAFETY: the array has 64 bytes, and the load needs no alignment.
    let bytes = unsafe { _mm512_loadu_si512(block.as_ptr().cast()) };
    let found =
        wanted.map(|byte| _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(byte.cast_signed())));
    found.iter().fold(0, |all, one| all | one)
}

/// # Safety
///
/// The processor must have AVX-512 with its instructions for bytes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn digits_64(block: &[u8; BLOCK]) -> u64 {
    // SAFETY: the array has 64 bytes, and the load needs no alignment.
    let bytes = unsafe { _mm512_loadu_si512(block.as_ptr().cast()) };
    let above = _mm512_sub_epi8(bytes, _mm512_set1_epi8(b'0'.cast_signed()));
    _mm512_cmple_epu8_mask(above, _mm512_set1_epi8(9))
}

/// # Safety
///
/// The processor must have AVX-512 with its instructions for bytes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn classes_64(blocks: [&[u8; BLOCK]; 2], classes: &Classes) -> u64 {
    let [first, second] = [0, 1].map(|index| {
        // SAFETY: the array has 64 bytes, and the load needs no alignment.
        let bytes = unsafe { _mm512_loadu_si512(blocks[index].as_ptr().cast()) };
        // SAFETY: the table has 16 bytes, and the load needs no alignment.
        let table = unsafe { _mm_loadu_si128(classes.0[index].as_ptr().cast::<__m128i>()) };
        // The shuffle yields 0 for bytes from 128 on.
        _mm512_shuffle_epi8(_mm512_broadcast_i32x4(table), bytes)
    });
    _mm512_test_epi8_mask(first, second)
}
