//! Intervals at which the conductor serves a session in place of its owner.
//!
//! Owned by the conductor's agents, one for each session. An owner without a call since the last
//! duty cycle is elsewhere, or it waits for a CPU. The conductor cannot tell, and an owner that
//! waits would do the same work in fewer and larger reads: serving it at every frame takes the CPU
//! that it waits for. Frames after a pause are served at once, so that one lost message is repaired
//! without a delay; those of a busy session, at intervals that double until its owner enters again.
//!
//! Not for owners that sleep until the conductor has served them, nor for closed sessions: those
//! are served at once, always.

use lanecast_protocol::{MICROSECOND, MILLISECOND, Nanos};

/// The first interval of a busy session, and the longest: the kernel's usual buffer for datagrams
/// holds about 180, which is more than come meanwhile at 100,000 a second.
const PAUSE: Nanos = 250 * MICROSECOND;
const PAUSE_MAX: Nanos = MILLISECOND;
/// Time without a need for service after which a session is not busy any more.
const QUIET: Nanos = 4 * MILLISECOND;

/// The next time at which the conductor serves a session.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StandInPacing {
    pause: Nanos,
    /// End of the pause after the last service.
    until: Nanos,
}

impl StandInPacing {
    /// The time from which on a frame, or an owner that stays away, is worth a service.
    pub(crate) const fn due(&self) -> Nanos {
        self.until
    }

    /// The owner has entered the session: it has a CPU, and the pauses begin anew when it is late.
    pub(crate) fn owner_entered(&mut self) {
        *self = Self::default();
    }

    /// The session was served.
    pub(crate) fn on_service(&mut self, now: Nanos) {
        let is_busy = now.saturating_sub(self.until) < QUIET;
        self.pause = if is_busy { (2 * self.pause).clamp(PAUSE, PAUSE_MAX) } else { 0 };
        self.until = now.saturating_add(self.pause);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Services of a session in a second in which a frame comes every `interval`.
    fn services(interval: Nanos) -> u64 {
        let (mut pacing, mut count) = (StandInPacing::default(), 0);
        let (mut now, end) = (1_000 * MILLISECOND, 2_000 * MILLISECOND);
        while now < end {
            now += interval;
            // The conductor sleeps until both are there.
            now = now.max(pacing.due());
            pacing.on_service(now);
            count += 1;
        }
        count
    }

    #[test]
    fn frames_after_a_pause_are_served_at_once() {
        let mut pacing = StandInPacing::default();
        let mut now = 1_000 * MILLISECOND;
        for _ in 0..100 {
            now += 2 * QUIET;
            assert!(pacing.due() <= now);
            pacing.on_service(now);
            // The heartbeat behind a message.
            now += MILLISECOND;
            assert!(pacing.due() <= now);
            pacing.on_service(now);
        }
    }

    #[test]
    fn a_busy_session_is_served_at_intervals_that_double() {
        // Without them: 100,000.
        assert!((1_000..1_010).contains(&services(10_000)), "{}", services(10_000));
        assert_eq!(services(10 * QUIET), 25);
    }

    /// An owner that sends and sleeps in turn does not wait for a CPU.
    #[test]
    fn a_frame_behind_each_call_of_the_owner_is_served_at_once() {
        let mut pacing = StandInPacing::default();
        let mut now = 1_000 * MILLISECOND;
        for _ in 0..100 {
            pacing.owner_entered();
            now += 100 * MICROSECOND;
            assert!(pacing.due() <= now);
            pacing.on_service(now);
        }
    }

    #[test]
    fn a_busy_session_is_quiet_again_after_a_pause() {
        let mut pacing = StandInPacing::default();
        let mut now = 1_000 * MILLISECOND;
        for _ in 0..10 {
            now = pacing.due().max(now);
            pacing.on_service(now);
        }
        assert_eq!(pacing.due(), now + PAUSE_MAX);
        now = pacing.due() + QUIET;
        pacing.on_service(now);
        assert_eq!(pacing.due(), now);
    }
}
