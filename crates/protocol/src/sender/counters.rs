//! Counters of a sender.

/// Counts since the session began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderCounters {
    /// Messages published.
    pub messages: u64,
    /// Messages published on a topic without subscribers; they were not sent.
    pub unsubscribed: u64,
    /// Messages refused because the window was full.
    pub window_full: u64,
    /// Data datagrams sent; unicast counts each receiver's copy.
    pub datagrams: u64,
    /// Bytes of data sent.
    pub bytes: u64,
    /// Datagrams sent again.
    pub repairs: u64,
    /// Bytes sent again.
    pub repair_bytes: u64,
    /// Parity frames sent unasked; unicast counts each receiver's.
    pub parity: u64,
    /// Bytes of parity sent unasked.
    pub parity_bytes: u64,
    /// Parity frames sent as answers to NAKs.
    pub parity_repairs: u64,
    /// NAKs received.
    pub naks: u64,
    /// Datagrams requested after the window had dropped them.
    pub gone: u64,
    /// Times that repairs waited for their budget.
    pub over_budget: u64,
    /// Receivers admitted.
    pub joined: u64,
    /// Receivers that left.
    pub left: u64,
    /// Receivers dropped after the liveness timeout.
    pub died: u64,
    /// Receivers ejected because they made no progress.
    pub ejected: u64,
    /// Joins rejected because the session had its most receivers.
    pub rejected: u64,
    /// Joins deferred because the budget for searching the window was spent.
    pub joins_deferred: u64,
    /// Session frames sent.
    pub session_frames: u64,
    /// Malformed frames, and frames of another session.
    pub malformed: u64,
    /// Frames of receivers that are not joined.
    pub unknown_receivers: u64,
    /// Control frames dropped because too many were queued.
    pub control_dropped: u64,
}
