//! Counters of a server since its start.

/// Counters of a server since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Clients that connected.
    pub connected: u64,
    /// Clients rejected because the limit of clients was reached.
    pub rejected_clients: u64,
    /// Commands with a valid header.
    pub commands: u64,
    /// Commands answered with a failure.
    pub refused: u64,
    /// Logons with a wrong user or password.
    pub wrong_logons: u64,
    /// Connections closed before their logon to make room for others.
    pub evicted: u64,
    /// Connections closed because a frame stayed incomplete for too long, or incomplete frames took
    /// too much memory.
    pub partial_frames_dropped: u64,
    /// Messages published.
    pub published: u64,
    /// Published messages whose sequence number was not new.
    pub duplicates: u64,
    /// Messages written into send queues.
    pub delivered: u64,
    /// Clients disconnected because they read too slowly.
    pub slow_disconnects: u64,
    /// Times that a client went offline: its messages went to disk.
    pub went_offline: u64,
    /// Clients that are offline now.
    pub offline: u64,
    /// Bytes written to disk for offline clients.
    pub offline_bytes: u64,
    /// Records of views that could not be written.
    pub view_errors: u64,
    /// Changes of durable topics refused because the journal did not accept them.
    pub not_stored: u64,
    /// Times that the disk was full.
    pub disk_full: u64,
    /// Times that the disk failed for good.
    pub disk_failed: u64,
    /// Checkpoints that failed.
    pub checkpoints_failed: u64,
}
