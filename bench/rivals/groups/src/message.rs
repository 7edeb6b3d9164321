//! A message of all sides: kind (8 bits), 3 bytes of nothing, sender (32), sequence (64), stamp
//! (64: the time at which the message was due; in an end the number of messages sent), little
//! endian, and content: words of 64 bits that follow from sender and sequence.

/// Bytes before the content.
pub const HEADER_BYTES: usize = 24;
const WORD_BYTES: usize = 8;
/// An odd number whose multiples spread over all bits: 2^64 divided by the golden ratio.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The sender sees all members.
    Start,
    /// Counted at every member.
    Data,
    /// The sender has sent everything.
    End,
    /// Expects an answer of the one member that it goes to.
    Ping,
    /// The answer.
    Pong,
    /// As data, but before the clock starts.
    Warm,
    /// The sender has sent its warm-up.
    Ready,
}

impl Kind {
    const ALL: [Self; 7] =
        [Self::Start, Self::Data, Self::End, Self::Ping, Self::Pong, Self::Warm, Self::Ready];
}

/// The header of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Kind.
    pub kind: Kind,
    /// Number of the sender, from 0.
    pub sender: u32,
    /// Count of the sender's messages, from 0.
    pub sequence: u64,
    /// Time at which it was due, or the number of messages sent.
    pub stamp: u64,
}

impl Header {
    /// Writes it over the beginning of `into`, which is not shorter.
    pub fn write(self, into: &mut [u8]) {
        into[..4].copy_from_slice(&[self.kind as u8 + 1, 0, 0, 0]);
        into[4..8].copy_from_slice(&self.sender.to_le_bytes());
        into[8..16].copy_from_slice(&self.sequence.to_le_bytes());
        into[16..24].copy_from_slice(&self.stamp.to_le_bytes());
    }

    /// The header of `bytes`; none if they are no message.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let kind = *Kind::ALL.get(usize::from(*bytes.first()?).checked_sub(1)?)?;
        let sender = u32::from_le_bytes(*bytes.get(4..)?.first_chunk()?);
        let word = |at: usize| word_at(bytes, at);
        Some(Self { kind, sender, sequence: word(8)?, stamp: word(16)? })
    }
}

/// The part of a message's content that is written, and looked at by every receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// The last word: the figure is a rate, and reading a message whole would be most of it.
    Last,
    /// Every word.
    Whole,
}

impl Content {
    /// Offsets of the words in a message of `length` bytes.
    fn words(self, length: usize) -> impl Iterator<Item = (usize, u64)> {
        let count = length.saturating_sub(HEADER_BYTES) / WORD_BYTES;
        let first = if self == Self::Whole { 0 } else { count.saturating_sub(1) };
        (first..count).map(|index| (HEADER_BYTES + index * WORD_BYTES, index as u64))
    }

    /// Writes the content of a message of `sender`.
    pub fn write(self, sender: u32, sequence: u64, message: &mut [u8]) {
        let seed = seed(sender, sequence);
        for (at, index) in self.words(message.len()) {
            message[at..at + WORD_BYTES].copy_from_slice(&seed.wrapping_add(index).to_le_bytes());
        }
    }

    /// The digest with this message behind the earlier ones of its sender, and whether its content
    /// is as written.
    pub fn read(self, digest: u64, header: Header, message: &[u8]) -> (u64, bool) {
        let seed = seed(header.sender, header.sequence);
        let (mut digest, mut is_whole) = (step(digest, header.sequence), true);
        for (at, index) in self.words(message.len()) {
            let word = word_at(message, at).unwrap_or(0);
            is_whole &= word == seed.wrapping_add(index);
            digest = step(digest, word);
        }
        (digest, is_whole)
    }
}

const fn seed(sender: u32, sequence: u64) -> u64 {
    (sequence ^ (sender as u64) << 56).wrapping_mul(SPREAD)
}

const fn step(digest: u64, word: u64) -> u64 {
    (digest ^ word).rotate_left(23).wrapping_mul(SPREAD)
}

/// The word at an offset.
pub fn word_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_as_written() {
        let mut bytes = [0; HEADER_BYTES];
        let header = Header { kind: Kind::Ready, sender: 3, sequence: 1 << 40, stamp: 7 };
        header.write(&mut bytes);
        assert_eq!(Header::read(&bytes), Some(header));
        assert_eq!(Header::read(&bytes[..HEADER_BYTES - 1]), None);
        for kind in [0, 8, 255] {
            bytes[0] = kind;
            assert_eq!(Header::read(&bytes), None);
        }
    }

    #[test]
    fn digests_see_sequence_content_and_order() {
        let data = |sequence| Header { kind: Kind::Data, sender: 2, sequence, stamp: 0 };
        for content in [Content::Last, Content::Whole] {
            let digest = |order: [u64; 2], changed: Option<usize>| {
                order.into_iter().fold((0, true), |(digest, is_whole), sequence| {
                    let mut bytes = [0; 60];
                    content.write(2, sequence, &mut bytes);
                    if let Some(at) = changed {
                        bytes[at] ^= 1;
                    }
                    let (digest, is_this) = content.read(digest, data(sequence), &bytes);
                    (digest, is_whole && is_this)
                })
            };
            let (good, is_whole) = digest([5, 6], None);
            assert!(is_whole);
            assert_ne!(digest([6, 5], None).0, good, "order");
            assert_ne!(digest([5, 7], None).0, good, "sequence");
            let (other, is_whole) = digest([5, 6], Some(50));
            assert!(other != good && !is_whole, "the last word");
            assert_eq!(digest([5, 6], Some(30)).0 == good, content == Content::Last);
        }
    }
}
