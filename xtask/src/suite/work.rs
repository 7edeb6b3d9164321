//! One program that is run to its end: a part of a test program's tests, or a script.

use super::build::Program;
use super::cpu;
use super::groups::{self, Part};
use crate::mutate::check::wait_or_end;
use anyhow::{Context, Result};
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Longer than anything takes that still makes progress.
const PATIENCE: Duration = Duration::from_secs(900);

/// Bytes that the allocator keeps of each heap in programs that keep memory.
const KEPT: usize = 64 << 20;

/// A program with its arguments.
#[derive(Debug)]
pub(crate) struct Work {
    /// Name in the report.
    pub(crate) name: String,
    /// Others of this group do not run beside it.
    pub(crate) group: Option<&'static str>,
    command: Vec<OsString>,
    directory: PathBuf,
    env: Vec<(&'static str, OsString)>,
    is_test: bool,
}

/// Result of a program.
#[derive(Debug, Default)]
pub(crate) struct Done {
    pub(crate) name: String,
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
    pub(crate) time: Duration,
    /// Seconds that CPUs worked for it and for all it started and waited for.
    pub(crate) cpu_seconds: f64,
    /// Tests with their seconds.
    pub(crate) tests: Vec<(String, f64)>,
    pub(crate) output: String,
}

impl Work {
    /// A command of the project, run in its root.
    pub(crate) fn script(name: &str, root: &Path, command: &[&str]) -> Self {
        Self {
            name: name.to_owned(),
            group: None,
            command: command.iter().map(Into::into).collect(),
            directory: root.to_owned(),
            env: Vec::new(),
            is_test: false,
        }
    }

    /// All tests of `program`, in parts.
    pub(crate) fn tests(program: &Program, cpus: usize) -> Vec<Self> {
        let parts = groups::parts(program, cpus);
        parts.into_iter().map(|part| Self::part(program, part)).collect()
    }

    fn part(program: &Program, part: Part) -> Self {
        let mut command: Vec<OsString> = vec![program.path.clone().into()];
        command.extend(part.arguments.iter().map(Into::into));
        command.extend(["-Zunstable-options", "--report-time"].map(Into::into));
        let group = part.group.map(|group| format!(" [{group}]")).unwrap_or_default();
        let work = Self {
            name: format!("{} {}{group}", program.package, program.target),
            group: part.group,
            command,
            directory: program.directory.clone(),
            env: Vec::new(),
            is_test: true,
        };
        // The stable harness tells times too, if it is told to obey unstable options.
        let work = work
            .env("RUSTC_BOOTSTRAP", "1")
            .env("CARGO_MANIFEST_DIR", &program.directory)
            .env("CARGO_PKG_NAME", &program.package);
        if groups::keeps_memory(&program.package) {
            work.env("MALLOC_TOP_PAD_", KEPT.to_string())
        } else {
            work
        }
    }

    /// The same with a variable of its environment.
    pub(crate) fn env(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.env.push((name, value.into()));
        self
    }

    /// The same as one of `group`.
    pub(crate) fn of(mut self, group: &'static str) -> Self {
        self.group = Some(group);
        self
    }

    /// Runs it, with what it writes in a file below `logs`.
    pub(crate) fn run(&self, logs: &Path) -> Result<Done> {
        let path = logs.join(format!("{}.log", self.name.replace(['/', ' '], "-")));
        let log = File::create(&path).with_context(|| format!("{} is refused", path.display()))?;
        let start = Instant::now();
        let mut child = Command::new(&self.command[0])
            .args(&self.command[1..])
            .current_dir(&self.directory)
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("{} cannot be started", self.name))?;
        let mut done = Done { name: self.name.clone(), ..Done::default() };
        let status = wait_or_end(&mut child, PATIENCE, |id| done.cpu_seconds = cpu::seconds(id))?;
        done.time = start.elapsed();
        done.output = String::from_utf8_lossy(&std::fs::read(&path)?).into_owned();
        done.count(self.is_test, status.is_some_and(|status| status.success()));
        if status.is_none() {
            done.output.push_str(&format!("\nENDED after {} s\n", PATIENCE.as_secs()));
        }
        Ok(done)
    }
}

impl Done {
    fn count(&mut self, is_test: bool, succeeded: bool) {
        let mut is_counted = false;
        for line in self.output.lines() {
            if let Some((name, seconds)) = timed(line) {
                self.tests.push((format!("{} {name}", self.name), seconds));
            }
            if let Some(counts) = line.strip_prefix("test result: ") {
                is_counted = true;
                self.passed += number_before(counts, " passed");
                self.failed += number_before(counts, " failed");
                self.skipped += number_before(counts, " ignored");
            }
            self.skipped += u64::from(!is_test && line.starts_with("SKIPPED"));
        }
        if !is_counted && succeeded && !is_test {
            self.passed += u64::from(self.skipped == 0);
        } else if !succeeded && self.failed == 0 {
            self.failed = 1;
        } else if !is_counted && is_test {
            // It ended well and ran nothing: a harness of its own would have to say so.
            self.failed = 1;
        }
    }
}

/// Name and seconds of `test NAME ... ok <1.234s>`.
fn timed(line: &str) -> Option<(&str, f64)> {
    let (name, rest) = line.strip_prefix("test ")?.split_once(" ... ")?;
    let seconds = rest.split_once('<')?.1.strip_suffix("s>")?;
    Some((name, seconds.parse().ok()?))
}

fn number_before(text: &str, what: &str) -> u64 {
    let before = text.split(what).next().unwrap_or_default();
    let digits = before.rsplit(' ').next().unwrap_or_default();
    digits.parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(output: &str, is_test: bool, succeeded: bool) -> Done {
        let mut done = Done { name: "p all".into(), output: output.into(), ..Done::default() };
        done.count(is_test, succeeded);
        done
    }

    #[test]
    fn results_are_counted() {
        let text = "test a::b ... ok <1.500s>\ntest c ... FAILED <0.010s>\n\
             test result: FAILED. 1 passed; 1 failed; 2 ignored; 0 measured; finished in 1.5s\n";
        let counted = done(text, true, false);
        assert_eq!((counted.passed, counted.failed, counted.skipped), (1, 1, 2));
        assert_eq!(counted.tests[0], ("p all a::b".to_owned(), 1.5));
    }

    #[test]
    fn an_end_without_a_result_is_a_failure() {
        assert_eq!(done("running 3 tests\n", true, false).failed, 1);
        assert_eq!(done("", true, true).failed, 1);
        let text = "test result: ok. 4 passed; 0 failed; 0 ignored\n";
        assert_eq!(done(text, true, false).failed, 1, "it crashed on its way out");
    }

    #[test]
    fn a_script_is_one_test_unless_it_was_skipped() {
        assert_eq!(done("fine\n", false, true).passed, 1);
        let skipped = done("SKIPPED: no browser\n", false, true);
        assert_eq!((skipped.passed, skipped.skipped), (0, 1));
        assert_eq!(done("", false, false).failed, 1);
    }

    #[test]
    fn output_goes_to_the_log_and_the_end_is_seen() {
        let logs = tempfile::tempdir().expect("a directory");
        let work = |text| Work::script("a step", logs.path(), &["sh", "-c", text]);
        let fine = work("echo said; echo SKIPPED: x").run(logs.path()).expect("it runs");
        assert_eq!((fine.output.as_str(), fine.skipped), ("said\nSKIPPED: x\n", 1));
        assert_eq!(work("exit 3").run(logs.path()).expect("it runs").failed, 1);
    }
}
