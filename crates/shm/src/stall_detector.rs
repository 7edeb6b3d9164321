//! Stall detection: decides which of the readers that gate a blocked publisher to evict.
//!
//! Owned by the publisher and run on its thread while it is blocked, at intervals; no other thread
//! or process frees a blocked publisher.

use crate::ring_writer::Eviction;
use crate::settings::SlowConsumerPolicy;
use lanecast_base::Position;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Interval of checks after an eviction: a process that damages the gate does so again at once.
const INTERVAL_AFTER_EVICTION: Duration = Duration::from_millis(1);

/// Longest time between two checks that counts in full. Readers free nothing while the machine or
/// the publisher's process stands still, and its own pause would look like their stall.
const PAUSE: Duration = Duration::from_millis(250);

/// Time of the last check, and progress of each slot's readers.
#[derive(Debug)]
pub(crate) struct StallDetector {
    interval: Duration,
    policy: SlowConsumerPolicy,
    liveness: Duration,
    last_check: Option<Instant>,
    last_eviction: Option<Instant>,
    /// Progress by slot, kept across evictions and new leases: only real progress resets it.
    progress: HashMap<usize, Progress>,
}

/// Progress of a slot's readers. The slot's words are untrusted, so a change alone is no progress.
#[derive(Debug)]
struct Progress {
    /// Furthest valid cursor seen.
    furthest: Option<Position>,
    /// Time of its first sight, later by the publisher's own pauses.
    since: Instant,
    /// Time of the first invalid cursor since the last progress, later by such pauses.
    invalid_since: Option<Instant>,
}

/// A reader that gates the publisher.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GatingReader {
    pub(crate) index: usize,
    pub(crate) lease: u64,
    pub(crate) cursor: Position,
    /// Whether the cursor lies within the window.
    pub(crate) is_valid: bool,
}

impl StallDetector {
    pub(crate) fn new(liveness: Duration, policy: SlowConsumerPolicy) -> Self {
        let interval = (liveness / 4).min(Duration::from_millis(50));
        Self {
            interval,
            policy,
            liveness,
            last_check: None,
            last_eviction: None,
            progress: HashMap::new(),
        }
    }

    /// Longest sleep between two checks.
    pub(crate) fn interval(&self, now: Instant) -> Duration {
        let is_recent = |last| now.saturating_duration_since(last) < self.liveness;
        if self.last_eviction.is_some_and(is_recent) {
            self.interval.min(INTERVAL_AFTER_EVICTION)
        } else {
            self.interval
        }
    }

    /// Whether a check is due; if so, it counts as done at `now`.
    pub(crate) fn is_due(&mut self, now: Instant) -> bool {
        let interval = self.interval(now);
        let due = self.last_check.is_none_or(|last| now.duration_since(last) >= interval);
        if due && let Some(last) = self.last_check.replace(now) {
            self.extend_deadlines(now.saturating_duration_since(last));
        }
        due
    }

    /// Leaves out of the readers' times what a check has come too late, `passed` after the one
    /// before. A part counts, so that a publisher that seldom tries evicts at last.
    fn extend_deadlines(&mut self, passed: Duration) {
        let longest = 5 * self.interval / 2;
        let excess = |limit: Duration| {
            let counted = PAUSE.min(limit / 2);
            if passed > longest.max(counted) { passed - counted } else { Duration::ZERO }
        };
        let invalid = excess(self.liveness);
        let stalled = match self.policy {
            SlowConsumerPolicy::EvictAfter(limit) => excess(limit),
            SlowConsumerPolicy::Wait => Duration::ZERO,
        };
        for progress in self.progress.values_mut() {
            progress.since += stalled;
            if let Some(since) = &mut progress.invalid_since {
                *since += invalid;
            }
        }
    }

    /// Reason to evict `reader`, if there is one.
    pub(crate) fn check(
        &mut self,
        reader: GatingReader,
        is_alive: impl FnOnce() -> bool,
        now: Instant,
    ) -> Option<Eviction> {
        let reason = if is_alive() { self.check_alive(reader, now) } else { Some(Eviction::Dead) };
        if reason.is_some() {
            self.last_eviction = Some(now);
        }
        reason
    }

    fn check_alive(&mut self, reader: GatingReader, now: Instant) -> Option<Eviction> {
        let GatingReader { index, cursor, is_valid, .. } = reader;
        let fresh = Progress { furthest: None, since: now, invalid_since: None };
        let progress = self.progress.entry(index).or_insert(fresh);
        if is_valid && progress.furthest.is_none_or(|furthest| cursor.is_past(furthest)) {
            *progress = Progress { furthest: Some(cursor), since: now, invalid_since: None };
        }
        if !is_valid {
            let first = *progress.invalid_since.get_or_insert(now);
            if now.duration_since(first) >= self.liveness {
                return Some(Eviction::InvalidCursor);
            }
        }
        match self.policy {
            SlowConsumerPolicy::EvictAfter(limit)
                if now.duration_since(progress.since) >= limit =>
            {
                Some(Eviction::Stalled)
            }
            _ => None,
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn reader(cursor: u64) -> GatingReader {
        GatingReader { index: 3, lease: 1, cursor: Position::new(cursor), is_valid: true }
    }

    #[test]
    fn dead_readers_are_evicted_at_once_and_live_ones_stay() {
        let mut detector = StallDetector::new(SECOND, SlowConsumerPolicy::Wait);
        let start = Instant::now();
        assert_eq!(detector.check(reader(0), || false, start), Some(Eviction::Dead));
        assert_eq!(detector.check(reader(0), || true, start), None);
        assert_eq!(detector.check(reader(0), || true, start + 100 * SECOND), None);
    }

    #[test]
    fn a_policy_counts_only_the_time_without_a_step() {
        let mut detector = StallDetector::new(SECOND, SlowConsumerPolicy::EvictAfter(2 * SECOND));
        let start = Instant::now();
        assert_eq!(detector.check(reader(0), || true, start), None);
        assert_eq!(detector.check(reader(8), || true, start + 3 * SECOND), None, "it moved");
        assert_eq!(detector.check(reader(8), || true, start + 4 * SECOND), None);
        assert_eq!(detector.check(reader(8), || true, start + 5 * SECOND), Some(Eviction::Stalled));
        let other = GatingReader { lease: 3, ..reader(24) };
        assert_eq!(
            detector.check(other, || true, start + 9 * SECOND),
            None,
            "a new owner, further on"
        );
    }

    /// Checks a blocked publisher's reader at these times, in milliseconds, that never moves; the
    /// last verdict.
    fn verdict(limit: u64, reader: GatingReader, times: &[u64]) -> Option<Eviction> {
        let policy = SlowConsumerPolicy::EvictAfter(Duration::from_millis(limit));
        let mut detector = StallDetector::new(2 * SECOND, policy);
        let start = Instant::now();
        let check = |&at: &u64| {
            let now = start + Duration::from_millis(at);
            assert!(detector.is_due(now), "{at}");
            detector.check(reader, || true, now)
        };
        times.iter().map(check).last().flatten()
    }

    #[test]
    fn a_pause_of_the_publisher_is_no_stall_of_its_readers() {
        for limit in [300, 2_000] {
            assert_eq!(verdict(limit, reader(8), &[0, 50, 100, 3_100]), None);
            let mut times: Vec<_> = (0..=limit / 50).map(|step| 50 * step).collect();
            assert_eq!(verdict(limit, reader(8), &times), Some(Eviction::Stalled));
            times.pop();
            assert_eq!(verdict(limit, reader(8), &times), None);
            // From the pause on the rest of the limit counts.
            let last = times[times.len() - 1];
            times.truncate(2);
            times.extend((50..=last).step_by(50).map(|at| 5_000 + at));
            assert_eq!(verdict(limit, reader(8), &times), Some(Eviction::Stalled));
        }
        let nonsense = GatingReader { is_valid: false, ..reader(7) };
        assert_eq!(verdict(60_000, nonsense, &[0, 50, 3_000]), None);
    }

    #[test]
    fn a_publisher_that_tries_seldom_evicts_at_last() {
        let times: Vec<_> = (0..12).map(|step| 5_000 * step).collect();
        assert_eq!(verdict(2_000, reader(8), &times), Some(Eviction::Stalled));
        assert_eq!(verdict(2_000, reader(8), &times[..6]), None);
    }

    #[test]
    fn an_invalid_cursor_is_tolerated_for_the_liveness_time() {
        let mut detector = StallDetector::new(SECOND, SlowConsumerPolicy::Wait);
        let start = Instant::now();
        let nonsense = GatingReader { is_valid: false, ..reader(7) };
        assert_eq!(detector.check(nonsense, || true, start), None);
        assert_eq!(
            detector.check(nonsense, || true, start + SECOND),
            Some(Eviction::InvalidCursor)
        );
    }

    /// A reader whose words change without progress gets no more time than an idle one.
    #[test]
    fn only_progress_gains_time() {
        let policies = [SlowConsumerPolicy::Wait, SlowConsumerPolicy::EvictAfter(SECOND)];
        let writers: [fn(u64) -> GatingReader; 4] = [
            |turn| GatingReader { is_valid: false, ..reader(1 << 40 | turn) },
            |turn| GatingReader { is_valid: false, lease: 2 * turn + 1, ..reader(7) },
            |turn| GatingReader { is_valid: turn.is_multiple_of(2), ..reader(16 * (turn % 2)) },
            |turn| GatingReader { lease: 2 * turn + 1, ..reader(64 - 16 * (turn % 4)) },
        ];
        let start = Instant::now();
        for (number, writer) in (0..).zip(writers) {
            for policy in policies {
                let mut detector = StallDetector::new(SECOND, policy);
                let verdicts = (0..300).map(|turn| {
                    let now = start + u32::try_from(turn).unwrap() * Duration::from_millis(10);
                    detector.check(writer(turn), || true, now)
                });
                let gone = verdicts.filter(Option::is_some).count();
                // The last one's cursor is always valid: the policy alone decides.
                let stays = number == 3 && policy == SlowConsumerPolicy::Wait;
                assert_eq!(gone > 0, !stays, "writer {number}, {policy:?}: {gone}");
                assert!(stays || gone >= 95, "and again, at once: {gone}");
            }
        }
    }

    #[test]
    fn progress_resets_the_time_of_an_invalid_cursor() {
        let mut detector = StallDetector::new(SECOND, SlowConsumerPolicy::Wait);
        let start = Instant::now();
        for turn in 0..10 {
            let nonsense = GatingReader { is_valid: false, ..reader(1 << 40) };
            assert_eq!(detector.check(nonsense, || true, start + turn * SECOND), None);
            let moved = reader(16 * u64::from(turn));
            assert_eq!(detector.check(moved, || true, start + turn * SECOND), None);
        }
    }

    #[test]
    fn checks_are_spaced_and_more_frequent_after_an_eviction() {
        let mut detector = StallDetector::new(SECOND, SlowConsumerPolicy::Wait);
        let start = Instant::now();
        let usual = detector.interval(start);
        assert!(detector.is_due(start));
        assert!(!detector.is_due(start + usual / 2));
        assert!(detector.is_due(start + usual));
        assert_eq!(detector.check(reader(0), || false, start), Some(Eviction::Dead));
        assert!(detector.interval(start) <= INTERVAL_AFTER_EVICTION);
        assert_eq!(detector.interval(start + SECOND), usual);
    }
}
