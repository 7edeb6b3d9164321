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

/// Between two looks after an eviction: whoever spoils a gate spoils it again at once.
const BRISK: Duration = Duration::from_millis(1);

/// The watch: when it looked last, and since when each subscriber has stood still.
#[derive(Debug)]
pub(crate) struct Vigil {
    interval: Duration,
    stalled: Stalled,
    liveness: Duration,
    last_look: Option<Instant>,
    last_eviction: Option<Instant>,
    /// By slot, kept beyond evictions and new leases: only its readers' progress counts.
    standing: HashMap<usize, Standing>,
}

/// How a slot's readers come on. Anybody with access to the gate may have written what was seen
/// there, so a change alone is no progress.
#[derive(Debug)]
struct Standing {
    /// The furthest place where a reader has been seen that can be there.
    furthest: Option<Position>,
    /// When it was first seen there.
    since: Instant,
    /// When a cursor was first seen where no reader can be, since the last progress.
    nonsense: Option<Instant>,
}

/// A subscriber in the way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Blocker {
    pub(crate) index: usize,
    pub(crate) lease: u64,
    pub(crate) cursor: Position,
    /// Whether the cursor is where a reader can be.
    pub(crate) plausible: bool,
}

impl Vigil {
    pub(crate) fn new(liveness: Duration, stalled: Stalled) -> Self {
        let interval = (liveness / 4).min(Duration::from_millis(50));
        Self {
            interval,
            stalled,
            liveness,
            last_look: None,
            last_eviction: None,
            standing: HashMap::new(),
        }
    }

    /// The longest time to sleep between two looks.
    pub(crate) fn interval(&self, now: Instant) -> Duration {
        let is_brisk = |last| now.saturating_duration_since(last) < self.liveness;
        if self.last_eviction.is_some_and(is_brisk) {
            self.interval.min(BRISK)
        } else {
            self.interval
        }
    }

    /// Whether it is time to look; if so, the look counts as taken at `now`.
    pub(crate) fn is_due(&mut self, now: Instant) -> bool {
        let interval = self.interval(now);
        let due = self.last_look.is_none_or(|last| now.duration_since(last) >= interval);
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
        let why = if is_alive() { self.verdict(blocker, now) } else { Some(Eviction::Dead) };
        if why.is_some() {
            self.last_eviction = Some(now);
        }
        why
    }

    fn verdict(&mut self, blocker: Blocker, now: Instant) -> Option<Eviction> {
        let Blocker { index, cursor, plausible, .. } = blocker;
        let fresh = Standing { furthest: None, since: now, nonsense: None };
        let standing = self.standing.entry(index).or_insert(fresh);
        if plausible && standing.furthest.is_none_or(|furthest| cursor.is_past(furthest)) {
            *standing = Standing { furthest: Some(cursor), since: now, nonsense: None };
        }
        if !plausible {
            let first = *standing.nonsense.get_or_insert(now);
            if now.duration_since(first) >= self.liveness {
                return Some(Eviction::Nonsense);
            }
        }
        match self.stalled {
            Stalled::EvictAfter(limit) if now.duration_since(standing.since) >= limit => {
                Some(Eviction::Stalled)
            }
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
        Blocker { index: 3, lease: 1, cursor: Position::new(cursor), plausible: true }
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
        let other = Blocker { lease: 3, ..blocker(24) };
        assert_eq!(
            vigil.judge(other, || true, start + 9 * SECOND),
            None,
            "a new owner, further on"
        );
    }

    #[test]
    fn nonsense_is_borne_for_the_liveness_time() {
        let mut vigil = Vigil::new(SECOND, Stalled::Wait);
        let start = Instant::now();
        let nonsense = Blocker { plausible: false, ..blocker(7) };
        assert_eq!(vigil.judge(nonsense, || true, start), None);
        assert_eq!(vigil.judge(nonsense, || true, start + SECOND), Some(Eviction::Nonsense));
    }

    /// What changes its words, and goes nowhere, has no more time than what stands still.
    #[test]
    fn only_progress_gains_time() {
        let policies = [Stalled::Wait, Stalled::EvictAfter(SECOND)];
        let writers: [fn(u64) -> Blocker; 4] = [
            |turn| Blocker { plausible: false, ..blocker(1 << 40 | turn) },
            |turn| Blocker { plausible: false, lease: 2 * turn + 1, ..blocker(7) },
            |turn| Blocker { plausible: turn.is_multiple_of(2), ..blocker(16 * (turn % 2)) },
            |turn| Blocker { lease: 2 * turn + 1, ..blocker(64 - 16 * (turn % 4)) },
        ];
        let start = Instant::now();
        for (number, writer) in (0..).zip(writers) {
            for stalled in policies {
                let mut vigil = Vigil::new(SECOND, stalled);
                let verdicts = (0..300).map(|turn| {
                    let now = start + u32::try_from(turn).unwrap() * Duration::from_millis(10);
                    vigil.judge(writer(turn), || true, now)
                });
                let gone = verdicts.filter(Option::is_some).count();
                // The last one's cursor is always where a reader can be: policy alone decides.
                let stays = number == 3 && stalled == Stalled::Wait;
                assert_eq!(gone > 0, !stays, "writer {number}, {stalled:?}: {gone}");
                assert!(stays || gone >= 95, "and again, at once: {gone}");
            }
        }
    }

    #[test]
    fn who_goes_on_is_forgiven_its_nonsense() {
        let mut vigil = Vigil::new(SECOND, Stalled::Wait);
        let start = Instant::now();
        for turn in 0..10 {
            let nonsense = Blocker { plausible: false, ..blocker(1 << 40) };
            assert_eq!(vigil.judge(nonsense, || true, start + turn * SECOND), None);
            let moved = blocker(16 * u64::from(turn));
            assert_eq!(vigil.judge(moved, || true, start + turn * SECOND), None);
        }
    }

    #[test]
    fn looks_are_spaced_and_come_faster_after_an_eviction() {
        let mut vigil = Vigil::new(SECOND, Stalled::Wait);
        let start = Instant::now();
        let usual = vigil.interval(start);
        assert!(vigil.is_due(start));
        assert!(!vigil.is_due(start + usual / 2));
        assert!(vigil.is_due(start + usual));
        assert_eq!(vigil.judge(blocker(0), || false, start), Some(Eviction::Dead));
        assert!(vigil.interval(start) <= BRISK);
        assert_eq!(vigil.interval(start + SECOND), usual);
    }
}
