//! A table from the names in messages to what is wanted of them.

/// Names, each with a value: made once, searched for every field of every message.
#[derive(Clone, Debug)]
pub(crate) struct Names<T> {
    /// A power of two of places, at most a quarter of them taken. A name is at the place of its
    /// hash, or at the next free one behind it.
    places: Box<[Option<Place<T>>]>,
    multiplier: u64,
    shift: u32,
}

#[derive(Clone, Debug)]
struct Place<T> {
    head: u64,
    name: Box<[u8]>,
    value: T,
}

/// Bytes of a name that are compared at once.
const WORD: usize = 8;

/// Odd numbers to multiply with, of which the table takes one that spreads its names.
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

impl<T: Clone> Names<T> {
    /// A table of `names`, which differ.
    pub(crate) fn new(names: &[(Box<[u8]>, T)]) -> Self {
        let tables = MULTIPLIERS.iter().map(|multiplier| Self::with(*multiplier, names));
        let (table, _) = tables.min_by_key(|(_, moved)| *moved).expect("there are multipliers");
        table
    }

    /// A table, and how far names in it are from the places of their hashes, all in all.
    fn with(multiplier: u64, names: &[(Box<[u8]>, T)]) -> (Self, usize) {
        let count = (names.len() * 4).next_power_of_two().max(4);
        let shift = 64 - count.trailing_zeros();
        let mut table = Self { places: vec![None; count].into(), multiplier, shift };
        let mut moved = 0;
        for (name, value) in names {
            let head = word_at(name, 0);
            let mut index = table.index(head, name);
            while table.places[index].is_some() {
                index = (index + 1) % count;
                moved += 1;
            }
            table.places[index] = Some(Place { head, name: name.clone(), value: value.clone() });
        }
        (table, moved)
    }

    /// What is wanted of `name`, whose first eight bytes are `head` (zeros if there are fewer).
    #[inline(always)]
    pub(crate) fn find(&self, head: u64, name: &[u8]) -> Option<&T> {
        let mut index = self.index(head, name);
        loop {
            let place = self.places.get(index)?.as_ref()?;
            if place.head == head && place.name.len() == name.len() {
                let is_same = name.len() <= WORD || place.name[WORD..] == name[WORD..];
                if is_same {
                    return Some(&place.value);
                }
            }
            index = (index + 1) & (self.places.len() - 1);
        }
    }

    /// Where a name belongs.
    #[inline(always)]
    fn index(&self, head: u64, name: &[u8]) -> usize {
        let mut hash = (head ^ name.len() as u64).wrapping_mul(self.multiplier);
        if name.len() > WORD {
            hash = self.stir(hash, name);
        }
        (hash >> self.shift) as usize
    }

    #[inline]
    fn stir(&self, mut hash: u64, name: &[u8]) -> u64 {
        for start in (WORD..name.len()).step_by(WORD) {
            hash = (hash.rotate_left(29) ^ word_at(name, start)).wrapping_mul(self.multiplier);
        }
        hash
    }
}

/// The eight bytes from `start` on; zeros behind the end.
#[inline(always)]
pub(crate) fn word_at(bytes: &[u8], start: usize) -> u64 {
    match bytes.get(start..).and_then(<[u8]>::first_chunk) {
        Some(word) => u64::from_le_bytes(*word),
        None => last_word(bytes, start),
    }
}

/// The same where fewer than eight bytes are left.
#[inline]
fn last_word(bytes: &[u8], start: usize) -> u64 {
    let missing = (start + WORD).saturating_sub(bytes.len()).min(WORD);
    match bytes.last_chunk() {
        Some(word) => u64::from_le_bytes(*word).checked_shr(8 * missing as u32).unwrap_or(0),
        None => {
            let rest = bytes.get(start..).unwrap_or_default().iter().rev();
            rest.fold(0, |word, byte| word << 8 | u64::from(*byte))
        }
    }
}

/// The lowest `count` bytes of `word`, at most eight.
#[inline(always)]
pub(crate) fn low_bytes(word: u64, count: usize) -> u64 {
    if count < WORD { word & ((1 << (8 * count)) - 1) } else { word }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn find<'a>(table: &'a Names<usize>, name: &[u8]) -> Option<&'a usize> {
        table.find(word_at(name, 0), name)
    }

    proptest! {
        #[test]
        fn a_table_finds_its_names_and_no_others(
            names in prop::collection::btree_map("[ab\0]{0,19}", 0..99_usize, 0..60),
            others in prop::collection::vec("[ab\0]{0,19}", 60),
        ) {
            let names: BTreeMap<Box<[u8]>, usize> =
                names.into_iter().map(|(name, value)| (name.into_bytes().into(), value)).collect();
            let table = Names::new(&names.clone().into_iter().collect::<Vec<_>>());
            for (name, value) in &names {
                prop_assert_eq!(find(&table, name), Some(value));
            }
            for name in others {
                prop_assert_eq!(find(&table, name.as_bytes()), names.get(name.as_bytes()));
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
        let names: Vec<(Box<[u8]>, usize)> =
            (1..=1_024).map(|tag: usize| (tag.to_string().into_bytes().into(), tag)).collect();
        let table = Names::new(&names);
        assert!(names.iter().all(|(name, tag)| find(&table, name) == Some(tag)));
        let moved = MULTIPLIERS.map(|multiplier| Names::with(multiplier, &names).1);
        assert!(moved.iter().min() < Some(&200), "{moved:?}");
    }
}
