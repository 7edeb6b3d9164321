//! Pauses of a publisher whose runs give way to another's before they are registered.

use crate::Nanos;

/// Doublings of the pause at most.
const DOUBLINGS_MAX: u32 = 5;

/// Two publishers under one id that live at the same time: without pauses each would open a run
/// that is later than the other's, before that is registered, without end. The one with the smaller
/// session pauses, longer each time, so that the other's registration fits into a pause.
#[derive(Clone, Debug, Default)]
pub(super) struct Outbid {
    until: Nanos,
    pauses: u32,
}

impl Outbid {
    /// A run of the session `other` is later than one of `own`.
    pub(super) fn note(&mut self, own: u64, other: u64, retry: Nanos, now: Nanos) {
        if own < other {
            self.until = now + (retry << self.pauses);
            self.pauses = (self.pauses + 1).min(DOUBLINGS_MAX);
        }
    }

    /// Whether no run is to be opened now.
    pub(super) const fn is_waiting(&self, now: Nanos) -> bool {
        now < self.until
    }
}
