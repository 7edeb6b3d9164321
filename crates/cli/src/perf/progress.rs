//! Progress of a series, printed between two runs: drawing during one would disturb it.

use indicatif::{ProgressBar, ProgressStyle};
use std::time::{Duration, Instant};

/// A bar on standard error, if that is a terminal.
#[derive(Debug)]
pub(super) struct Progress {
    bar: ProgressBar,
    start: Instant,
    /// Expected time of all runs, and of the finished ones.
    expected: Duration,
    passed: Duration,
    current: Duration,
}

impl Progress {
    /// Starts the display; `expected` is the time of all runs together.
    pub(super) fn new(expected: Duration) -> Self {
        let bar = ProgressBar::new(millis(expected));
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {percent:>3} %  {msg}") {
            bar.set_style(style);
        }
        let start = Instant::now();
        Self { bar, start, expected, passed: Duration::ZERO, current: Duration::ZERO }
    }

    /// Tells what comes, for how long it is expected, and how much time is left for all.
    pub(super) fn begin(&mut self, what: &str, expected: Duration) {
        self.passed += self.current;
        self.current = expected;
        self.bar.set_position(millis(self.passed));
        let left = time_left(self.start.elapsed(), self.passed, self.expected);
        self.bar.set_message(format!("{}  {what}", in_words(left)));
    }

    /// Takes the bar away.
    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Estimate of the remaining time: the expected one, scaled by the time of the finished runs.
fn time_left(elapsed: Duration, passed: Duration, expected: Duration) -> Duration {
    let left = expected.saturating_sub(passed);
    if passed.is_zero() {
        return left;
    }
    let stretched = left.as_secs_f64() * elapsed.as_secs_f64() / passed.as_secs_f64();
    Duration::try_from_secs_f64(stretched).unwrap_or(left)
}

fn in_words(left: Duration) -> String {
    match left.as_secs() {
        seconds @ 0..100 => format!("{seconds} s left"),
        seconds => format!("{} min left", seconds.div_ceil(60)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_goes_by_the_time_so_far() {
        let seconds = Duration::from_secs;
        assert_eq!(time_left(seconds(0), seconds(0), seconds(60)), seconds(60));
        assert_eq!(time_left(seconds(30), seconds(20), seconds(60)), seconds(60));
        assert_eq!(time_left(seconds(90), seconds(60), seconds(60)), seconds(0));
        // Beyond what a time can be, the guess is not stretched.
        let long = Duration::MAX;
        assert_eq!(time_left(long, seconds(1), long), long - seconds(1));
        assert_eq!(in_words(seconds(99)), "99 s left");
        assert_eq!(in_words(seconds(601)), "11 min left");
    }
}
