//! What a sender has done.

/// Counts since the session began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderCounters {
    /// Messages published.
    pub messages: u64,
    /// Messages published on a topic that nobody wanted; they were not sent.
    pub unwanted: u64,
    /// Times that there was no room for a message.
    pub window_full: u64,
    /// Datagrams of data sent, each counted once for each receiver that it was sent to alone.
    pub datagrams: u64,
    /// Bytes of data sent.
    pub bytes: u64,
    /// Datagrams sent again.
    pub repairs: u64,
    /// Bytes sent again.
    pub repair_bytes: u64,
    /// Frames in which receivers asked for datagrams.
    pub naks: u64,
    /// Datagrams that were asked for when they were no longer kept.
    pub gone: u64,
    /// Times that repairs had to wait for their budget.
    pub over_budget: u64,
    /// Receivers let in.
    pub joined: u64,
    /// Receivers that left.
    pub left: u64,
    /// Receivers that fell silent.
    pub died: u64,
    /// Receivers ejected because they stood still.
    pub ejected: u64,
    /// Joins refused because there was no place.
    pub crowded: u64,
    /// Joins put off because too much was searched for topics' beginnings of late.
    pub searches_refused: u64,
    /// Session frames sent.
    pub sessions: u64,
    /// Frames that made no sense, or that were for another session.
    pub malformed: u64,
    /// Frames of receivers that are not joined.
    pub strangers: u64,
    /// Answers dropped because too many waited.
    pub answers_dropped: u64,
}
