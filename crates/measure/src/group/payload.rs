//! Bytes of a message: kind, check, sender, number, and content that depends on both.
//!
//! The content is a piece of one table of pseudo-random bytes. Its place in the table follows from
//! sender and number, so writing it is one copy, checking it one comparison, and the content of
//! another message does not pass.

/// Bytes before the content: kind, three of padding, check (u32), sender (u64), number (u64), all
/// little endian.
pub const HEADER_BYTES: usize = 24;

/// Places in the table at which contents begin.
const PLACES: u64 = 4096;

/// Kinds of messages. A status has a text of JSON behind its kind.
pub(super) const STATUS: u8 = 1;
const DATA: u8 = 2;
const WARM_UP: u8 = 3;

/// A checked message of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Data {
    pub(super) is_warm_up: bool,
    pub(super) sender: u64,
    pub(super) number: u64,
}

/// Writes and checks messages of one size.
#[derive(Debug)]
pub(super) struct Payload {
    table: Vec<u8>,
    size: usize,
}

impl Payload {
    pub(super) fn new(size: usize) -> Self {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let byte = |_| {
            state = mix(state, 1);
            state as u8
        };
        Self { table: (0..size + PLACES as usize).map(byte).collect(), size }
    }

    /// Writes a message over `into`, which has the size of messages.
    #[inline]
    pub(super) fn write(&self, data: Data, into: &mut [u8]) {
        let hash = hash(data);
        into[0] = if data.is_warm_up { WARM_UP } else { DATA };
        into[1..4].fill(0);
        into[4..8].copy_from_slice(&(hash as u32).to_le_bytes());
        into[8..16].copy_from_slice(&data.sender.to_le_bytes());
        into[16..24].copy_from_slice(&data.number.to_le_bytes());
        let content = into.len() - HEADER_BYTES;
        into[HEADER_BYTES..].copy_from_slice(self.content(hash, content));
    }

    /// The message in `bytes`; none if a byte of it is not as its sender wrote it.
    #[inline]
    pub(super) fn read(&self, bytes: &[u8]) -> Option<Data> {
        if bytes.len() != self.size {
            return None;
        }
        let is_warm_up = match bytes[..4] {
            [DATA, 0, 0, 0] => false,
            [WARM_UP, 0, 0, 0] => true,
            _ => return None,
        };
        let word = |at: usize| Some(u64::from_le_bytes(bytes[at..at + 8].try_into().ok()?));
        let data = Data { is_warm_up, sender: word(8)?, number: word(16)? };
        let hash = hash(data);
        let is_whole = bytes[4..8] == (hash as u32).to_le_bytes()
            && bytes[HEADER_BYTES..] == *self.content(hash, self.size - HEADER_BYTES);
        is_whole.then_some(data)
    }

    #[inline]
    fn content(&self, hash: u64, size: usize) -> &[u8] {
        let place = ((hash >> 32) % PLACES) as usize;
        &self.table[place..place + size]
    }
}

#[inline]
fn hash(data: Data) -> u64 {
    mix(mix(data.sender, data.number), u64::from(data.is_warm_up))
}

/// The finalizer of splitmix64 over both words.
#[inline]
fn mix(a: u64, b: u64) -> u64 {
    let mut x = a ^ b.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_checked() {
        let payload = Payload::new(100);
        for is_warm_up in [false, true] {
            let data = Data { is_warm_up, sender: 0xabcd, number: 77 };
            let mut bytes = [0; 100];
            payload.write(data, &mut bytes);
            assert_eq!(payload.read(&bytes), Some(data));
            for at in 0..bytes.len() {
                bytes[at] ^= 0x10;
                assert_eq!(payload.read(&bytes), None, "byte {at}");
                bytes[at] ^= 0x10;
            }
            assert_eq!(payload.read(&bytes[..99]), None);
            assert_eq!(payload.read(&[]), None);
        }
    }

    #[test]
    fn the_content_of_another_message_does_not_pass() {
        let payload = Payload::new(1000);
        let message = |number| {
            let mut bytes = vec![0; 1000];
            payload.write(Data { is_warm_up: false, sender: 1, number }, &mut bytes);
            bytes
        };
        let (mut one, other) = (message(1), message(2));
        one[HEADER_BYTES..].copy_from_slice(&other[HEADER_BYTES..]);
        assert_eq!(payload.read(&one), None);
    }

    #[test]
    fn the_smallest_message_is_a_header() {
        let payload = Payload::new(HEADER_BYTES);
        let data = Data { is_warm_up: false, sender: u64::MAX, number: 0 };
        let mut bytes = [0; HEADER_BYTES];
        payload.write(data, &mut bytes);
        assert_eq!(payload.read(&bytes), Some(data));
    }
}
