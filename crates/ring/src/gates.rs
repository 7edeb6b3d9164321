//! Those whose cursors an end must not pass.

use crate::asleep::Sleeper;
use crate::cursor::{Cursor, DETACHED};
use lanecast_base::sync::AtomicU32;
use std::sync::Arc;
use std::time::Duration;

/// The cursors that hold one end back; the slowest decides.
#[derive(Debug)]
pub(crate) struct Gates {
    gates: Box<[Gate]>,
}

#[derive(Debug)]
struct Gate {
    cursor: Arc<Cursor>,
    sleeper: Sleeper,
}

/// A mark that an end has set on one of its gates, to sleep on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    gate: usize,
    wakes: u32,
}

impl Gates {
    pub(crate) fn new(cursors: impl IntoIterator<Item = Arc<Cursor>>) -> Self {
        let gate = |cursor| Gate { cursor, sleeper: Sleeper::default() };
        Self { gates: cursors.into_iter().map(gate).collect() }
    }

    /// The slowest position; [`DETACHED`] if nobody is left.
    #[inline(always)]
    pub(crate) fn slowest(&self) -> u64 {
        let positions = self.gates.iter().map(|gate| gate.cursor.get());
        positions.fold(DETACHED, u64::min)
    }

    /// The slowest position, unless somebody or everybody has gone: others gate from then on.
    pub(crate) fn slowest_of_all(&self) -> Option<u64> {
        let mut positions = self.gates.iter().map(|gate| gate.cursor.get());
        let slowest = positions.try_fold(DETACHED, |slowest, position| {
            (position != DETACHED).then(|| slowest.min(position))
        });
        slowest.filter(|&slowest| slowest != DETACHED)
    }

    /// Sleeps at most `limit` while the slowest is at `seen` and `idle` holds.
    #[cold]
    #[inline(never)]
    pub(crate) fn sleep(&mut self, seen: u64, limit: Duration, idle: impl Fn() -> bool) {
        // If none is there any more, the caller's next look finds something.
        if let Some(gate) = self.gates.iter_mut().find(|gate| gate.cursor.get() == seen) {
            gate.cursor.sleep(seen, &mut gate.sleeper, limit, idle);
        }
    }

    /// Marks the end asleep on a gate that is at `seen`; the end must then look again. `None` if
    /// they have all moved.
    pub(crate) fn mark(&mut self, seen: u64) -> Option<Mark> {
        let gate = self.gates.iter().position(|gate| gate.cursor.get() == seen)?;
        let Gate { cursor, sleeper } = &mut self.gates[gate];
        Some(Mark { gate, wakes: cursor.mark(sleeper) })
    }

    /// The word that a marked end sleeps on, and what it holds until somebody wakes it.
    pub(crate) fn word(&self, mark: Mark) -> (&AtomicU32, u32) {
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

impl Drop for Gates {
    fn drop(&mut self) {
        for gate in &mut self.gates {
            gate.cursor.forget(&mut gate.sleeper);
        }
    }
}
