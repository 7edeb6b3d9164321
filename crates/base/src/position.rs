//! A position in a byte stream.

use core::fmt;

/// Bytes since the start of a stream, modulo 2^64.
///
/// Positions are compared by distance, never by size, so a stream may run through the wrap.
/// Two positions of one stream are less than 2^63 apart.
///
/// ```
/// use lanecast_base::Position;
/// let before = Position::new(u64::MAX - 15);
/// let after = before.plus(32);
/// assert_eq!(after, Position::new(16));
/// assert_eq!(after.since(before), 32);
/// assert!(after.is_past(before) && !before.is_past(after));
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Position(u64);

impl Position {
    /// The position `bytes` after the start.
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// Bytes since the start, modulo 2^64.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The position `bytes` further on.
    #[must_use]
    pub const fn plus(self, bytes: u64) -> Self {
        Self(self.0.wrapping_add(bytes))
    }

    /// The position `bytes` earlier.
    #[must_use]
    pub const fn minus(self, bytes: u64) -> Self {
        Self(self.0.wrapping_sub(bytes))
    }

    /// Bytes from `earlier` to here. Huge (2^63 and more) if `earlier` is in fact later.
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.wrapping_sub(earlier.0)
    }

    /// Whether this position lies strictly after `other`.
    pub const fn is_past(self, other: Self) -> bool {
        other.0.wrapping_sub(self.0).cast_signed() < 0
    }

    /// The earlier of two.
    #[must_use]
    pub const fn earliest(self, other: Self) -> Self {
        if self.is_past(other) { other } else { self }
    }

    /// Offset of this position in a ring of `mask + 1` bytes (a power of two).
    #[inline(always)]
    pub const fn offset(self, mask: u64) -> usize {
        (self.0 & mask) as usize
    }
}

impl fmt::Debug for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "@{}", self.0)
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
