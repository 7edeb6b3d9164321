//! The clock of a store's log: times of its records, and the present by which messages age.
//!
//! Times never decrease in a journal. A wall clock that jumps by years and is corrected must not
//! leave all later records at the jump's time: nothing would age any more, and a receiver that
//! begins at a time would get all messages since the jump. So the clock follows small jumps at
//! once, which cost no more than their length, and large ones when they last. Behind the log's
//! time, as after the correction of a jump that was followed, the wall clock is waited for:
//! meanwhile times go on at half speed, so that messages keep their order by time, and age.
//!
//! The server owns it and reads it in each poll.

use lanecast_persistence::Nanos;

/// Longest jump that is followed at once, a day: hosts are suspended, and clocks set, for shorter.
const JUMP_MAX_NS: u64 = 24 * HOUR_NS;
/// Time after which a longer one is followed.
const PATIENCE_NS: u64 = HOUR_NS;
const HOUR_NS: u64 = 3_600_000_000_000;

/// Times of a log, by the wall clock and one that never jumps.
#[derive(Debug)]
pub(crate) struct LogClock {
    /// The last time, in nanoseconds since 1970.
    unix_ns: u64,
    /// When it was read. `None` before the first reading: the store may have been down for long.
    read_at: Option<Nanos>,
    /// When the wall clock jumped ahead by more than is followed at once.
    jumped_at: Option<Nanos>,
}

impl LogClock {
    /// The clock of a log whose last record has this time; 0 without records.
    pub(crate) const fn new(last_unix_ns: u64) -> Self {
        Self { unix_ns: last_unix_ns, read_at: None, jumped_at: None }
    }

    /// The log's time at `now`, when the wall clock shows `wall_ns`. Never decreases.
    pub(crate) fn read(&mut self, now: Nanos, wall_ns: u64) -> u64 {
        let is_first = self.read_at.is_none();
        let elapsed = now.saturating_sub(self.read_at.unwrap_or(now));
        self.read_at = Some(now);
        let expected = self.unix_ns.saturating_add(elapsed);
        let is_jump = wall_ns.saturating_sub(expected) > JUMP_MAX_NS && !is_first;
        let since = if is_jump { self.jumped_at.unwrap_or(now) } else { now };
        let is_followed = !is_jump || now.saturating_sub(since) >= PATIENCE_NS;
        self.jumped_at = (!is_followed).then_some(since);
        self.unix_ns = if !is_followed {
            expected
        } else if wall_ns < self.unix_ns {
            self.unix_ns.saturating_add(elapsed / 2)
        } else {
            wall_ns
        };
        self.unix_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;
    const YEAR: u64 = 8_766 * HOUR_NS;
    const START: u64 = 50 * YEAR;

    /// A log's clock beside a wall clock that is wrong by so much.
    struct Host {
        clock: LogClock,
        now: Nanos,
        wrong_ns: i64,
        last: u64,
    }

    impl Host {
        fn new(last_unix_ns: u64) -> Self {
            let mut host =
                Self { clock: LogClock::new(last_unix_ns), now: 5, wrong_ns: 0, last: 0 };
            host.pass(0);
            host
        }

        /// The time as it should be.
        fn right(&self) -> u64 {
            START + self.now
        }

        fn read(&mut self) {
            let wall_ns = self.right().saturating_add_signed(self.wrong_ns);
            let read = self.clock.read(self.now, wall_ns);
            assert!(read >= self.last, "times never decrease");
            self.last = read;
        }

        fn pass(&mut self, time: u64) {
            let end = self.now + time;
            while self.now < end {
                self.now = end.min(self.now + 10 * SECOND);
                self.read();
            }
            self.read();
        }

        /// Nanoseconds by which the log is ahead.
        fn ahead(&self) -> i64 {
            self.last.wrapping_sub(self.right()).cast_signed()
        }
    }

    #[test]
    fn a_jump_by_years_that_is_corrected_within_an_hour_leaves_nothing() {
        let mut host = Host::new(START);
        for wrong_ns in [10 * YEAR.cast_signed(), 2 * JUMP_MAX_NS.cast_signed()] {
            host.wrong_ns = wrong_ns;
            host.pass(PATIENCE_NS - 20 * SECOND);
            assert_eq!(host.ahead(), 0);
            host.wrong_ns = 0;
            host.pass(SECOND);
            assert_eq!(host.ahead(), 0);
        }
    }

    #[test]
    fn a_jump_that_lasts_is_followed() {
        let mut host = Host::new(START);
        host.wrong_ns = 10 * YEAR.cast_signed();
        host.pass(PATIENCE_NS + 20 * SECOND);
        assert_eq!(host.ahead(), host.wrong_ns);
        // Corrected after all: times go on in order, for messages to age by.
        host.wrong_ns = 0;
        let before = host.last;
        host.pass(HOUR_NS);
        assert_eq!(host.last - before, HOUR_NS / 2);
    }

    #[test]
    fn short_jumps_are_followed_at_once_and_made_good_in_twice_their_length() {
        let mut host = Host::new(START);
        host.wrong_ns = (JUMP_MAX_NS - SECOND).cast_signed();
        host.read();
        assert_eq!(host.ahead(), host.wrong_ns);
        host.wrong_ns = 0;
        host.pass(2 * JUMP_MAX_NS);
        assert_eq!(host.ahead(), 0);
    }

    #[test]
    fn a_clock_that_was_set_back_is_waited_for() {
        let mut host = Host::new(START);
        host.pass(HOUR_NS);
        host.wrong_ns = -60 * SECOND.cast_signed();
        host.pass(60 * SECOND);
        assert_eq!(host.ahead(), -30 * SECOND.cast_signed());
        host.pass(60 * SECOND);
        assert_eq!(host.ahead(), host.wrong_ns);
        host.wrong_ns = 0;
        host.read();
        assert_eq!(host.ahead(), 0);
    }

    #[test]
    fn a_store_that_was_down_for_years_begins_at_the_present() {
        assert_eq!(Host::new(0).ahead(), 0);
        assert_eq!(Host::new(START - 9 * YEAR).ahead(), 0);
        // Records of the future are gone on from.
        let mut host = Host::new(START + YEAR);
        host.pass(HOUR_NS);
        assert_eq!(host.last, START + YEAR + HOUR_NS / 2);
    }
}
