//! Configuration of a journal opened for writing.

use crate::error::OpenError;
use lanecast_wire::journal::{BODY_MAX, RECORD_HEADER, RECORDS_OFFSET, SEGMENT_MAX, SEGMENT_MIN};
use std::time::Duration;

/// Configuration of a journal opened for writing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalConfig {
    /// Length of new segments: a multiple of 8, from 16 KiB to 1 GiB. A body may be 8304 bytes
    /// shorter, and at most 16 MiB. Default 64 MiB.
    pub segment_bytes: u64,
    /// Number of segments preallocated ahead. Default 1.
    pub spare_segments: usize,
    /// Bytes that may wait for the disk before appends are refused. Default 16 MiB.
    pub max_pending_bytes: usize,
    /// Limits above which the oldest segments are removed. Default none.
    pub retention: Retention,
}

/// Limits above which the oldest segments are removed; each applies on its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// Total length of the segments with records.
    pub bytes: Option<u64>,
    /// Age of a segment's last record.
    pub age: Option<Duration>,
}

impl Default for JournalConfig {
    fn default() -> Self {
        Self {
            segment_bytes: 64 << 20,
            spare_segments: 1,
            max_pending_bytes: 16 << 20,
            retention: Retention::default(),
        }
    }
}

impl JournalConfig {
    /// Longest body of a record, in bytes.
    pub const fn longest_body(&self) -> u64 {
        // A seal stands behind the last record of each segment.
        let room = self.segment_bytes.saturating_sub(RECORDS_OFFSET + 2 * RECORD_HEADER);
        if room < BODY_MAX as u64 { room } else { BODY_MAX as u64 }
    }

    pub(crate) fn check(&self) -> Result<(), OpenError> {
        let fits = (SEGMENT_MIN..=SEGMENT_MAX).contains(&self.segment_bytes);
        if fits && self.segment_bytes.is_multiple_of(8) {
            Ok(())
        } else {
            Err(OpenError::Config("segment_bytes: choose a multiple of 8 from 16KiB to 1GiB"))
        }
    }
}
