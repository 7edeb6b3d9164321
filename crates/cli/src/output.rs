//! Standard output whose reader may have gone away: that is an error here, not a panic.

use crate::printable::{printable, printable_json};
use lanecast_os::poll::is_abandoned;
use serde::Serialize;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// The exit status of a run that ended well, but in which messages were lost, repeated or
/// damaged, or did not reach their reader. 1 is an error, 2 a wrong command line.
pub(crate) const INCOMPLETE: u8 = 3;

/// Standard output whose errors say what failed.
#[derive(Debug)]
pub(crate) struct StandardOutput(io::Stdout);

/// Standard output, for a buffer of one's own.
pub(crate) fn standard_output() -> StandardOutput {
    StandardOutput(io::stdout())
}

impl StandardOutput {
    fn explained<T>(result: io::Result<T>) -> io::Result<T> {
        result.map_err(|error| match error.kind() {
            // Not an error to tell of, and to try again.
            io::ErrorKind::Interrupted => error,
            kind => io::Error::new(kind, format!("cannot write to standard output: {error}")),
        })
    }
}

impl Write for StandardOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Self::explained(self.0.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Self::explained(self.0.flush())
    }
}

/// Interval of looks at the reader of standard output.
const READER_CHECK: Duration = Duration::from_millis(100);

/// A look at the reader of standard output, for commands that may print nothing for long: the
/// reader of `lanecast sub x | head -1` has gone after the first line, and another write, which
/// would fail, may never come.
#[derive(Debug)]
pub(crate) struct ReaderCheck {
    due: Instant,
}

impl ReaderCheck {
    pub(crate) fn new() -> Self {
        Self { due: Instant::now() }
    }

    /// Looks, if that is due.
    ///
    /// # Errors
    /// A broken pipe, as a write would find it.
    pub(crate) fn check(&mut self) -> io::Result<()> {
        let now = Instant::now();
        if now < self.due {
            return Ok(());
        }
        self.due = now + READER_CHECK;
        match is_abandoned(io::stdout().as_fd()) {
            true => Err(io::ErrorKind::BrokenPipe.into()),
            false => Ok(()),
        }
    }
}

/// Prints `text` as it is.
pub(crate) fn print(text: &str) -> io::Result<()> {
    // Lines of several threads do not mix.
    let _whole = io::stdout().lock();
    let mut output = standard_output();
    output.write_all(text.as_bytes())?;
    output.flush()
}

/// Prints `text` as a line.
pub(crate) fn print_line(text: &str) -> io::Result<()> {
    print(&format!("{text}\n"))
}

/// Prints `value` as a line of JSON.
pub(crate) fn print_json(value: &impl Serialize) -> io::Result<()> {
    print_line(&printable_json(serde_json::to_string(value)?))
}

/// Prints lines to standard error, and ignores a closed one. Names that others chose may be in
/// them: control characters do not reach the terminal.
pub(crate) fn print_error(text: &str) {
    let lines: Vec<_> = text.split('\n').map(printable).collect();
    let _ = writeln!(io::stderr().lock(), "{}", lines.join("\n"));
}

/// The same for what is wrong.
pub(crate) fn warn(text: &str) {
    print_error(&format!("lanecast: {text}"));
}

/// The exit status of a measurement that has ended: that the reader of its output has gone does
/// not change it.
pub(crate) fn printed(result: anyhow::Result<()>, status: ExitCode) -> anyhow::Result<ExitCode> {
    match result {
        Err(error) if !is_broken_pipe(&error) => Err(error),
        _ => Ok(status),
    }
}

/// Says which arguments do not fit; the exit status of that.
pub(crate) fn wrong_arguments(text: &str) -> ExitCode {
    warn(text);
    ExitCode::from(2)
}

/// The texts of an error and its causes; a cause already in an outer text is left out.
pub(crate) fn words(error: &anyhow::Error) -> String {
    let mut words = String::new();
    for cause in error.chain().map(ToString::to_string) {
        match words.is_empty() {
            true => words = cause,
            false if words.contains(&cause) => {}
            false => words += &format!(": {cause}"),
        }
    }
    words
}

/// Whether the reader of our output has gone (`lanecast sub x | head`), which is no error.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let io = cause.downcast_ref::<io::Error>();
        io.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    })
}

#[cfg(test)]
mod tests {
    use super::words;
    use anyhow::anyhow;

    #[test]
    fn a_cause_is_said_once() {
        let error = |text: &'static str| anyhow!("no such file").context(text);
        assert_eq!(words(&error("cannot read a")), "cannot read a: no such file");
        assert_eq!(words(&error("cannot read a: no such file")), "cannot read a: no such file");
        let deeper = error("cannot read a: no such file").context("the users");
        assert_eq!(words(&deeper), "the users: cannot read a: no such file");
    }
}
