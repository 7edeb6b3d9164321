//! Field names as words: the first eight bytes of a field.

use crate::name_table::{LONG, low_bytes};

/// Predicted name of a field at one position, with its target.
#[derive(Clone, Copy, Debug)]
pub(super) struct PredictedName<T> {
    /// Name and separator, shifted to the top of the word.
    word: u64,
    /// Bits of that shift.
    shift: u8,
    /// Length of the name.
    pub(super) length: u8,
    pub(super) target: T,
}

impl<T: Default> PredictedName<T> {
    /// Prediction that matches no name: a shifted word ends with zeros.
    pub(super) fn never() -> Self {
        Self { word: 1, shift: 8, length: 0, target: T::default() }
    }

    /// Whether the field that starts with `word` has this name.
    #[inline(always)]
    pub(super) fn matches(&self, word: u64) -> bool {
        word << (self.shift % 64) == self.word
    }
}

/// Start of a field.
#[derive(Clone, Copy)]
pub(super) struct Name {
    /// Name and separator, then zeros; the first eight bytes of a long name.
    pub(super) word: u64,
    /// Length of the name, 8 if it is long.
    pub(super) length: usize,
}

impl Name {
    /// Finds the separator `pair` in the first eight bytes of a field.
    #[inline(always)]
    pub(super) fn read(word: u64, pair: u8) -> Self {
        const LOW: u64 = u64::from_le_bytes([1; 8]);
        const HIGH: u64 = u64::from_le_bytes([0x80; 8]);
        let zeros = word ^ (u64::from(pair) * LOW);
        // The borrow can set bits above the first match; the lowest one is always right.
        let found = zeros.wrapping_sub(LOW) & !zeros & HIGH;
        let through_first = found ^ found.wrapping_sub(1);
        Self { word: word & through_first, length: found.trailing_zeros() as usize / 8 }
    }

    /// Prediction that the next message has this name at the same position.
    #[inline(always)]
    pub(super) fn prediction<T: Default>(self, pair: u8, target: T) -> PredictedName<T> {
        // A zero separator would be confused with the padding after the message.
        if self.length >= LONG || pair == 0 {
            return PredictedName::never();
        }
        let length = self.length as u8;
        let shift = 56 - 8 * length;
        PredictedName { word: self.word << shift, shift, length, target }
    }

    /// Whether a short name consists of digits.
    #[inline(always)]
    pub(super) fn is_tag(self) -> bool {
        // A digit is at most 9 above '0': adding 0x76 leaves its highest bit clear.
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
    fn a_prediction_matches_its_own_name_alone() {
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
