//! Room of a receiver-paced stream: how much it may still hold for its receivers.

use crate::log::{LogFull, StoreLog};
use core::ops::Range;
use std::fmt;

/// Bytes that a message takes in a log beside its own, about.
const RECORD_OVERHEAD: u64 = 64;

/// Bytes that a stream may hold while its receivers have not consumed them. Looks at the log only
/// when those that it had found are used up and receivers have come further since. Follows from the
/// log, so it is no part of the state.
#[derive(Clone)]
pub(super) struct UnconsumedRoom {
    bound: Option<u64>,
    /// Bytes that were found and are not used.
    left: u64,
    /// Sequence up to which messages were consumed when the last one was refused.
    refused_at: Option<u64>,
}

impl fmt::Debug for UnconsumedRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UnconsumedRoom")
    }
}

impl UnconsumedRoom {
    /// Room up to `bound`; without one there is always some.
    pub(super) const fn new(bound: Option<u64>) -> Self {
        Self { bound, left: 0, refused_at: None }
    }

    /// The log is another one now.
    pub(super) const fn forget(&mut self) {
        (self.left, self.refused_at) = (0, None);
    }

    /// Sequence up to which messages were consumed when the last one found no room.
    pub(super) const fn refused_at(&self) -> Option<u64> {
        self.refused_at
    }

    /// Takes the room of a message of `length` bytes, behind those that are `unconsumed`. One is
    /// always taken, however small the bound.
    pub(super) fn take(
        &mut self,
        stream: u32,
        length: usize,
        unconsumed: Range<u64>,
        log: &impl StoreLog,
    ) -> Result<(), LogFull> {
        let Some(bound) = self.bound else { return Ok(()) };
        let length = length as u64 + RECORD_OVERHEAD;
        if self.left < length && self.refused_at == Some(unconsumed.start) {
            return Err(LogFull);
        }
        if self.left < length {
            self.left = if unconsumed.is_empty() {
                bound.max(length)
            } else {
                bound.saturating_sub(log.bytes_from(stream, unconsumed.start))
            };
        }
        self.refused_at = (self.left < length).then_some(unconsumed.start);
        self.left = if self.refused_at.is_some() { 0 } else { self.left - length };
        if self.refused_at.is_some() { Err(LogFull) } else { Ok(()) }
    }
}
