//! Names of fields, as words: the eight bytes that a field starts with.

use crate::name_table::{LONG, low_bytes};

/// A name that a field may have, and what is wanted of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct PredictedName<T> {
    /// The name and the separator behind it, at the top of the word.
    word: u64,
    /// How far they had to be moved for that.
    shift: u8,
    /// The name's.
    pub(super) length: u8,
    pub(super) target: T,
}

impl<T: Default> PredictedName<T> {
    /// Fits no name: words that were moved end with zeros.
    pub(super) fn never() -> Self {
        Self { word: 1, shift: 8, length: 0, target: T::default() }
    }

    /// Whether this is the name of the field that starts with `word`.
    #[inline(always)]
    pub(super) fn matches(&self, word: u64) -> bool {
        word << (self.shift % 64) == self.word
    }
}

/// The start of a field.
#[derive(Clone, Copy)]
pub(super) struct Name {
    /// The name and the separator behind it, then zeros. If the name is long, its first bytes.
    pub(super) word: u64,
    /// 8 if the name is long.
    pub(super) length: usize,
}

impl Name {
    /// Finds out where the first `pair` is in the first eight bytes of a field.
    #[inline(always)]
    pub(super) fn read(word: u64, pair: u8) -> Self {
        const LOW: u64 = u64::from_le_bytes([1; 8]);
        const HIGH: u64 = u64::from_le_bytes([0x80; 8]);
        let zeros = word ^ (u64::from(pair) * LOW);
        // Bits behind the first one may be wrong, the first never is.
        let found = zeros.wrapping_sub(LOW) & !zeros & HIGH;
        let through_first = found ^ found.wrapping_sub(1);
        Self { word: word & through_first, length: found.trailing_zeros() as usize / 8 }
    }

    /// That the next message has it in the same place.
    #[inline(always)]
    pub(super) fn prediction<T: Default>(self, pair: u8, target: T) -> PredictedName<T> {
        // A separator of zero could not be told from the end of the message.
        if self.length >= LONG || pair == 0 {
            return PredictedName::never();
        }
        let length = self.length as u8;
        let shift = 56 - 8 * length;
        PredictedName { word: self.word << shift, shift, length, target }
    }

    /// Whether it has digits only, if it is short.
    #[inline(always)]
    pub(super) fn is_tag(self) -> bool {
        // A digit is at most 9 above '0', so that adding 0x76 leaves the highest bit alone.
        let digits = low_bytes(self.word ^ u64::from_le_bytes([b'0'; 8]), self.length);
        let over = digits.wrapping_add(u64::from_le_bytes([0x76; 8])) | digits;
        over & u64::from_le_bytes([0x80; 8]) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name_table::word_at;

    #[test]
    fn a_guess_fits_its_own_name_alone() {
        let prediction = |field: &[u8]| Name::read(word_at(field, 0), b'=').prediction(b'=', 7_u32);
        let matches =
            |prediction: &PredictedName<u32>, field: &[u8]| prediction.matches(word_at(field, 0));
        let tag = prediction(b"55=IBM;38=1;");
        assert_eq!((tag.length, tag.target), (2, 7));
        assert!(matches(&tag, b"55=MSFT;") && matches(&tag, b"55="));
        for other in [&b"55"[..], b"55;", b"5=5", b"155=x", b"555=x", b"", b"\0\0\0\0\0\0\0\0\0"] {
            assert!(!matches(&tag, other), "{other:?}");
        }
        let seven = prediction(b"OrderId=1");
        assert!(matches(&seven, b"OrderId=2") && !matches(&seven, b"OrderIds=2"));
        for none in [prediction(b"OrderQty=1"), PredictedName::never()] {
            for field in [&b"OrderQty=1"[..], b"", b"\0\0\0\0\0\0\0\x01", b"\x01\0\0\0\0\0\0\0"] {
                assert!(!matches(&none, field), "{field:?}");
            }
        }
    }
}
