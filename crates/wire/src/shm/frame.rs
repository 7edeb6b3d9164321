//! One message in the ring.

use lanecast_base::sync::AtomicU32;

/// The bytes before a message's first: commit word and topic word.
pub const FRAME_HEADER: u64 = 8;
/// Frames start at multiples of this, so that the header and the first eight bytes of a message
/// always share a cache line.
pub const FRAME_ALIGN: u64 = 16;
/// The kind of a commit word that stands before a message.
pub const COMMITTED: u32 = 1;

const LENGTH_BITS: u32 = 28;
const LENGTH_MASK: u32 = (1 << LENGTH_BITS) - 1;

/// Header of each message, shared with readers.
#[derive(Debug)]
#[repr(C)]
pub struct FrameHeader {
    /// The commit word, see [`Word`]: written last. Zero: nothing here yet.
    pub commit: AtomicU32,
    /// The topic and the message's number on it, see [`TopicWord`].
    pub topic: AtomicU32,
}

/// A commit word: the kind in the top four bits, the message's length below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word(pub u32);

impl Word {
    /// Nothing here yet.
    pub const EMPTY: Self = Self(0);

    /// The word before a message of `length` bytes (less than 2^28).
    #[inline(always)]
    pub const fn message(length: u32) -> Self {
        debug_assert!(length <= LENGTH_MASK);
        Self((COMMITTED << LENGTH_BITS) | length)
    }

    /// The kind: 0 empty, 1 a message, others damaged.
    #[inline(always)]
    pub const fn kind(self) -> u32 {
        self.0 >> LENGTH_BITS
    }

    /// The message's length in bytes.
    #[inline(always)]
    pub const fn length(self) -> u32 {
        self.0 & LENGTH_MASK
    }

    /// The message's length, if this is the word of a message of at most `longest` bytes.
    #[inline(always)]
    pub const fn checked_length(self, longest: u32) -> Option<u32> {
        // One comparison for both: another kind makes the difference huge.
        let length = self.0.wrapping_sub(COMMITTED << LENGTH_BITS);
        if length <= longest { Some(length) } else { None }
    }
}

/// A topic word: the topic's number in the low 16 bits, the low 16 bits of the message's number on
/// that topic above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopicWord(pub u32);

impl TopicWord {
    /// The word of message `number` on `topic` (less than 2^16).
    #[inline(always)]
    pub const fn new(topic: u32, number: u64) -> Self {
        debug_assert!(topic < super::TOPICS_MAX);
        Self(topic | (number as u32) << 16)
    }

    /// The topic's number.
    #[inline(always)]
    pub const fn topic(self) -> u32 {
        self.0 & 0xffff
    }

    /// The low 16 bits of the message's number.
    #[inline(always)]
    pub const fn number(self) -> u16 {
        (self.0 >> 16) as u16
    }

    /// The word of the topic's next message.
    #[inline(always)]
    #[must_use]
    pub const fn next(self) -> Self {
        // A carry out of the number is lost, as it should be.
        Self(self.0.wrapping_add(1 << 16))
    }

    /// Whether message `number` of the topic may have this word.
    #[inline(always)]
    pub const fn fits(self, number: u64) -> bool {
        self.number() == number as u16
    }

    /// The largest number that fits and is at most `latest`.
    pub const fn number_up_to(self, latest: u64) -> Option<u64> {
        let behind = (latest as u16).wrapping_sub(self.number());
        latest.checked_sub(behind as u64)
    }
}

/// The bytes that a message of `length` bytes takes in the ring.
#[inline(always)]
pub const fn frame_bytes(length: u64) -> u64 {
    (length + FRAME_HEADER + FRAME_ALIGN - 1) & !(FRAME_ALIGN - 1)
}
