//! Layout of a measuring message: its number and the times of sending.
//!
//! ```text
//!  0        8        16       24
//!  +--------+--------+--------+--------...
//!  |  word  |intended| actual | body
//!  +--------+--------+--------+--------...
//!
//!  word: bits 0..56 the message's number, counted from 0 through warm-up and measured part
//!        bit 63     stamped: `intended` and `actual` are times; else the body starts at 8
//!        bit 62     warm-up: counted, not measured
//!        bit 61     filled: each byte of the body is the low byte of the number
//! ```
//!
//! All numbers are little-endian; times are ticks of the host's clock. A message of 1 to 7
//! bytes holds as many low bytes of the word as fit, and one of 0 bytes is empty: such messages are
//! only counted, since a reader cannot know their number or flags.

/// Bytes that hold the word: from this size on, order and completeness are checked.
pub const NUMBERED: usize = 8;
/// Bytes that hold word and times: the smallest message that can be stamped.
pub const STAMPED: usize = 24;

/// The times of sending are in the message.
pub const TIMESTAMPED: u64 = 1 << 63;
/// The message is of the warm-up.
pub const WARM_UP: u64 = 1 << 62;
/// Each byte of the body was written and can be checked.
pub const FILLED: u64 = 1 << 61;

const NUMBER_BITS: u32 = 56;
const NUMBER_MASK: u64 = (1 << NUMBER_BITS) - 1;
const KNOWN_FLAGS: u64 = TIMESTAMPED | WARM_UP | FILLED;

/// The highest number a message can have.
pub const HIGHEST_NUMBER: u64 = NUMBER_MASK;

/// The times that a stamped message carries, in ticks of the host's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamps {
    /// Intended time of sending.
    pub intended: u64,
    /// Actual time of sending.
    pub actual: u64,
}

/// The number in `word`.
#[inline(always)]
pub const fn number(word: u64) -> u64 {
    word & NUMBER_MASK
}

/// The flags in `word`, in their place.
#[inline(always)]
pub const fn flags(word: u64) -> u64 {
    word & !NUMBER_MASK
}

/// Whether `word` can be from a measuring publisher: it has no unknown flag.
#[inline(always)]
pub const fn is_known(word: u64) -> bool {
    flags(word) & !KNOWN_FLAGS == 0
}

/// Writes the word: one store, if there is room for it.
#[inline(always)]
pub fn put_word(bytes: &mut [u8], word: u64) {
    match bytes.first_chunk_mut::<NUMBERED>() {
        Some(start) => *start = word.to_le_bytes(),
        None => {
            let length = bytes.len();
            bytes.copy_from_slice(&word.to_le_bytes()[..length]);
        }
    }
}

/// Reads the word: one load; none from a message that is too small for it.
#[inline(always)]
pub fn word(bytes: &[u8]) -> Option<u64> {
    bytes.first_chunk::<NUMBERED>().map(|start| u64::from_le_bytes(*start))
}

/// Writes the times, if there is room for them.
#[inline(always)]
pub fn put_stamps(bytes: &mut [u8], stamps: Stamps) {
    if let Some(start) = bytes.first_chunk_mut::<STAMPED>() {
        let (_, times) = start.split_at_mut(NUMBERED);
        let (intended, actual) = times.split_at_mut(8);
        intended.copy_from_slice(&stamps.intended.to_le_bytes());
        actual.copy_from_slice(&stamps.actual.to_le_bytes());
    }
}

/// Reads the times; none from a message that is too small for them.
#[inline(always)]
pub fn stamps(bytes: &[u8]) -> Option<Stamps> {
    let (_, times) = bytes.first_chunk::<STAMPED>()?.split_at(NUMBERED);
    let (intended, rest) = times.split_first_chunk::<8>()?;
    let actual = rest.first_chunk::<8>()?;
    Some(Stamps { intended: u64::from_le_bytes(*intended), actual: u64::from_le_bytes(*actual) })
}

/// Position of the body of a message with `word`.
#[inline(always)]
const fn body_start(word: u64) -> usize {
    if word & TIMESTAMPED != 0 { STAMPED } else { NUMBERED }
}

/// Writes each byte of the body of a message with `word`.
#[inline(always)]
pub fn fill_body(bytes: &mut [u8], word: u64) {
    if let Some(body) = bytes.get_mut(body_start(word)..) {
        body.fill(word as u8);
    }
}

/// Reads each byte of the body; whether all are as [`fill_body`] writes them.
#[inline(always)]
pub fn body_is_intact(bytes: &[u8], word: u64) -> bool {
    let Some(body) = bytes.get(body_start(word)..) else { return false };
    let byte = word as u8;
    let expected = u64::from_le_bytes([byte; 8]);
    let (chunks, rest) = body.as_chunks::<8>();
    // Differences are gathered, not looked for, so that no byte is skipped after the first one.
    let differences =
        chunks.iter().fold(0, |seen, chunk| seen | (u64::from_le_bytes(*chunk) ^ expected));
    let differences = rest.iter().fold(differences, |seen, &found| seen | u64::from(found ^ byte));
    differences == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_layout_is_the_documented_one() {
        let mut bytes = [0xaa; 26];
        let word = 0x0102_0304_0506 | TIMESTAMPED | FILLED;
        fill_body(&mut bytes, word);
        put_stamps(&mut bytes, Stamps { intended: 0x1112, actual: 0x2122 });
        put_word(&mut bytes, word);
        assert_eq!(bytes[..8], [6, 5, 4, 3, 2, 1, 0, 0xa0]);
        assert_eq!(bytes[8..16], [0x12, 0x11, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[16..24], [0x22, 0x21, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[24..], [6, 6]);
    }

    #[test]
    fn small_messages_hold_what_fits_and_are_not_read() {
        for length in 0..NUMBERED {
            let mut bytes = vec![0xaa; length];
            put_word(&mut bytes, 0x0807_0605_0403_0201);
            assert_eq!(bytes, [1, 2, 3, 4, 5, 6, 7][..length]);
            assert_eq!(word(&bytes), None);
            assert_eq!(stamps(&bytes), None);
        }
        assert_eq!(stamps(&[0; STAMPED - 1]), None);
        assert!(stamps(&[0; STAMPED]).is_some());
    }

    #[test]
    fn unknown_flags_are_noticed() {
        assert!(is_known(TIMESTAMPED | WARM_UP | FILLED | HIGHEST_NUMBER));
        assert!(!is_known(1 << 60) && !is_known(1 << 56));
    }

    proptest! {
        #[test]
        fn a_written_record_parses_to_itself(
            length in STAMPED..200, count in 0..=HIGHEST_NUMBER,
            stamped: bool, warm_up: bool, intended: u64, actual: u64, at: prop::sample::Index,
        ) {
            let kind = if stamped { TIMESTAMPED } else { 0 } | if warm_up { WARM_UP } else { 0 };
            let written = count | kind | FILLED;
            let mut bytes = vec![0; length];
            fill_body(&mut bytes, written);
            if stamped {
                put_stamps(&mut bytes, Stamps { intended, actual });
            }
            put_word(&mut bytes, written);

            let read = word(&bytes).unwrap();
            prop_assert_eq!(number(read), count);
            prop_assert_eq!(flags(read), kind | FILLED);
            prop_assert!(is_known(read));
            if stamped {
                prop_assert_eq!(stamps(&bytes), Some(Stamps { intended, actual }));
            }
            prop_assert!(body_is_intact(&bytes, read));

            let start = if stamped { STAMPED } else { NUMBERED };
            if start < length {
                bytes[start + at.index(length - start)] ^= 0x10;
                prop_assert!(!body_is_intact(&bytes, read));
            }
        }
    }
}
