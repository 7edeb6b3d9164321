//! End of a run after its faults: the world stands still.

/// The most seconds after the faults in which everything has to become stable.
const SECONDS_MAX: u64 = 600;
/// Seconds without progress that are a standstill. A receiver may need more to catch up: some fetch
/// a single message per round trip.
const SECONDS: u64 = 60;

/// The seconds of a world since its faults ended, and its last progress.
#[derive(Debug, Default)]
pub(super) struct Standstill {
    second: u64,
    progress: u64,
    advanced: u64,
}

impl Standstill {
    /// Called once a second: whether the world has stood still for a minute, or had its time.
    /// `progress` grows with each message that becomes stable or is received.
    pub(super) const fn is_reached(&mut self, progress: u64) -> bool {
        self.second += 1;
        if progress > self.progress {
            (self.progress, self.advanced) = (progress, self.second);
        }
        self.second - self.advanced >= SECONDS || self.second >= SECONDS_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_without_progress_is_a_standstill() {
        let mut standstill = Standstill::default();
        assert!((1..=100).all(|second| !standstill.is_reached(second / 50)));
        assert!((101..=159).all(|_| !standstill.is_reached(2)));
        assert!(standstill.is_reached(2));
    }

    #[test]
    fn a_world_has_its_time_and_no_more() {
        let mut standstill = Standstill::default();
        assert!((1..SECONDS_MAX).all(|second| !standstill.is_reached(second)));
        assert!(standstill.is_reached(SECONDS_MAX));
    }
}
