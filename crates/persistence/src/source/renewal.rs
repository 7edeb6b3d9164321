//! Later runs of a publisher that is registered, for the sake of stores that have promised another.
//!
//! A store that has promised a run takes no messages of those before. If the publisher of that run
//! has died before it reached enough stores, the store would be out for as long as this publisher
//! lives. So this one registers a run that is later still, in the same session and with the same
//! sequences; its program sends on meanwhile.

use super::window::Window;
use crate::Nanos;
use lanecast_wire::store::{Ballot, StoreState};

/// Intervals of requests for which a promise stands before a later run is opened: a publisher that
/// lives has reached enough stores by then.
const INTERVALS: u64 = 10;
/// Doublings of that time at most.
const DOUBLINGS_MAX: u32 = 6;

/// When to register a later run.
#[derive(Clone, Debug, Default)]
pub(super) struct Renewal {
    /// The promise that keeps a store out, and when it was seen first.
    seen: Option<(Ballot, Nanos)>,
    doublings: u32,
    /// The run that was registered before, until the later one is.
    former: Option<Ballot>,
}

impl Renewal {
    /// Whether a later run is to be registered now, when `promised` keeps a store out.
    pub(super) fn is_due(&mut self, promised: Option<Ballot>, retry: Nanos, now: Nanos) -> bool {
        let since = self.seen.filter(|(it, _)| promised == Some(*it)).map_or(now, |seen| seen.1);
        self.seen = promised.map(|promised| (promised, since));
        self.seen.is_some() && now - since >= (INTERVALS * retry) << self.doublings
    }

    /// A run later than `former` is opened. The publisher of the promise may live after all: the
    /// next time is later.
    pub(super) fn begin(&mut self, former: Ballot) {
        (self.seen, self.former) = (None, Some(former));
        self.doublings = (self.doublings + 1).min(DOUBLINGS_MAX);
    }

    /// The run that was registered before.
    pub(super) const fn former(&self) -> Option<Ballot> {
        self.former
    }

    /// The later run is registered, or another publisher's is; returns whether there was one.
    pub(super) fn end(&mut self) -> bool {
        self.former.take().is_some()
    }
}

/// Whether the messages of a session that are not stable go on behind this log: no publisher of
/// another session has added to it.
pub(super) fn continues(window: &Window, session: u64, log: &StoreState) -> bool {
    let is_held = (window.first()..=window.next()).contains(&log.next);
    let start = log.runs.last().map_or(0, |run| run.start);
    is_held && (log.log.session == session || log.next == start)
}
