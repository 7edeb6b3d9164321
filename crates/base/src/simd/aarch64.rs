//! NEON, which every aarch64 has.

use super::masks::{BLOCK, Baseline, Classes, Masks, Portable};
use core::arch::aarch64::{
    uint8x16_t, vandq_u8, vceqq_u8, vcleq_u8, vdupq_n_u8, vgetq_lane_u64, vld1q_u8, vorrq_u8,
    vpaddq_u8, vreinterpretq_u64_u8, vsubq_u8,
};

const BITS: [u8; 16] = [1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128];

impl Masks for Baseline {
    const HAS_CLASSES: bool = false;

    #[inline(always)]
    fn any<const N: usize>(self, block: &[u8; BLOCK], wanted: [u8; N]) -> u64 {
        // SAFETY: every aarch64 has NEON.
        unsafe { any_64(block, wanted) }
    }

    #[inline(always)]
    fn digits(self, block: &[u8; BLOCK]) -> u64 {
        // SAFETY: every aarch64 has NEON.
        unsafe { digits_64(block) }
    }

    #[inline(always)]
    fn classes(self, blocks: [&[u8; BLOCK]; 2], classes: &Classes) -> u64 {
        Portable.classes(blocks, classes)
    }
}

/// # Safety
///
/// The processor must have NEON.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn any_64<const N: usize>(block: &[u8; BLOCK], wanted: [u8; N]) -> u64 {
    let (parts, _) = block.as_chunks::<16>();
    // SAFETY: the caller guarantees NEON.
    let bits = [0, 1, 2, 3].map(|index| unsafe { bits_16(&parts[index], wanted) });
    // SAFETY: as above.
    unsafe { join_64(bits) }
}

/// # Safety
///
/// The processor must have NEON.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn digits_64(block: &[u8; BLOCK]) -> u64 {
    let (parts, _) = block.as_chunks::<16>();
    // SAFETY: the caller guarantees NEON.
    let bits = [0, 1, 2, 3].map(|index| unsafe { digits_16(&parts[index]) });
    // SAFETY: as above.
    unsafe { join_64(bits) }
}

/// Joins the bits of four 16-byte parts to one mask.
///
/// # Safety
///
/// The processor must have NEON.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn join_64([a, b, c, d]: [uint8x16_t; 4]) -> u64 {
    // Three rounds of pairwise addition bring the 64 bits together, in order.
    let sums = vpaddq_u8(vpaddq_u8(a, b), vpaddq_u8(c, d));
    vgetq_lane_u64::<0>(vreinterpretq_u64_u8(vpaddq_u8(sums, sums)))
}

/// For each digit, its bit within its 8-byte half.
///
/// # Safety
///
/// The processor must have NEON.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn digits_16(part: &[u8; 16]) -> uint8x16_t {
    // SAFETY: the array has 16 bytes.
    let bytes = unsafe { vld1q_u8(part.as_ptr()) };
    let found = vcleq_u8(vsubq_u8(bytes, vdupq_n_u8(b'0')), vdupq_n_u8(9));
    // SAFETY: as above.
    vandq_u8(found, unsafe { vld1q_u8(BITS.as_ptr()) })
}

/// For each wanted byte, its bit within its 8-byte half.
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
