//! Progress of a run over the events of one image.

use crate::numbered_stream::RunNumbers;
use crate::ring_reader::Walk;
use crate::stream_table::LifeProgress;

/// Kinds of pending events. A run has events of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pending {
    /// Topics that join, and the session's end.
    Life,
    /// Messages, read in place.
    InPlace,
    /// Messages, copied.
    Copied,
}

/// Progress over the events of a run, each kind with its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    pub(crate) life: LifeProgress,
    /// Over the messages in the ring.
    pub(crate) walk: Walk,
    pub(crate) numbers: RunNumbers,
    /// Number of copies passed.
    pub(crate) copies: usize,
}

impl Progress {
    /// Whether it is past `other`, over events of the same kind.
    #[inline]
    pub(crate) fn is_past(&self, other: &Self) -> bool {
        self.walk.at().is_past(other.walk.at()) || self.life > other.life
    }
}
