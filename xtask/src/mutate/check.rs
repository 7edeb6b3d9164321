//! The command that must notice a mutation.

use anyhow::{Context, Result, bail};
use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Directory and time limit of commands.
#[derive(Debug)]
pub(crate) struct Check<'a> {
    /// The copy of the tree.
    pub(crate) directory: &'a Path,
    /// Build directory, kept from run to run, apart from that of normal builds.
    pub(crate) target: &'a Path,
    /// A check that runs longer is ended.
    pub(crate) timeout: Duration,
}

/// Result of a command.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// With exit code 0.
    Passed {
        /// Output of the command.
        output: String,
    },
    /// With another.
    Failed {
        /// Output of the command.
        output: String,
    },
    /// With another, because the compiler refused.
    NotCompiled {
        /// Output of the command.
        output: String,
    },
    /// Not in time.
    TimedOut,
}

/// Interval of checking for the command's end.
const LOOK: Duration = Duration::from_millis(20);

impl Check<'_> {
    /// Runs `command`, which is for bash, once.
    pub(crate) fn run(&self, command: &str) -> Result<Outcome> {
        let path = self.directory.join(".check-output");
        let log = File::create(&path).context("the copy is not writable")?;
        let mut child = Command::new("bash")
            .args(["-c", command])
            .current_dir(self.directory)
            .env("CARGO_TARGET_DIR", self.target)
            // The mutants are many, and each is built once and run once.
            .env("CARGO_PROFILE_RELEASE_LTO", "off")
            .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16")
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .context("bash cannot be started")?;
        let Some(status) = wait_or_end(&mut child, self.timeout, |_| ())? else {
            return Ok(Outcome::TimedOut);
        };
        let output = String::from_utf8_lossy(&std::fs::read(&path)?).into_owned();
        Ok(classify(status.success(), output))
    }

    /// Runs `command` on the tree as it is: unless it passes, it can prove nothing.
    pub(crate) fn must_pass(&self, command: &str) -> Result<()> {
        match self.run(command)? {
            Outcome::Passed { output } if ran_nothing(&output) => {
                bail!("the check ran no test, so it cannot notice anything:\n{}", tail(&output))
            }
            Outcome::Passed { .. } => Ok(()),
            Outcome::Failed { output } | Outcome::NotCompiled { output } => {
                bail!("the check fails without any mutation:\n{}", tail(&output))
            }
            Outcome::TimedOut => bail!("the check takes longer than --timeout-s by itself"),
        }
    }
}

fn classify(success: bool, output: String) -> Outcome {
    if success {
        Outcome::Passed { output }
    } else if output.contains("error: could not compile") {
        Outcome::NotCompiled { output }
    } else {
        Outcome::Failed { output }
    }
}

/// Waits for `child`; `None` if it took longer, and was ended with everything it started.
///
/// Before each look whether it has ended, the last one too, `before` gets its process id.
pub(crate) fn wait_or_end(
    child: &mut Child,
    timeout: Duration,
    before: impl FnMut(u32),
) -> Result<Option<ExitStatus>> {
    let status = wait(child, timeout, before)?;
    if status.is_none() {
        end_family(child)?;
    }
    Ok(status)
}

fn wait(
    child: &mut Child,
    timeout: Duration,
    mut before: impl FnMut(u32),
) -> Result<Option<ExitStatus>> {
    let start = Instant::now();
    loop {
        before(child.id());
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if start.elapsed() > timeout {
            return Ok(None);
        }
        std::thread::sleep(LOOK);
    }
}

/// Ends the command and everything that it started.
///
/// They stay in this program's process group, so that Ctrl-C ends them all; that is why they
/// are sought out one by one here.
fn end_family(child: &mut Child) -> Result<()> {
    let mut family = vec![child.id()];
    let parents = parents();
    let mut known = 0;
    while known < family.len() {
        let parent = family[known];
        family.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid));
        known += 1;
    }
    // Those that have ended meanwhile are reported by kill and do not matter.
    Command::new("kill")
        .arg("-KILL")
        .args(family.iter().map(ToString::to_string))
        .stderr(Stdio::null())
        .status()
        .context("kill is missing")?;
    child.wait()?;
    Ok(())
}

/// Every process and its parent, from proc(5).
fn parents() -> Vec<(u32, u32)> {
    let Ok(processes) = std::fs::read_dir("/proc") else { return Vec::new() };
    let one = |entry: std::fs::DirEntry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        // "pid (name) state parent ...": the name may hold anything, brackets too.
        let (_, fields) = stat.rsplit_once(')')?;
        Some((pid, fields.split_whitespace().nth(1)?.parse().ok()?))
    };
    processes.flatten().filter_map(one).collect()
}

/// Whether cargo's test lines say that there was no test at all.
fn ran_nothing(output: &str) -> bool {
    let mut counts = output
        .lines()
        .filter_map(|line| line.strip_prefix("running ")?.split(' ').next()?.parse::<u64>().ok())
        .peekable();
    counts.peek().is_some() && counts.all(|count| count == 0)
}

fn tail(output: &str) -> String {
    let lines: Vec<&str> = output.lines().collect();
    lines[lines.len().saturating_sub(30)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(command: &str, timeout: Duration) -> Outcome {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (directory, target) = (directory.path(), directory.path().join("target"));
        Check { directory, target: &target, timeout }.run(command).expect("bash runs")
    }

    #[test]
    fn outcomes_are_told_apart() {
        let minute = Duration::from_secs(60);
        assert!(matches!(run("true", minute), Outcome::Passed { .. }));
        assert!(matches!(run("echo boom >&2; false", minute),
            Outcome::Failed { output } if output == "boom\n"));
        let refused = "echo 'error: could not compile `a`'; exit 101";
        assert!(matches!(run(refused, minute), Outcome::NotCompiled { .. }));
    }

    #[test]
    fn an_endless_check_is_ended_with_its_children() {
        // The grandchild holds the pipe open for writing: reading ends when it has ended.
        let directory = tempfile::tempdir().expect("a temporary directory");
        let pipe = directory.path().join("pipe");
        let made = Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs");
        assert!(made.success());
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || std::fs::read_to_string(pipe)
        });
        let command = format!("(echo up; sleep 300; true) >'{}' & sleep 300", pipe.display());
        let outcome = run(&command, Duration::from_millis(500));
        assert!(matches!(outcome, Outcome::TimedOut));
        assert_eq!(reader.join().expect("no panic").expect("a pipe"), "up\n");
    }

    #[test]
    fn a_check_without_tests_is_seen() {
        assert!(ran_nothing("\nrunning 0 tests\n\ntest result: ok.\nrunning 0 tests\n"));
        assert!(!ran_nothing("running 0 tests\nrunning 1 test\n"));
        assert!(!ran_nothing("all fine\n"));
    }

    #[test]
    fn a_failing_baseline_is_an_error() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let timeout = Duration::from_secs(60);
        let check = Check { directory: directory.path(), target: directory.path(), timeout };
        assert!(check.must_pass("true").is_ok());
        let error = check.must_pass("echo reason; false").expect_err("it fails");
        assert!(error.to_string().contains("reason"));
        assert!(check.must_pass("echo running 0 tests").is_err());
    }
}
