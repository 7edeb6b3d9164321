//! The log of a store: one sequence of records, of all streams.

use lanecast_wire::store::LogRecord;

/// The log has no room now: the disk is too slow, or full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the log has no room now")]
pub struct LogFull;

/// A store's log. It never waits for the disk.
pub trait StoreLog {
    /// Appends a record; returns its position. Positions ascend.
    ///
    /// # Errors
    /// If there is no room now.
    fn append(&mut self, record: &LogRecord<'_>) -> Result<u64, LogFull>;

    /// Records up to this position are on disk.
    fn persisted(&self) -> u64;

    /// Sequence of the first message of `stream` that was written at this time or later, in
    /// nanoseconds since 1970: those before it are older. `None` if that has to be looked up, and
    /// is to be asked for again.
    fn first_since(&self, stream: u32, unix_ns: u64) -> Option<u64>;

    /// Bytes of the messages of `stream` from sequence `from` on, as the log keeps them, to about
    /// 64 KiB.
    fn bytes_from(&self, stream: u32, from: u64) -> u64;

    /// Time of the next record, in nanoseconds since 1970.
    fn unix_ns(&self) -> u64;

    /// Gives the messages of `stream` from sequence `from` on to `visit`, each with its sequence
    /// and the time at which it was written first, in order and without gaps, until it returns
    /// false or the log ends. Void messages are left out. A log may stop before, and give none,
    /// when it has read much for them: asked for `from` again, it goes on there.
    fn read(&self, stream: u32, from: u64, visit: &mut dyn FnMut(u64, u64, &[u8]) -> bool);
}
