//! Processes of this program, started by it: demonstrations and series of measurements.

use anyhow::{Context as _, bail};
use lanecast_os::{affinity, process};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{BufRead, BufReader, Read, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Between two looks at the stop flag while an actor is silent.
const CHECK_INTERVAL: Duration = Duration::from_millis(200);

/// When to give up on actors.
pub(crate) struct Deadline<'a> {
    pub(crate) until: Instant,
    pub(crate) stop: &'a dyn Fn() -> bool,
}

/// This program in another process, which does not outlive this value.
#[derive(Debug)]
pub(crate) struct ChildProcess {
    role: &'static str,
    child: Child,
    lines: Receiver<std::io::Result<String>>,
    errors: Option<JoinHandle<String>>,
}

impl ChildProcess {
    /// Starts it with the arguments `words`; `role` names it in errors.
    pub(crate) fn start(role: &'static str, words: &[String]) -> anyhow::Result<Self> {
        Self::start_in(role, &[], words)
    }

    /// The same, with the words of a program before it that becomes this one, such as `ip netns
    /// exec NAME`.
    pub(crate) fn start_in(
        role: &'static str,
        before: &[String],
        words: &[String],
    ) -> anyhow::Result<Self> {
        Self::spawn(role, command(before, words)?, Stdio::null())
    }

    /// The same, with an input that [`tell`](Self::tell) writes to.
    pub(crate) fn start_told(
        role: &'static str,
        before: &[String],
        words: &[String],
    ) -> anyhow::Result<Self> {
        Self::spawn(role, command(before, words)?, Stdio::piped())
    }

    /// The same as [`start`](Self::start), with all its threads on `cpu`.
    pub(crate) fn start_on(
        cpu: usize,
        role: &'static str,
        words: &[String],
    ) -> anyhow::Result<Self> {
        let mut command = command(&[], words)?;
        affinity::pin_child(&mut command, cpu)?;
        Self::spawn(role, command, Stdio::null())
    }

    /// Starts it. It ends with the calling thread, so that has to outlive it.
    fn spawn(role: &'static str, mut command: Command, input: Stdio) -> anyhow::Result<Self> {
        command.stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped());
        process::end_child_with_parent(&mut command);
        let mut child = command.spawn().with_context(|| format!("cannot start the {role}"))?;
        let (sender, lines) = channel();
        if let Some(output) = child.stdout.take() {
            // Ends with the process, or when the receiver is dropped.
            std::thread::spawn(move || {
                BufReader::new(output).lines().try_for_each(|line| sender.send(line))
            });
        }
        let errors = child.stderr.take().map(|mut errors| {
            std::thread::spawn(move || {
                let mut text = String::new();
                // What cannot be read is not told.
                let _ = errors.read_to_string(&mut text);
                text
            })
        });
        Ok(Self { role, child, lines, errors })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Writes `value` as a line to its input.
    pub(crate) fn tell<T: Serialize>(&mut self, value: &T) -> anyhow::Result<()> {
        let line = format!("{}\n", serde_json::to_string(value)?);
        let input = self.child.stdin.as_mut().context("it has no input")?;
        input.write_all(line.as_bytes()).with_context(|| format!("cannot tell the {}", self.role))
    }

    /// Ends its input.
    pub(crate) fn end_input(&mut self) {
        self.child.stdin = None;
    }

    /// The next line that it prints, as data.
    pub(crate) fn read<T: DeserializeOwned>(
        &mut self,
        deadline: &Deadline<'_>,
    ) -> anyhow::Result<T> {
        loop {
            let left = deadline.until.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left.min(CHECK_INTERVAL)) {
                Ok(line) => {
                    let line = line.with_context(|| format!("cannot read the {}", self.role))?;
                    return serde_json::from_str(&line)
                        .with_context(|| format!("the {} printed no JSON: {line}", self.role));
                }
                // Ctrl-C reaches the actors, too: an actor's end is not what has gone wrong then.
                Err(_) if (deadline.stop)() => bail!("interrupted"),
                Err(RecvTimeoutError::Disconnected) => bail!(self.failure()),
                Err(RecvTimeoutError::Timeout) if left.is_zero() => {
                    let why = format!("the {} (process {}) hangs", self.role, self.pid());
                    self.end();
                    bail!("{why}: {}", self.errors());
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Waits until it has ended, and gives what it wrote to standard error.
    pub(crate) fn finish(mut self, deadline: &Deadline<'_>) -> anyhow::Result<String> {
        // The output ends with the process; lines without a reader are dropped.
        loop {
            let left = deadline.until.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left.min(CHECK_INTERVAL)) {
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) if left.is_zero() || (deadline.stop)() => {
                    bail!("the {} (process {}) does not end", self.role, self.pid());
                }
                _ => {}
            }
        }
        self.child.wait()?;
        Ok(self.errors())
    }

    /// Ends it at once (kill -9).
    pub(crate) fn end(&mut self) {
        // Both fail only if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    fn failure(&mut self) -> String {
        let status = self.child.wait().map_or_else(|e| e.to_string(), |s| s.to_string());
        let (role, pid) = (self.role, self.pid());
        format!("the {role} (process {pid}) ended without a result ({status}): {}", self.errors())
    }

    fn errors(&mut self) -> String {
        let thread = self.errors.take();
        let text = thread.and_then(|thread| thread.join().ok()).unwrap_or_default();
        text.trim().to_owned()
    }
}

/// This program with the arguments `words`, started by the program that `before` begins with, if
/// that is not empty.
fn command(before: &[String], words: &[String]) -> anyhow::Result<Command> {
    let program = std::env::current_exe().context("cannot find this program's file")?;
    let mut command = match before.split_first() {
        Some((first, rest)) => {
            let mut command = Command::new(first);
            command.args(rest).arg(program);
            command
        }
        None => Command::new(program),
    };
    command.args(words);
    Ok(command)
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        self.end();
    }
}
