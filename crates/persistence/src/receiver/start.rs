//! Beginning of a receiver's streams.

/// Where a receiver begins with a stream of which it has consumed nothing.
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
