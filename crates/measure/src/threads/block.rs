//! A message between threads: the same number in every word, so that all of it is written and read.

/// `WORDS` times the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block<const WORDS: usize>(pub(crate) [u64; WORDS]);

impl<const WORDS: usize> Block<WORDS> {
    /// A message with this number.
    #[inline(always)]
    pub(crate) const fn new(number: u64) -> Self {
        Self([number; WORDS])
    }
}

impl<const WORDS: usize> Default for Block<WORDS> {
    fn default() -> Self {
        Self([0; WORDS])
    }
}
