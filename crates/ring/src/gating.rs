//! Those whose cursors an end must not pass.

use crate::cursor::{Cursor, DETACHED, sleep_on_any};
use crate::park_flag::Sleeper;
use lanecast_base::sync::AtomicU32;
use std::sync::Arc;
use std::time::Duration;

/// The cursors that hold one end back; the slowest decides.
#[derive(Debug)]
pub(crate) struct GatingCursors {
    /// The last ones before this end: those before them are never slower.
    gates: Box<[GatingCursor]>,
    /// Everybody before this end, who counts when one of the last has gone.
    all: Box<[Arc<Cursor>]>,
}

#[derive(Debug)]
struct GatingCursor {
    cursor: Arc<Cursor>,
    sleeper: Sleeper,
}

/// A mark that an end has set on one of its gates, to sleep on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ParkMark {
    gate: usize,
    wakes: u32,
}

impl GatingCursors {
    /// `last` of `all` those before an end.
    pub(crate) fn new(
        last: impl IntoIterator<Item = Arc<Cursor>>,
        all: impl IntoIterator<Item = Arc<Cursor>>,
    ) -> Self {
        Self {
            gates: last.into_iter().map(GatingCursor::new).collect(),
            all: all.into_iter().collect(),
        }
    }

    /// The slowest position; `None` if nobody is left.
    #[inline(always)]
    pub(crate) fn slowest(&mut self) -> Option<u64> {
        let mut positions = self.gates.iter().map(|gate| gate.cursor.get());
        let slowest = positions.try_fold(DETACHED, |slowest, position| {
            (position != DETACHED).then(|| slowest.min(position))
        });
        slowest.filter(|&slowest| slowest != DETACHED).or_else(|| self.slowest_remaining())
    }

    /// One is gone: from now on all that are left count, those that it came after among them.
    #[cold]
    #[inline(never)]
    fn slowest_remaining(&mut self) -> Option<u64> {
        let left = self.all.iter().filter(|cursor| cursor.get() != DETACHED);
        self.gates = left.map(|cursor| GatingCursor::new(Arc::clone(cursor))).collect();
        // Who goes only now counts no more: whom it came after is among these.
        let slowest = self.gates.iter().map(|gate| gate.cursor.get()).min();
        slowest.filter(|&slowest| slowest != DETACHED)
    }

    /// Sleeps at most `limit` while the slowest is at `seen`.
    #[cold]
    #[inline(never)]
    pub(crate) fn sleep(&mut self, seen: u64, limit: Duration) {
        let mark = self.mark(seen);
        sleep_on_any(mark.map(|mark| self.word(mark)), limit);
    }

    /// Marks the end asleep on a gate that is at `seen`, and stays there; the end must then look
    /// at what else it waits for. `None` if there is no such gate.
    pub(crate) fn mark(&mut self, seen: u64) -> Option<ParkMark> {
        let gate = self.gates.iter().position(|gate| gate.cursor.get() == seen)?;
        let GatingCursor { cursor, sleeper } = &mut self.gates[gate];
        let wakes = cursor.mark(sleeper);
        (cursor.get() == seen).then_some(ParkMark { gate, wakes })
    }

    /// The word that a marked end sleeps on, and what it holds until somebody wakes it. Between
    /// the two, nobody asks for the slowest.
    pub(crate) fn word(&self, mark: ParkMark) -> (&AtomicU32, u32) {
        (self.gates[mark.gate].cursor.word(), mark.wakes)
    }

    /// The end has found something without sleeping.
    #[inline(always)]
    pub(crate) fn found(&mut self) {
        for gate in &mut self.gates {
            gate.cursor.found(&mut gate.sleeper);
        }
    }
}

impl GatingCursor {
    fn new(cursor: Arc<Cursor>) -> Self {
        Self { cursor, sleeper: Sleeper::default() }
    }
}

impl Drop for GatingCursor {
    fn drop(&mut self) {
        self.cursor.forget(&mut self.sleeper);
    }
}
