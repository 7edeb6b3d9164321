//! What a server has done.

/// What has been done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Clients that came.
    pub connected: u64,
    /// Clients that were turned away, as there were too many.
    pub rejected_clients: u64,
    /// Commands that were understood.
    pub commands: u64,
    /// Commands that were refused.
    pub refused: u64,
    /// Logons whose user or password was wrong.
    pub wrong_logons: u64,
    /// Connections that were let go before they came in, as too many were coming in.
    pub evicted: u64,
    /// Connections that were let go as a frame of theirs did not come to its end in time, or such
    /// frames took too much memory.
    pub partial_frames_dropped: u64,
    /// Messages that were published.
    pub published: u64,
    /// Of those the ones that had been published before.
    pub duplicates: u64,
    /// Messages put into outboxes.
    pub delivered: u64,
    /// Clients that were disconnected because they read too slowly.
    pub slow_disconnects: u64,
    /// How often a client fell behind, so that what waited for it went to disk.
    pub went_offline: u64,
    /// Clients for which something waits on disk now.
    pub offline: u64,
    /// Bytes that went to disk for clients that had fallen behind.
    pub offline_bytes: u64,
    /// Records of views that could not be written.
    pub view_errors: u64,
    /// Changes of durable topics that were refused, as the disk took none.
    pub not_stored: u64,
    /// How often the disk was full.
    pub disk_full: u64,
    /// How often it has failed for good.
    pub disk_failed: u64,
    /// Checkpoints that could not be taken.
    pub checkpoints_failed: u64,
}
