//! Expected duration of a run, for progress bars and deadlines.

use std::time::Duration;

/// Longest expected duration, a century: thousands of them can be added without overflow, and a
/// deadline that far away is still valid.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// Expected time of `messages` at `rate` a second, at most a century.
pub fn expected_time(messages: u64, rate: f64) -> Duration {
    // Converting panics where the quotient is infinite, negative, or beyond a duration's range.
    let time = Duration::try_from_secs_f64(messages as f64 / rate);
    time.map_or(LONGEST, |time| time.min(LONGEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_count_and_rate_give_a_time_that_can_be_reckoned_with() {
        assert_eq!(expected_time(500_000, 50_000.0), Duration::from_secs(10));
        assert_eq!(expected_time(0, 1.0), Duration::ZERO);
        for (messages, rate) in
            [(u64::MAX, 1.0), (1, 0.0), (0, 0.0), (1, -1.0), (1, f64::NAN), (1, 1e-300)]
        {
            let time = expected_time(messages, rate);
            assert_eq!(time, LONGEST, "{messages} at {rate}");
            assert!(std::time::Instant::now().checked_add(time * 10_000).is_some());
        }
    }
}
