//! Indexes of all streams of a store, and the bytes of its journal so far.

use crate::index::{MessageRecord, StreamIndex};
use lanecast_wire::store::LogRecord;

/// Bytes that a record takes in the journal besides its body, about.
pub(crate) const RECORD_OVERHEAD: u64 = 56;

/// Positions of the messages of all streams, by the streams' numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Catalog {
    pub(crate) streams: Vec<StreamIndex>,
    /// Bytes of the records so far.
    pub(crate) journal_bytes: u64,
    /// Time of the last record, in nanoseconds since 1970.
    pub(crate) unix_ns: u64,
    /// Bytes of the journal after which a stream's next message has a mark.
    journal_stride: u64,
}

impl Catalog {
    /// An empty catalog, for a journal with segments of this length.
    pub(crate) const fn new(segment_bytes: u64) -> Self {
        let journal_stride = segment_bytes / 4;
        Self { streams: Vec::new(), journal_bytes: 0, unix_ns: 0, journal_stride }
    }

    /// A record of `length` bytes stands at `position` of the journal.
    pub(crate) fn note(
        &mut self,
        record: &LogRecord<'_>,
        position: u64,
        length: usize,
        unix_ns: u64,
    ) {
        let (journal_bytes, length) = (self.journal_bytes, length as u64 + RECORD_OVERHEAD);
        self.journal_bytes += length;
        self.unix_ns = self.unix_ns.max(unix_ns);
        let stream = record.stream() as usize;
        if let LogRecord::Stream { .. } = record {
            let count = self.streams.len().max(stream + 1);
            self.streams.resize_with(count, StreamIndex::default);
        }
        let journal_stride = self.journal_stride;
        let Some(index) = self.streams.get_mut(stream) else { return };
        let at = |sequence| MessageRecord {
            sequence,
            position,
            length,
            journal_bytes,
            unix_ns,
            journal_stride,
        };
        match record {
            LogRecord::Message { sequence, .. } => index.on_message(at(*sequence)),
            LogRecord::Copied { sequence, unix_ns: first, .. } => {
                let unix_ns = first_time(*first, unix_ns);
                index.on_message(MessageRecord { unix_ns, ..at(*sequence) });
            }
            LogRecord::Moved { sequence, unix_ns: first, .. } => {
                let unix_ns = first_time(*first, unix_ns);
                index.on_moved(MessageRecord { unix_ns, ..at(*sequence) });
            }
            LogRecord::Truncated { next, .. } => index.on_truncated(*next),
            LogRecord::Trimmed { first, .. } => index.on_trimmed(*first),
            _ => {}
        }
    }
}

/// Time of a moved or copied message: that of its first record, or of this one if it does not tell.
pub(crate) const fn first_time(first: u64, this: u64) -> u64 {
    if first == 0 { this } else { first }
}
