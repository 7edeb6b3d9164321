//! Masks of blocks, and their scalar implementation.

/// Bytes of a block, and bits of its mask.
pub const BLOCK: usize = 64;

/// Computes masks of blocks with one instruction set.
pub trait Masks: Copy {
    /// Whether [`Masks::classes`] is as fast as reading a few single bytes.
    const HAS_CLASSES: bool;

    /// Bit `i` is set if byte `i` of `block` is any of `wanted`.
    fn any<const N: usize>(self, block: &[u8; BLOCK], wanted: [u8; N]) -> u64;

    /// Bit `i` is set if byte `i` of `block` is a decimal digit.
    fn digits(self, block: &[u8; BLOCK]) -> u64;

    /// Bit `i` is set if byte `i` of the first block and byte `i` of the second have a class in
    /// common.
    fn classes(self, blocks: [&[u8; BLOCK]; 2], classes: &Classes) -> u64;
}

/// Up to eight classes of byte pairs, each a bit, selected by the lower four bits of the first
/// and of the second byte. Bytes from 128 on have no class.
#[derive(Clone, Copy, Debug, Default)]
pub struct Classes(pub(super) [[u8; 16]; 2]);

impl Classes {
    /// Adds `pair` to the class whose bit is `class`; returns whether the pair can have a class.
    pub fn put(&mut self, pair: [u8; 2], class: u8) -> bool {
        for (table, byte) in self.0.iter_mut().zip(pair) {
            table[usize::from(byte % 16)] |= class;
        }
        pair.is_ascii()
    }

    pub(super) fn of(&self, pair: [u8; 2]) -> u8 {
        let classes = |index: usize| match pair[index] {
            byte @ ..128 => self.0[index][usize::from(byte % 16)],
            _ => 0,
        };
        classes(0) & classes(1)
    }
}

/// A job for [`scan`](super::scan), which runs it with the best masks of this processor.
///
/// Implementations mark [`Scan::run`] and every hot function that it calls `#[inline(always)]`:
/// only then are they compiled for the instruction set of `masks`.
pub trait Scan {
    /// Result of the job.
    type Output;

    /// Runs with `masks`.
    fn run<M: Masks>(self, masks: M) -> Self::Output;
}

/// Instructions that every processor of the architecture has: SSE2, NEON, or a loop that compilers
/// vectorise.
#[derive(Clone, Copy, Debug)]
pub struct Baseline;

/// Scalar implementation without SIMD instructions: the reference of the others.
#[derive(Clone, Copy, Debug)]
pub struct Portable;

impl Portable {
    #[inline(always)]
    fn mask(is_set: impl Fn(usize) -> bool) -> u64 {
        (0..BLOCK).fold(0, |mask, at| mask | u64::from(is_set(at)) << at)
    }
}

impl Masks for Portable {
    const HAS_CLASSES: bool = false;

    #[inline(always)]
    fn any<const N: usize>(self, block: &[u8; BLOCK], wanted: [u8; N]) -> u64 {
        Self::mask(|at| wanted.contains(&block[at]))
    }

    #[inline(always)]
    fn digits(self, block: &[u8; BLOCK]) -> u64 {
        Self::mask(|at| block[at].is_ascii_digit())
    }

    #[inline(always)]
    fn classes(self, blocks: [&[u8; BLOCK]; 2], classes: &Classes) -> u64 {
        Self::mask(|at| classes.of([blocks[0][at], blocks[1][at]]) != 0)
    }
}

#[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri))))]
impl Masks for Baseline {
    const HAS_CLASSES: bool = false;

    #[inline(always)]
    fn any<const N: usize>(self, block: &[u8; BLOCK], wanted: [u8; N]) -> u64 {
        Portable.any(block, wanted)
    }

    #[inline(always)]
    fn digits(self, block: &[u8; BLOCK]) -> u64 {
        Portable.digits(block)
    }

    #[inline(always)]
    fn classes(self, blocks: [&[u8; BLOCK]; 2], classes: &Classes) -> u64 {
        Portable.classes(blocks, classes)
    }
}
