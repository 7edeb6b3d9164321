//! Stamp of a ping, which its pong returns unchanged.
//!
//! ```text
//!  0        8        16
//!  +--------+--------+--------...
//!  | actual |intended| body
//!  +--------+--------+--------...
//! ```
//!
//! Both are ticks of the ping's clock, little-endian; only the ping reads them. An actual time of 0
//! means: not to be recorded. Intended times rise from message to message and so identify
//! messages, too.

/// Bytes that hold both times: the smallest ping.
pub const STAMP: usize = 16;

/// Times of sending of a ping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// Actual time; 0 for a message that is not measured.
    pub(crate) actual: u64,
    /// Intended time.
    pub(crate) intended: u64,
}

impl Stamp {
    /// Writes it, if there is room.
    #[inline(always)]
    pub(crate) fn put(self, bytes: &mut [u8]) {
        if let Some(start) = bytes.first_chunk_mut::<STAMP>() {
            let (actual, intended) = start.split_at_mut(8);
            actual.copy_from_slice(&self.actual.to_le_bytes());
            intended.copy_from_slice(&self.intended.to_le_bytes());
        }
    }

    /// Reads it; none from a message that is too small.
    #[inline(always)]
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let (actual, rest) = bytes.split_first_chunk::<8>()?;
        let intended = rest.first_chunk::<8>()?;
        Some(Self { actual: u64::from_le_bytes(*actual), intended: u64::from_le_bytes(*intended) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layout_is_the_documented_one() {
        let mut bytes = [0xaa; 17];
        Stamp { actual: 0x0102, intended: 0x1112_1314 }.put(&mut bytes);
        assert_eq!(bytes, [2, 1, 0, 0, 0, 0, 0, 0, 0x14, 0x13, 0x12, 0x11, 0, 0, 0, 0, 0xaa]);
        assert_eq!(Stamp::read(&bytes), Some(Stamp { actual: 0x0102, intended: 0x1112_1314 }));
    }

    #[test]
    fn messages_shorter_than_a_stamp_are_unchanged() {
        let mut bytes = [7; STAMP - 1];
        Stamp { actual: 1, intended: 2 }.put(&mut bytes);
        assert_eq!((bytes, Stamp::read(&bytes)), ([7; STAMP - 1], None));
    }
}
