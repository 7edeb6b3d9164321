//! Exit status and error text of a program that a person started: one line, without the backtrace
//! that `RUST_BACKTRACE` would add.

use std::process::ExitCode;

use anyhow::Result;

/// The exit status; an error is told on stderr, with all that it came from, on one line.
pub fn ending(result: Result<ExitCode>) -> ExitCode {
    result.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}
