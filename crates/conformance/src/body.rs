//! Content of the `n`th message: both ends compute it, so that every byte can be checked.

/// The body of a stream's `number`th message: its length and bytes follow from the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Body {
    number: u64,
    length: usize,
}

impl Body {
    /// The `number`th body: mostly short, each fourth of any length up to `longest`.
    pub const fn new(number: u64, longest: usize) -> Self {
        let random = mix(number) as usize;
        let bound = if number.is_multiple_of(4) || longest < 200 { longest } else { 200 };
        Self { number, length: random % (bound + 1) }
    }

    /// The `number`th body, `length` bytes long.
    pub const fn of_length(number: u64, length: usize) -> Self {
        Self { number, length }
    }

    /// Length in bytes.
    pub const fn len(&self) -> usize {
        self.length
    }

    /// Whether it has no bytes.
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The bytes.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.length];
        self.write(&mut bytes);
        bytes
    }

    /// Writes it into `room`, which is as long as it.
    pub fn write(&self, room: &mut [u8]) {
        assert_eq!(room.len(), self.length, "the room is as long as was asked for");
        for (index, chunk) in room.chunks_mut(8).enumerate() {
            let word = mix(self.number ^ ((index as u64) << 40)).to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
    }

    /// Panics unless `bytes` are these.
    pub fn check(&self, bytes: &[u8]) {
        assert_eq!(bytes.len(), self.length, "the length of message {}", self.number);
        assert!(bytes == self.bytes(), "the bytes of message {}", self.number);
    }
}

/// Scatters a number over 64 bits.
const fn mix(number: u64) -> u64 {
    let mut word = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}
