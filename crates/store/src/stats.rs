//! Numbers of a store, for its program and its counters file.

/// Numbers of a store since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreStats {
    /// Live messages that were read.
    pub messages: u64,
    /// Frames that were read.
    pub frames: u64,
    /// Frames that are none, or of another version.
    pub foreign_frames: u64,
    /// Frames of another version among them. Their senders are told of this store's version.
    pub other_versions: u64,
    /// The latest of these versions.
    pub other_version: Option<u8>,
    /// Streams beyond the most, topics and replies for which the transport had no room, and
    /// deregistrations that were not permitted.
    pub refused: u64,
    /// Requests among them of publishers for whose streams there is no room, each time they came.
    pub refused_streams: u64,
    /// Clients that are connected.
    pub clients: usize,
    /// Bytes that wait for the disk.
    pub pending_bytes: usize,
    /// Checkpoints that were written.
    pub checkpoints: u64,
    /// Records that were read back from the journal for a checkpoint: more were written, while the
    /// one before was, than the memory for their heads has room for.
    pub read_back: u64,
    /// Messages that retention has given up although a registered receiver had not consumed them.
    pub given_up: u64,
    /// Messages that were refused since no segment of the journal has room for them, each time they
    /// came: publishers wait for them in vain. See [`StoreServer::longest_kept`].
    ///
    /// [`StoreServer::longest_kept`]: crate::StoreServer::longest_kept
    pub too_long: u64,
    /// The disk is full: no messages are taken until there is space, then it goes on by itself. The
    /// rest of the last segment is left to the records of retention.
    pub is_disk_full: bool,
}
