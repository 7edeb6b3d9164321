//! Hash tables from field names to their targets, built once and probed for every name of every
//! message.

/// Names with values. Absent names yield the default value.
#[derive(Clone, Debug)]
pub(crate) struct NameTable<T> {
    /// Names shorter than `LONG`, keyed by the name and its terminator as one word.
    short: WordTable<T>,
    /// Long names, keyed by hash; values index `long_names`.
    long: WordTable<u32>,
    /// Long names with their values; index 0 is a dummy for absent names.
    long_names: Vec<(Box<[u8]>, T)>,
    behind: u8,
}

/// Length from which a name is long.
pub(crate) const LONG: usize = 8;

impl<T: Copy + Default> NameTable<T> {
    /// A table of distinct, non-empty `names`. In messages, each is followed by the byte `behind`,
    /// which no short name contains.
    pub(crate) fn new(names: &[(&[u8], T)], behind: u8) -> Self {
        let (short, long): (Vec<_>, Vec<_>) = names.iter().partition(|(name, _)| name.len() < LONG);
        let short = short.iter().map(|(name, value)| (short_word(name, behind), *value));
        // Index 0 stands for no name, because a failed search returns the default.
        let none: (Box<[u8]>, T) = (Box::default(), T::default());
        let long = long.iter().map(|(name, value)| ((*name).into(), *value));
        let long_names: Vec<(Box<[u8]>, T)> = std::iter::once(none).chain(long).collect();
        let hashes = (0..).zip(&long_names).skip(1).map(|(index, (name, _))| (hash(name), index));
        let long = WordTable::new(&hashes.collect::<Vec<_>>());
        Self { short: WordTable::new(&short.collect::<Vec<_>>()), long, long_names, behind }
    }

    /// The short names, for repeated lookups.
    #[inline(always)]
    pub(crate) fn short(&self) -> WordLookup<'_, T> {
        self.short.search()
    }

    /// Value of `name`.
    pub(crate) fn find(&self, name: &[u8]) -> T {
        match name.len() {
            LONG.. => self.find_long(name),
            _ => self.short().find_short(short_word(name, self.behind)),
        }
    }

    /// Value of a long `name`.
    #[inline]
    pub(crate) fn find_long(&self, name: &[u8]) -> T {
        // Without long names the hash is saved.
        if self.long_names.len() == 1 {
            return T::default();
        }
        // Hashes of long names can collide, so the name itself is compared.
        let is_it = |index: u32| *self.long_names[index as usize].0 == *name;
        let index = self.long.search().find(hash(name), is_it);
        self.long_names[index as usize].1
    }
}

/// Open-addressing hash table of words.
///
/// Equal words may occur with several values; the caller tells them apart.
#[derive(Clone, Debug)]
struct WordTable<T> {
    /// A power of two of entries, at most a quarter used, with linear probing. Word 0 marks a free
    /// entry, which holds the default.
    places: Box<[(u64, T)]>,
    multiplier: u64,
    shift: u32,
}

/// Borrowed view of a table, with its slice in registers instead of behind a pointer.
#[derive(Debug)]
pub(crate) struct WordLookup<'a, T> {
    places: &'a [(u64, T)],
    multiplier: u64,
    shift: u32,
}

/// Odd multipliers; a table takes the one with the fewest collisions.
const MULTIPLIERS: [u64; 8] = [
    0x9E37_79B9_7F4A_7C15,
    0xD6E8_FEB8_6659_FD93,
    0xC2B2_AE3D_27D4_EB4F,
    0xA076_1D64_78BD_642F,
    0xE703_7ED1_A0B4_28DB,
    0x8EBC_6AF0_9C88_C6E3,
    0x5896_36E4_4CC4_3EF5,
    0x1D8E_4E27_C47D_124F,
];

impl<T: Copy + Default> WordTable<T> {
    /// The table of `words` with the shortest probe sequences.
    fn new(words: &[(u64, T)]) -> Self {
        let tables = MULTIPLIERS.iter().map(|multiplier| Self::with(*multiplier, words));
        let (table, _) = tables.min_by_key(|(_, moved)| *moved).expect("there are multipliers");
        table
    }

    /// A table and its total displacement: probe steps beyond the home entries.
    fn with(multiplier: u64, words: &[(u64, T)]) -> (Self, usize) {
        let count = (words.len() * 4).next_power_of_two().max(4);
        // Upper bits of a product are mixed best, so the shift keeps those.
        let shift = 64 - count.trailing_zeros();
        let places = vec![(0, T::default()); count].into();
        let mut table = Self { places, multiplier, shift };
        let mut moved = 0;
        for (word, value) in words {
            let mut index = table.search().index(*word);
            // A quarter of the entries is used at most, so probing always ends.
            while table.places[index].0 != 0 {
                index = (index + 1) % count;
                moved += 1;
            }
            table.places[index] = (*word, *value);
        }
        (table, moved)
    }

    #[inline(always)]
    fn search(&self) -> WordLookup<'_, T> {
        WordLookup { places: &self.places, multiplier: self.multiplier, shift: self.shift }
    }
}

impl<T: Copy + Default> WordLookup<'_, T> {
    /// Value of a short name in `word`: the name, its terminator, then zeros.
    #[inline(always)]
    pub(crate) fn find_short(&self, word: u64) -> T {
        self.find(word, |_| true)
    }

    /// Value of `word` that satisfies `is_it`.
    #[inline(always)]
    fn find(&self, word: u64, is_it: impl Fn(T) -> bool) -> T {
        let mut index = self.index(word);
        while let Some((this, value)) = self.places.get(index) {
            if *this == word && is_it(*value) {
                return *value;
            }
            if *this == 0 {
                break;
            }
            // The number of places is a power of two, so the mask wraps around.
            index = (index + 1) & (self.places.len() - 1);
        }
        T::default()
    }

    #[inline(always)]
    fn index(&self, word: u64) -> usize {
        (word.wrapping_mul(self.multiplier) >> self.shift) as usize
    }
}

/// A short name and its terminator as a word.
fn short_word(name: &[u8], behind: u8) -> u64 {
    // The separator is part of the word, so no name is a prefix of another.
    word_at(name, 0) | u64::from(behind) << (8 * name.len())
}

/// Hash of a long name, never 0.
#[inline]
fn hash(name: &[u8]) -> u64 {
    let words = (0..name.len()).step_by(8).map(|start| word_at(name, start));
    let hash = words.fold(name.len() as u64, |hash, word| {
        (hash.rotate_left(29) ^ word).wrapping_mul(MULTIPLIERS[1])
    });
    // Word 0 marks free entries.
    hash | 1
}

/// Eight bytes from `start`, zero-padded past the end.
#[inline(always)]
pub(crate) fn word_at(bytes: &[u8], start: usize) -> u64 {
    match bytes.get(start..).and_then(<[u8]>::first_chunk) {
        Some(word) => u64::from_le_bytes(*word),
        None => last_word(bytes, start),
    }
}

/// Fewer than eight bytes are left: reads the last eight and shifts.
#[inline(always)]
fn last_word(bytes: &[u8], start: usize) -> u64 {
    match bytes.last_chunk() {
        Some(word) => {
            // Bytes before `start` are shifted out of the last full word.
            let missing = (start + 8).saturating_sub(bytes.len());
            u64::from_le_bytes(*word).checked_shr(8 * missing as u32).unwrap_or(0)
        }
        None => tiny_word(bytes, start),
    }
}

/// The slice itself has fewer than eight bytes.
#[cold]
fn tiny_word(bytes: &[u8], start: usize) -> u64 {
    // Backwards, so that the first byte becomes the lowest.
    let rest = bytes.get(start..).unwrap_or_default().iter().rev();
    rest.fold(0, |word, byte| word << 8 | u64::from(*byte))
}

/// The lowest `count` bytes of `word`, for `count` below 8.
#[inline(always)]
pub(crate) fn low_bytes(word: u64, count: usize) -> u64 {
    word & ((1 << (8 * count)) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A test value without a default meaning.
    #[derive(Clone, Copy, Debug, PartialEq, Default)]
    struct Number(Option<usize>);

    fn find(table: &NameTable<Number>, name: &[u8]) -> Option<usize> {
        let Number(number) = match name.len() {
            LONG.. => table.find_long(name),
            length => {
                let word = word_at(&[name, b"\"\0more"].concat(), 0);
                table.short().find_short(if length < 7 {
                    low_bytes(word, length + 1)
                } else {
                    word
                })
            }
        };
        number
    }

    proptest! {
        #[test]
        fn a_table_finds_its_names_and_no_others(
            names in prop::collection::btree_map("[ab\0]{1,19}", 0..99_usize, 0..60),
            others in prop::collection::vec("[ab\0]{0,19}", 60),
        ) {
            let pairs = names.iter().map(|(name, value)| (name.as_bytes(), Number(Some(*value))));
            let table = NameTable::new(&pairs.collect::<Vec<_>>(), b'"');
            for (name, value) in &names {
                prop_assert_eq!(find(&table, name.as_bytes()), Some(*value));
            }
            for name in others {
                prop_assert_eq!(find(&table, name.as_bytes()), names.get(&name).copied());
            }
        }

        #[test]
        fn words_end_with_zeros(
            bytes in prop::collection::vec(any::<u8>(), 0..20),
            start in 0..24_usize,
        ) {
            let rest = bytes.get(start..).unwrap_or_default();
            let mut word = [0; 8];
            let length = rest.len().min(8);
            word[..length].copy_from_slice(&rest[..length]);
            prop_assert_eq!(word_at(&bytes, start), u64::from_le_bytes(word));
        }
    }

    #[test]
    fn a_thousand_tags_lie_close_to_their_places() {
        let words: Vec<(u64, usize)> =
            (1..=1_024).map(|tag| (short_word(tag.to_string().as_bytes(), b'='), tag)).collect();
        let moved = MULTIPLIERS.map(|multiplier| WordTable::with(multiplier, &words).1);
        assert!(moved.iter().min() < Some(&200), "{moved:?}");
    }
}
