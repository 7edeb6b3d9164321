//! Beginning and end of a receiver's streams.

/// A receiver's first message of a stream of which it has consumed nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReceiverStart {
    /// At the oldest message that a store has.
    #[default]
    Oldest,
    /// At the end: with the first message that was received live, or behind the last one that the
    /// stores have. Streams that come later begin at their oldest message all the same.
    End,
    /// At this sequence; at the oldest message if that is later, and at the end if that is earlier.
    Sequence(u64),
    /// At the first message that a store wrote at this time or later, in nanoseconds since 1970; at
    /// the end if there is none.
    Time(u64),
}

/// A receiver's last message of each stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReceiverEnd {
    /// Nowhere: live messages follow.
    #[default]
    Never,
    /// In front of this sequence.
    Sequence(u64),
    /// In front of the first message that a store wrote at this time or later, in nanoseconds since
    /// 1970. The stores' clocks count: until they have passed it, messages are handed out as they
    /// come.
    Time(u64),
}

impl ReceiverEnd {
    /// Sequence after the last message, as far as that is known.
    pub(super) const fn sequence(self) -> Option<u64> {
        match self {
            Self::Never => Some(u64::MAX),
            Self::Sequence(sequence) => Some(sequence),
            Self::Time(_) => None,
        }
    }

    /// The time as it is asked for; 0 for none.
    pub(super) const fn unix_ns(self) -> u64 {
        match self {
            // 0 would ask for no end: nothing was written at that time either.
            Self::Time(0) => 1,
            Self::Time(unix_ns) => unix_ns,
            Self::Never | Self::Sequence(_) => 0,
        }
    }
}
