//! The bytes of one message, little-endian, the same for every transport.
//!
//! ```text
//!    0        8                 16                24                     size
//!    +--------+-----------------+-----------------+----------------------+
//!    |sequence| sent (if asked) | due (if asked)  | body                 |
//!    +--------+-----------------+-----------------+----------------------+
//! ```
//!
//! `sent` is the stamp of the real send, `due` the time at which the load wanted the message to
//! leave. Without stamps the body begins at byte 8. The top bit of the sequence number marks
//! messages of the warm-up, which have a count of their own. A body that is written whole holds
//! the low byte of the sequence number in every byte, so that both ends can agree on its sum.

/// Marks the sequence numbers of the warm-up.
pub const WARMUP: u64 = 1 << 63;

const SENT: usize = 8;
const DUE: usize = 16;
const STAMPED_BODY: usize = 24;
const BYTES_OF_ONES: u64 = 0x0101_0101_0101_0101;

/// Stamps of one message, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamps {
    /// When the message was really sent.
    pub sent: u64,
    /// When the load wanted it to be sent.
    pub due: u64,
}

/// Bytes that a message needs at least.
pub const fn least_size(stamped: bool) -> usize {
    if stamped { STAMPED_BODY } else { SENT }
}

/// Writes the sequence number.
#[inline(always)]
pub fn write_sequence(bytes: &mut [u8], sequence: u64) {
    write_word(bytes, 0, sequence);
}

/// Reads the sequence number.
#[inline(always)]
pub fn sequence(bytes: &[u8]) -> u64 {
    word(bytes, 0)
}

/// Writes both stamps.
#[inline(always)]
pub fn write_stamps(bytes: &mut [u8], stamps: Stamps) {
    write_word(bytes, SENT, stamps.sent);
    write_word(bytes, DUE, stamps.due);
}

/// Reads both stamps.
#[inline(always)]
pub fn stamps(bytes: &[u8]) -> Stamps {
    Stamps { sent: word(bytes, SENT), due: word(bytes, DUE) }
}

/// Writes every byte of the body.
#[inline(always)]
pub fn write_body(bytes: &mut [u8], stamped: bool, sequence: u64) {
    bytes[least_size(stamped)..].fill(sequence as u8);
}

/// Reads every byte of the body and tells whether their sum is the one that was sent.
#[inline(always)]
pub fn body_is_whole(bytes: &[u8], stamped: bool, sequence: u64) -> bool {
    let body = &bytes[least_size(stamped)..];
    let (words, tail) = body.as_chunks::<8>();
    let sum = words.iter().fold(0_u64, |sum, w| sum.wrapping_add(u64::from_le_bytes(*w)));
    let tail_sum: u64 = tail.iter().map(|byte| u64::from(*byte)).sum();
    let low = sequence & 0xff;
    sum == (low * BYTES_OF_ONES).wrapping_mul(words.len() as u64)
        && tail_sum == low * tail.len() as u64
}

#[inline(always)]
fn word(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

#[inline(always)]
fn write_word(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut bytes = [0_u8; 61];
        write_sequence(&mut bytes, WARMUP | 77);
        write_stamps(&mut bytes, Stamps { sent: 3, due: 2 });
        write_body(&mut bytes, true, WARMUP | 77);
        assert_eq!(sequence(&bytes), WARMUP | 77);
        assert_eq!(stamps(&bytes), Stamps { sent: 3, due: 2 });
        assert!(body_is_whole(&bytes, true, WARMUP | 77));
    }

    #[test]
    fn one_wrong_byte_is_seen() {
        for at in 8..45 {
            let mut bytes = [0_u8; 45];
            write_body(&mut bytes, false, 200);
            assert!(body_is_whole(&bytes, false, 200));
            bytes[at] ^= 1;
            assert!(!body_is_whole(&bytes, false, 200), "byte {at}");
        }
    }
}
