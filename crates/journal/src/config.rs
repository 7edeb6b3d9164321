//! What an owner may choose.

use crate::error::OpenError;
use lanecast_wire::journal::{SEGMENT_MAX, SEGMENT_MIN};
use std::time::Duration;

/// What an owner may choose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalConfig {
    /// The length of new segments: a multiple of 8, from 16 KiB to 1 GiB. The longest body is
    /// 8304 bytes shorter, and at most 16 MiB. Default 64 MiB.
    pub segment_bytes: u64,
    /// How many segments are prepared ahead, so that going on in the next one waits for nothing.
    /// Default 1.
    pub spare_segments: usize,
    /// How much may wait in memory to be written before appending is refused. Default 16 MiB.
    pub max_pending_bytes: usize,
    /// What is removed when. By default nothing is.
    pub retention: Retention,
}

/// When the oldest segments are removed; whichever limit is passed first counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// The most bytes of segments with records.
    pub bytes: Option<u64>,
    /// The greatest age of a segment's last record.
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
    pub(crate) fn check(&self) -> Result<(), OpenError> {
        let fits = (SEGMENT_MIN..=SEGMENT_MAX).contains(&self.segment_bytes);
        if fits && self.segment_bytes.is_multiple_of(8) {
            Ok(())
        } else {
            Err(OpenError::Config("segment_bytes: choose a multiple of 8 from 16KiB to 1GiB"))
        }
    }
}
