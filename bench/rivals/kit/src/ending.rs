//! How a program ends that a person has started: in words, also where `RUST_BACKTRACE` would have
//! an error print where it came from.

use std::process::ExitCode;

use anyhow::Result;

/// The exit status; an error is told on stderr, with all that it came from, on one line.
pub fn ending(result: Result<ExitCode>) -> ExitCode {
    result.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}
