//! Results of a run: each step when it ends, and at the end times and counts.

use super::cpu;
use super::work::Done;
use std::cmp::Reverse;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Number of slowest tests in the report.
const SLOWEST: usize = 20;

/// Results of the finished steps.
#[derive(Debug)]
pub(crate) struct Report {
    start: Instant,
    steps: Mutex<Vec<Done>>,
}

impl Default for Report {
    fn default() -> Self {
        Self { start: Instant::now(), steps: Mutex::default() }
    }
}

impl Report {
    /// Takes one result and tells it.
    pub(crate) fn step(&self, done: Done) {
        let mut steps = self.lock();
        if done.failed > 0 {
            print!("{}", done.output);
        }
        for line in done.output.lines().filter(|line| line.starts_with("SKIPPED")) {
            println!("{line}");
        }
        println!("{}", line(&done));
        steps.push(done);
    }

    /// Prints what the whole run was; returns whether nothing failed.
    pub(crate) fn print(&self) -> bool {
        let mut steps = self.lock();
        let mut tests: Vec<&(String, f64)> = steps.iter().flat_map(|done| &done.tests).collect();
        tests.sort_by(|one, other| other.1.total_cmp(&one.1));
        println!("\n==> The slowest tests");
        for (name, seconds) in tests.into_iter().take(SLOWEST) {
            println!("{seconds:8.1} s  {name}");
        }
        steps.sort_by_key(|done| Reverse(done.time));
        println!("\n==> The steps, the longest first: time, and how long CPUs worked");
        steps.iter().for_each(|done| println!("{}", line(done)));
        let seconds = self.start.elapsed().as_secs_f64();
        println!(
            "\n==> Summary: {seconds:.0} s, in which CPUs worked {:.0} s",
            cpu::seconds_of_ended()
        );
        for done in steps.iter().filter(|done| done.failed > 0) {
            println!("FAILED: {}", done.name);
        }
        drop(steps);
        let (counts, passed) = self.counts();
        println!("{counts}");
        passed
    }

    /// The counts in the line that ends a run, and whether nothing failed.
    pub(crate) fn counts(&self) -> (String, bool) {
        let steps = self.lock();
        let sum = |count: fn(&Done) -> u64| steps.iter().map(count).sum::<u64>();
        let [passed, failed, skipped] =
            [sum(|done| done.passed), sum(|done| done.failed), sum(|done| done.skipped)];
        (format!("{passed} passed, {failed} failed, {skipped} skipped"), failed == 0)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Done>> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A step in one line.
fn line(done: &Done) -> String {
    let verdict = if done.failed == 0 { "ok    " } else { "FAILED" };
    let counts = match (done.passed, done.skipped) {
        (0 | 1, 0) => String::new(),
        (passed, 0) => format!(", {passed} passed"),
        (passed, skipped) => format!(", {passed} passed, {skipped} skipped"),
    };
    let (time, cpu) = (done.time.as_secs_f64(), done.cpu_seconds);
    format!("{time:8.1} s {cpu:8.1} s  {verdict} {}{counts}", done.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_one_line() {
        let done = Done { name: "p all".into(), passed: 3, skipped: 1, ..Done::default() };
        assert_eq!(line(&done), "     0.0 s      0.0 s  ok     p all, 3 passed, 1 skipped");
        let done = Done { name: "p".into(), failed: 1, ..Done::default() };
        assert_eq!(line(&done), "     0.0 s      0.0 s  FAILED p");
    }
}
