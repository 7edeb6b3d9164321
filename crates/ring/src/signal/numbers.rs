//! Sets of signals.

/// Bits of a word.
const WORD: usize = u64::BITS as usize;
/// Words for the 256 signals of the largest waiter.
pub(super) const WORDS: usize = 4;

/// The signals that a waiter took, by number.
///
/// ```
/// use lanecast_ring::signal::{Semaphore, Signal, Signals};
/// let mut waiter = Semaphore::new();
/// waiter.bind(0)?.signal();
/// let taken = waiter.check();
/// assert!(taken.contains(0) && !taken.contains(1));
/// assert_eq!(taken.into_iter().collect::<Vec<_>>(), [0]);
/// # Ok::<(), lanecast_ring::signal::NoSuchSignal>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SignalSet {
    words: [u64; WORDS],
}

impl SignalSet {
    /// The set whose lowest signals are the bits of `word`.
    pub(super) fn of_word(word: u64) -> Self {
        let mut set = Self::default();
        set.words[0] = word;
        set
    }

    pub(super) fn of_words(words: [u64; WORDS]) -> Self {
        Self { words }
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.words == [0; WORDS]
    }

    /// Number of signals.
    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether the set contains `number`.
    pub fn contains(&self, number: usize) -> bool {
        self.words.get(number / WORD).is_some_and(|word| word >> (number % WORD) & 1 == 1)
    }

    /// The numbers, ascending.
    pub fn iter(&self) -> Numbers {
        Numbers { words: self.words, word: 0 }
    }
}

impl IntoIterator for SignalSet {
    type Item = usize;
    type IntoIter = Numbers;
    fn into_iter(self) -> Numbers {
        self.iter()
    }
}

impl IntoIterator for &SignalSet {
    type Item = usize;
    type IntoIter = Numbers;
    fn into_iter(self) -> Numbers {
        self.iter()
    }
}

/// The numbers of a [`SignalSet`], ascending.
#[derive(Clone, Debug)]
pub struct Numbers {
    words: [u64; WORDS],
    /// All words before this one are used up.
    word: usize,
}

impl Iterator for Numbers {
    type Item = usize;
    fn next(&mut self) -> Option<usize> {
        while let Some(bits) = self.words.get_mut(self.word) {
            if *bits != 0 {
                let bit = bits.trailing_zeros() as usize;
                *bits &= *bits - 1;
                return Some(self.word * WORD + bit);
            }
            self.word += 1;
        }
        None
    }
}

/// Word and bit of the signal `number`.
pub(super) const fn place(number: usize) -> (usize, u64) {
    (number / WORD, 1 << (number % WORD))
}
