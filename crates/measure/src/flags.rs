//! The publisher's flag bits.

use std::fmt;

/// Modes of sending: bits 1, 2 and 4 of the publisher's `-f`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// 1: put the time of sending into each message.
    pub timestamp: bool,
    /// 2: a full window is an error instead of a wait.
    pub non_blocking: bool,
    /// 4: copy each message through the thread-safe call instead of writing it in place.
    pub generic: bool,
}

impl Flags {
    /// The flags in `bits`.
    ///
    /// # Errors
    /// If a bit has no meaning.
    pub const fn from_bits(bits: u8) -> Result<Self, UnknownFlags> {
        if bits & !7 != 0 {
            return Err(UnknownFlags(bits));
        }
        Ok(Self { timestamp: bits & 1 != 0, non_blocking: bits & 2 != 0, generic: bits & 4 != 0 })
    }

    /// The bits of these flags.
    pub const fn bits(self) -> u8 {
        self.timestamp as u8 | (self.non_blocking as u8) << 1 | (self.generic as u8) << 2
    }
}

/// Flag bits without a meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownFlags(u8);

impl fmt::Display for UnknownFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "flags 0x{:02x}: only 1 (timestamps), 2 (non-blocking) and 4 (generic call) exist",
            self.0
        )
    }
}

impl std::error::Error for UnknownFlags {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_and_flags_are_the_same() {
        for bits in 0..8 {
            assert_eq!(Flags::from_bits(bits).unwrap().bits(), bits);
        }
        assert!(Flags::from_bits(3).unwrap().timestamp && !Flags::from_bits(3).unwrap().generic);
        assert!(Flags::from_bits(8).unwrap_err().to_string().contains("0x08"));
    }
}
