//! Gating cursors: those that a producer or consumer must not pass.

use crate::cursor::{Cursor, CursorMark, DETACHED, SleepWord, sleep_on_any};
use crate::park_flag::Sleeper;
use std::sync::Arc;
use std::time::Duration;

/// The cursors that gate one end; the slowest decides.
#[derive(Debug)]
pub(crate) struct GatingCursors {
    /// The ends that this one follows directly: their own predecessors are never slower.
    gates: Box<[GatingCursor]>,
    /// All ends before this one, which count once a direct predecessor is gone.
    all: Box<[Arc<Cursor>]>,
}

#[derive(Debug)]
struct GatingCursor {
    cursor: Arc<Cursor>,
    sleeper: Sleeper,
}

/// A park flag that an end has set on one of its gating cursors, to sleep on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ParkMark {
    gate: usize,
    mark: CursorMark,
}

impl GatingCursors {
    /// `last`: the direct predecessors among `all` ends before this one.
    pub(crate) fn new(
        last: impl IntoIterator<Item = Arc<Cursor>>,
        all: impl IntoIterator<Item = Arc<Cursor>>,
    ) -> Self {
        Self {
            gates: last.into_iter().map(GatingCursor::new).collect(),
            all: all.into_iter().collect(),
        }
    }

    /// The slowest position; `None` if all ends are gone.
    #[inline(always)]
    pub(crate) fn slowest(&mut self) -> Option<u64> {
        let mut positions = self.gates.iter().map(|gate| gate.cursor.get());
        let slowest = positions.try_fold(DETACHED, |slowest, position| {
            (position != DETACHED).then(|| slowest.min(position))
        });
        slowest.filter(|&slowest| slowest != DETACHED).or_else(|| self.slowest_remaining())
    }

    /// After one end is gone, gates on all remaining ends, including its predecessors.
    #[cold]
    #[inline(never)]
    fn slowest_remaining(&mut self) -> Option<u64> {
        let left = self.all.iter().filter(|cursor| cursor.get() != DETACHED);
        self.gates = left.map(|cursor| GatingCursor::new(Arc::clone(cursor))).collect();
        // An end that leaves meanwhile is skipped: its predecessors are among these.
        let slowest = self.gates.iter().map(|gate| gate.cursor.get()).min();
        slowest.filter(|&slowest| slowest != DETACHED)
    }

    /// Whether `tail` is the only one: nothing but the producer is before this end, or no longer.
    #[inline]
    pub(crate) fn is_only(&self, tail: &Arc<Cursor>) -> bool {
        matches!(&*self.gates, [gate] if Arc::ptr_eq(&gate.cursor, tail))
    }

    /// Whether one of them is gone, as the next look at the slowest finds.
    pub(crate) fn has_departed(&self) -> bool {
        self.gates.iter().any(|gate| gate.cursor.get() == DETACHED)
    }

    /// Sleeps at most `limit` while the slowest is not beyond `seen`.
    #[cold]
    #[inline(never)]
    pub(crate) fn sleep(&mut self, seen: u64, limit: Duration) {
        let mark = self.mark(seen);
        sleep_on_any(mark.map(|mark| self.word(mark)), limit);
    }

    /// Sets the park flag of a gating cursor that does not go beyond `seen`; the end must then
    /// check its other conditions. `None` if all cursors are beyond `seen`.
    ///
    /// A cursor can be before `seen`: the producer's, for a consumer that has pulled what a stride
    /// holds back.
    pub(crate) fn mark(&mut self, seen: u64) -> Option<ParkMark> {
        let gate = self.gates.iter().position(|gate| gate.cursor.get() <= seen)?;
        let GatingCursor { cursor, sleeper } = &mut self.gates[gate];
        let mark = cursor.mark(sleeper);
        (cursor.get() <= seen).then_some(ParkMark { gate, mark })
    }

    /// The word to sleep on after [`mark`](Self::mark), with its value until a wake-up. No call of
    /// [`slowest`](Self::slowest) may lie between the two.
    pub(crate) fn word(&self, ParkMark { gate, mark }: ParkMark) -> SleepWord<'_> {
        self.gates[gate].cursor.word(mark)
    }

    /// Notes a success without a sleep.
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
