//! A publisher's watch over the subscribers that hold it up.
//!
//! Nobody else frees a blocked publisher: it asks the kernel itself whether a subscriber in its
//! way still lives. Only a blocked publisher asks, and only now and then.

use crate::place::slot_lock;
use crate::settings::Stalled;
use lanecast_base::Position;
use lanecast_base::sync::Ordering;
use lanecast_os::is_locked;
use lanecast_os::process::Identity;
use lanecast_wire::shm::Slot;
use std::collections::HashMap;
use std::fs::File;
use std::time::{Duration, Instant};

use crate::write_edge::Eviction;

/// The watch: when it looked last, and since when each subscriber has stood still.
#[derive(Debug)]
pub(crate) struct Vigil {
    interval: Duration,
    stalled: Stalled,
    liveness: Duration,
    last_look: Option<Instant>,
    standing: HashMap<usize, Standing>,
}

#[derive(Debug, PartialEq, Eq)]
struct Standing {
    tenure: u64,
    cursor: Position,
    since: Instant,
}

/// A subscriber in the way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Blocker {
    pub(crate) index: usize,
    pub(crate) tenure: u64,
    pub(crate) cursor: Position,
    /// Whether the cursor is where a reader can be.
    pub(crate) plausible: bool,
}

impl Vigil {
    pub(crate) fn new(liveness: Duration, stalled: Stalled) -> Self {
        let interval = (liveness / 4).min(Duration::from_millis(50));
        Self { interval, stalled, liveness, last_look: None, standing: HashMap::new() }
    }

    /// The longest time to sleep between two looks.
    pub(crate) const fn interval(&self) -> Duration {
        self.interval
    }

    /// Whether it is time to look; if so, the look counts as taken at `now`.
    pub(crate) fn is_due(&mut self, now: Instant) -> bool {
        let due = self.last_look.is_none_or(|last| now.duration_since(last) >= self.interval);
        if due {
            self.last_look = Some(now);
        }
        due
    }

    /// Whether `blocker` should lose its place, and why.
    pub(crate) fn judge(
        &mut self,
        blocker: Blocker,
        is_alive: impl FnOnce() -> bool,
        now: Instant,
    ) -> Option<Eviction> {
        let Blocker { index, tenure, cursor, plausible } = blocker;
        if !is_alive() {
            return Some(Eviction::Dead);
        }
        let standing =
            self.standing.entry(index).or_insert(Standing { tenure, cursor, since: now });
        if (standing.tenure, standing.cursor) != (tenure, cursor) {
            *standing = Standing { tenure, cursor, since: now };
        }
        let held_up = now.duration_since(standing.since);
        if !plausible && held_up >= self.liveness {
            return Some(Eviction::Nonsense);
        }
        match self.stalled {
            Stalled::EvictAfter(limit) if held_up >= limit => Some(Eviction::Stalled),
            _ => None,
        }
    }
}

/// Whether the owner of slot `index` lives: it holds the slot's lock, and its process is not
/// known to be gone (a forked child that outlives it keeps the lock, but does not read).
pub(crate) fn is_alive(gate: &File, index: usize, slot: &Slot) -> bool {
    // If the system does not tell, the owner gets the benefit of the doubt.
    is_locked(gate, slot_lock(index)).unwrap_or(true) && !identity(slot).is_surely_gone()
}

/// The process that last took the slot.
pub(crate) fn identity(slot: &Slot) -> Identity {
    Identity {
        pid: slot.pid.load(Ordering::Relaxed),
        namespace: slot.namespace.load(Ordering::Relaxed),
        start_time: slot.start_time.load(Ordering::Relaxed),
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn blocker(cursor: u64) -> Blocker {
        Blocker { index: 3, tenure: 1, cursor: Position::new(cursor), plausible: true }
    }

    #[test]
    fn the_dead_go_at_once_and_the_living_stay() {
        let mut vigil = Vigil::new(SECOND, Stalled::Wait);
        let start = Instant::now();
        assert_eq!(vigil.judge(blocker(0), || false, start), Some(Eviction::Dead));
        assert_eq!(vigil.judge(blocker(0), || true, start), None);
        assert_eq!(vigil.judge(blocker(0), || true, start + 100 * SECOND), None);
    }

    #[test]
    fn a_policy_counts_only_the_time_without_a_step() {
        let mut vigil = Vigil::new(SECOND, Stalled::EvictAfter(2 * SECOND));
        let start = Instant::now();
        assert_eq!(vigil.judge(blocker(0), || true, start), None);
        assert_eq!(vigil.judge(blocker(8), || true, start + 3 * SECOND), None, "it moved");
        assert_eq!(vigil.judge(blocker(8), || true, start + 4 * SECOND), None);
        assert_eq!(vigil.judge(blocker(8), || true, start + 5 * SECOND), Some(Eviction::Stalled));
        let other = Blocker { tenure: 3, ..blocker(8) };
        assert_eq!(vigil.judge(other, || true, start + 9 * SECOND), None, "a new owner");
    }

    #[test]
    fn nonsense_is_borne_for_the_liveness_time() {
        let mut vigil = Vigil::new(SECOND, Stalled::Wait);
        let start = Instant::now();
        let nonsense = Blocker { plausible: false, ..blocker(7) };
        assert_eq!(vigil.judge(nonsense, || true, start), None);
        assert_eq!(vigil.judge(nonsense, || true, start + SECOND), Some(Eviction::Nonsense));
    }

    #[test]
    fn looks_are_spaced() {
        let mut vigil = Vigil::new(SECOND, Stalled::Wait);
        let start = Instant::now();
        assert!(vigil.is_due(start));
        assert!(!vigil.is_due(start + vigil.interval() / 2));
        assert!(vigil.is_due(start + vigil.interval()));
    }
}
