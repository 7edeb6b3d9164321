//! Hash keys of field values: an equality test becomes one hash lookup.
//!
//! Equality depends on the types: the text `5.0` equals the number 5, but not the text `5`. Numbers
//! therefore have two kinds of keys, and a value probes the kinds that it can equal.

use crate::expr::Literal;
use crate::fields::Slot;
use crate::message::Message;
use crate::number::Number;
use crate::value::Value;
use siphasher::sip128::{Hasher128, SipHasher13};
use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};

/// A field value as a key of fixed length. Keys are equal if slot and value are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    head: u64,
    tail: u64,
    /// Slot, kind, and length of a text.
    mark: u64,
}

/// Kind of a key.
#[derive(Clone, Copy, Debug)]
enum KeyKind {
    /// A text that fits the key.
    Text,
    /// A longer text, by its keyed hash.
    LongText,
    /// A number literal: equals numbers and texts that spell the number.
    Number,
    /// A text literal that spells a number: besides the equal text it equals numbers.
    TextOfNumber,
}

const TEXT_MAX: usize = 16;

/// Keys of all filters, each with its bucket.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    buckets: HashMap<Key, u32, foldhash::fast::RandomState>,
    slots: Vec<KeyedSlot>,
    pub(crate) hasher: KeyHasher,
}

/// A slot with at least one key.
#[derive(Clone, Debug)]
struct KeyedSlot {
    slot: Slot,
    /// Number of keys of each kind, so that unused kinds are not probed.
    counts: [u32; 4],
}

/// 128-bit keyed hash of an expression's text. The random key rules out crafted collisions.
pub(crate) type ExprHash = (u64, u64);

/// SipHash with a random key: equal hashes mean equal texts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyHasher {
    seeds: [u64; 2],
}

impl KeyHasher {
    pub(crate) fn new() -> Self {
        // Random seeds keep a publisher from choosing texts that collide.
        let random = RandomState::new();
        Self { seeds: [random.hash_one(0), random.hash_one(1)] }
    }

    pub(crate) fn hash(&self, text: &[u8]) -> ExprHash {
        // 128 bits make a collision too improbable to compare the texts themselves.
        let mut hasher = SipHasher13::new_with_keys(self.seeds[0], self.seeds[1]);
        hasher.write(text);
        let hash = hasher.finish128();
        (hash.h1, hash.h2)
    }
}

impl Key {
    #[inline]
    fn new(slot: Slot, kind: KeyKind, length: usize, (head, tail): (u64, u64)) -> Self {
        // Slots have 16 bits, kinds far fewer, so the three parts of the mark never overlap.
        let mark = (length as u64) << 32 | (kind as u64) << 16 | slot.index() as u64;
        Self { head, tail, mark }
    }

    #[inline]
    fn of_text(slot: Slot, text: &[u8]) -> Self {
        // Short texts are their own key: length and words tell them apart without a hash.
        Self::new(slot, KeyKind::Text, text.len(), words(text))
    }

    fn of_long_text(slot: Slot, text: &[u8], hasher: &KeyHasher) -> Self {
        Self::new(slot, KeyKind::LongText, 0, hasher.hash(text))
    }

    #[inline]
    fn of_number(slot: Slot, kind: KeyKind, number: Number) -> Self {
        const FRACTION: u64 = 1 << 32;
        let words = match number.whole() {
            Some(whole) => (whole as u64, (whole >> 64) as u64),
            // Integers and fractions get disjoint keys; equal numbers of different types share one.
            None => (number.to_f64().to_bits(), FRACTION),
        };
        Self::new(slot, kind, 0, words)
    }

    /// Keys of the values that equal `literal`: one, two for a text that spells a number, none for
    /// NULL and NaN.
    pub(crate) fn of_literal(slot: Slot, literal: &Literal, hasher: &KeyHasher) -> Vec<Self> {
        let value = literal.value();
        // NaN equals no number, so it gets no key of a number.
        let number = value.number().filter(|number| !number.is_nan());
        let Value::Text(text) = value else {
            let key = number.map(|number| Self::of_number(slot, KeyKind::Number, number));
            return key.into_iter().collect();
        };
        // An empty text is NULL, which equals nothing.
        if text.is_empty() {
            return Vec::new();
        }
        let key = if text.len() <= TEXT_MAX {
            Self::of_text(slot, text)
        } else {
            Self::of_long_text(slot, text, hasher)
        };
        // A literal text that spells a number also equals numbers of a message.
        let number = number.map(|number| Self::of_number(slot, KeyKind::TextOfNumber, number));
        [key].into_iter().chain(number).collect()
    }

    /// Whether the key is of a number literal; a text can match such a key in addition to its own.
    pub(crate) fn is_number(&self) -> bool {
        self.kind() == KeyKind::Number as usize
    }

    fn slot(&self) -> usize {
        (self.mark & 0xFFFF) as usize
    }

    fn kind(&self) -> usize {
        (self.mark >> 16 & 0xFFFF) as usize
    }
}

/// A text of up to 16 bytes as two words, unique among texts of the same length.
#[inline]
fn words(text: &[u8]) -> (u64, u64) {
    // Head and tail overlap for 8 to 15 bytes; the length in the mark keeps such keys distinct.
    if let (Some(head), Some(tail)) = (text.first_chunk(), text.last_chunk()) {
        return (u64::from_le_bytes(*head), u64::from_le_bytes(*tail));
    }
    // The types of the target words select chunks of four bytes here.
    if let (Some(head), Some(tail)) = (text.first_chunk(), text.last_chunk()) {
        return (u32::from_le_bytes(*head).into(), u32::from_le_bytes(*tail).into());
    }
    // Three bytes at most are left: first, middle and last cover them all.
    match text {
        [] => (0, 0),
        [first, .., last] => {
            let middle = text[text.len() / 2];
            (u64::from(*first) | u64::from(middle) << 8 | u64::from(*last) << 16, 0)
        }
        [only] => (u64::from(*only), 0),
    }
}

impl Keys {
    pub(crate) fn new() -> Self {
        Self { buckets: HashMap::default(), slots: Vec::new(), hasher: KeyHasher::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.buckets.len()
    }

    pub(crate) fn get(&self, key: &Key) -> Option<u32> {
        self.buckets.get(key).copied()
    }

    pub(crate) fn insert(&mut self, key: Key, slot: Slot, bucket: u32) {
        self.buckets.insert(key, bucket);
        // A list and not a map, because every match walks all slots.
        let at = self.slots.iter().position(|keyed| keyed.slot == slot).unwrap_or_else(|| {
            self.slots.push(KeyedSlot { slot, counts: [0; 4] });
            self.slots.len() - 1
        });
        self.slots[at].counts[key.kind()] += 1;
    }

    pub(crate) fn remove(&mut self, key: &Key) {
        self.buckets.remove(key);
        let position = self.slots.iter().position(|keyed| keyed.slot.index() == key.slot());
        if let Some(at) = position {
            let counts = &mut self.slots[at].counts;
            // The count is not 0 while a key of this kind exists.
            counts[key.kind()] -= 1;
            // Slots without keys go, because every match would visit them.
            if *counts == [0; 4] {
                self.slots.swap_remove(at);
            }
        }
    }

    /// Calls `visit` for the buckets of all keys of `message`. Returns whether a bucket may repeat.
    #[inline(always)]
    pub(crate) fn find(&self, message: &Message<'_>, mut visit: impl FnMut(u32)) -> bool {
        let mut repeats = false;
        for keyed in &self.slots {
            // Most filters test for a text, and most messages contain one value.
            if keyed.counts[KeyKind::Number as usize] == 0
                && let Some(text) = message.row.only_text(keyed.slot, message.bytes)
                && text.len() <= TEXT_MAX
            {
                self.visit_bucket(&Key::of_text(keyed.slot, text), &mut visit);
            } else {
                repeats |= self.find_slow(keyed, message, &mut visit);
            }
        }
        repeats
    }

    /// Probes all other values. Out of line, to keep the common case in registers.
    #[inline(never)]
    fn find_slow(
        &self,
        keyed: &KeyedSlot,
        message: &Message<'_>,
        visit: &mut dyn FnMut(u32),
    ) -> bool {
        // Several values can lead to one bucket, so ids may repeat.
        if message.row.has_several(keyed.slot) {
            for value in message.row.values(keyed.slot, message.bytes) {
                self.probe(keyed, value, || value.number(), visit);
            }
            return true;
        }
        let value = message.row.value(keyed.slot, message.bytes);
        // Parsing waits until a filter needs the number, and the row keeps the result.
        let number = || message.row.number(keyed.slot, message.bytes);
        self.probe(keyed, value, number, visit);
        false
    }

    #[inline(always)]
    fn visit_bucket(&self, key: &Key, visit: &mut (impl FnMut(u32) + ?Sized)) {
        if let Some(bucket) = self.buckets.get(key) {
            visit(*bucket);
        }
    }

    #[inline]
    fn probe(
        &self,
        keyed: &KeyedSlot,
        value: Value<'_>,
        number: impl FnOnce() -> Option<Number>,
        visit: &mut dyn FnMut(u32),
    ) {
        let slot = keyed.slot;
        let [texts, long_texts, numbers, texts_of_numbers] = keyed.counts.map(|count| count > 0);
        let mut visit_bucket = |key: Key| self.visit_bucket(&key, visit);
        match value {
            // NULL equals nothing, so no bucket is probed.
            Value::Null => return,
            Value::Text(text) if text.len() <= TEXT_MAX => {
                if texts {
                    visit_bucket(Key::of_text(slot, text));
                }
            }
            Value::Text(text) => {
                if long_texts {
                    visit_bucket(Key::of_long_text(slot, text, &self.hasher));
                }
            }
            _ => {
                if texts_of_numbers && let Some(number) = value.number() {
                    visit_bucket(Key::of_number(slot, KeyKind::TextOfNumber, number));
                }
            }
        }
        // Parsing a text as a number is skipped unless some filter needs it.
        if numbers && let Some(number) = number().filter(|number| !number.is_nan()) {
            visit_bucket(Key::of_number(slot, KeyKind::Number, number));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::words;
    use std::collections::HashSet;

    #[test]
    fn texts_of_one_length_have_different_words() {
        for length in 1..=16 {
            let mut seen = HashSet::new();
            for at in 0..length {
                for byte in 0..=255 {
                    let mut text = vec![b'x'; length];
                    text[at] = byte;
                    seen.insert(words(&text));
                }
            }
            assert_eq!(seen.len(), length * 255 + 1);
        }
    }
}
